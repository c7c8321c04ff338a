"""The key that signs sessions: 32 random bytes in a file of their own beside the store."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from submerge import UsageError
from submerge_client.private_file import PRIVATE, refuse_link

LENGTH = 32


def key_path(store: Path) -> Path:
    """Return the file of a store's key."""
    return Path(f"{os.path.realpath(store)}.page-key")


def read_key(path: Path) -> bytes:
    """Return the key; a new one where there is none.

    A file that was cut short by a crash is replaced: all that is lost is who is logged in.

    Raises UsageError if it cannot be read or written.
    """
    refuse_link(path, what="the key of the page's sessions")
    try:
        if path.exists():
            key = path.read_bytes()
            if len(key) == LENGTH:
                return key
        key = secrets.token_bytes(LENGTH)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE), "wb") as file:
            os.fchmod(file.fileno(), PRIVATE)
            file.write(key)
    except OSError as error:
        raise UsageError(
            f"expected to read or write the key of the page's sessions, {path}, got:"
            f" {error.strerror}"
        ) from error
    return key
