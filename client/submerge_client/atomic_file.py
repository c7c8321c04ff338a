"""atomic_file(), atomic_write(): a file is replaced as a whole, or stays as it was.

A reader sees the old file or the new one, also after a power loss. The new name may still be only
in the system's memory: `sync_folder` waits until it is on disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_file(
    path: Path, *, mode: int = 0o666, durable: bool = True, beside: str | None = None
) -> Iterator[BinaryIO]:
    """Open a file with these permissions that replaces `path` when the body ends without error.

    durable : wait until its content is on disk before it replaces `path`
    beside : its name until then; by default one of this process's own
    """
    partial = path.with_name(beside or f".{path.name}.{os.getpid()}.part")
    partial.unlink(missing_ok=True)  # left by a dead process with our number
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def atomic_write(
    path: Path, data: bytes, *, mode: int = 0o666, durable: bool = True, beside: str | None = None
) -> None:
    """Replace a file by `data`, as `atomic_file`."""
    with atomic_file(path, mode=mode, durable=durable, beside=beside) as file:
        rest = memoryview(data)
        while rest:
            # Unbuffered: tests kill the process between any two calls, and within this one.
            rest = rest[os.write(file.fileno(), rest) :]


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Wait until a folder's names are on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
