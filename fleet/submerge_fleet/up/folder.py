"""make_folder(): the folder of a machine's files, or one line on why there is none."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from submerge import UsageError


def make_folder(folder: Path, *, owner: str | None = None) -> None:
    """Make the folder where a machine keeps what it knows, and check that it may write there.

    owner : who gets a folder that is made here; by default this process's user

    Raises
    ------
    UsageError
        If it cannot.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if owner is not None:
            for each in missing:
                shutil.chown(each, owner)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        cure = ", or change its owner (chown)" if isinstance(error, PermissionError) else ""
        raise UsageError(
            f"folder: expected a folder to write in, got {str(folder)!r}: {error.strerror};"
            f" name another{cure}"
        ) from error
