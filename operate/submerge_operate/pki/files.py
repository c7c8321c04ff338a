"""Files of the pki directory, and those made from it: replaced as a whole, or not at all."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from submerge import UsageError
from submerge_client.atomic_file import atomic_file

PRIVATE, PUBLIC = 0o600, 0o644


def replace_file(path: Path, data: bytes, mode: int) -> None:
    """Write a file, whole or not at all. It keeps the owner of the file that it replaces.

    Raises UsageError if it cannot be written.
    """
    try:
        with atomic_file(path, mode=mode) as file:
            with suppress(FileNotFoundError, PermissionError):
                # A node's user keeps owning its kit when root renews it.
                before = path.stat()
                os.fchown(file.fileno(), before.st_uid, before.st_gid)
            file.write(data)
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> Exception:
    """Return the error for a path that cannot be written."""
    if error.errno == errno.ENOSPC:
        return error  # not a mistake of the input: the command line reports it
    return UsageError(f"cannot write {path}: {error.strerror}")
