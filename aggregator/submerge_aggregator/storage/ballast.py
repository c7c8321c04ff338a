"""Ballast: a file beside the store that keeps room on the disk for the moment when it is full.

The write-ahead log goes into the database by a checkpoint, and the database may grow by that. On
a disk that the log itself has filled there is no room left for it, and neither file could ever be
written again. The ballast is as large as the log may become. It is given up for the checkpoint,
which empties the log, and taken again at once.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from submerge_client.private_file import PRIVATE

PIECE = 1 << 16


def ballast_of(store: str | os.PathLike[str]) -> str:
    """Return the path of a store's ballast."""
    return f"{os.path.realpath(store)}.ballast"


class Ballast:
    """One file without content.

    path : Where it is, on the store's disk.

    held : Its size in bytes; 0 if there is none.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.held = 0
        with suppress(OSError):
            found = os.lstat(path)
            self.held = found.st_size if stat.S_ISREG(found.st_mode) else 0

    def hold(self, size: int, *, spare: int = 0) -> bool:
        """Make it at least `size` bytes long; return whether it is.

        spare : bytes that have to stay free beside it
        """
        if self.held >= size:
            return True
        if not self.beside(size + spare - self.held):
            return False
        self.release()
        try:
            # Random bytes: a file system that compresses, or leaves out zeros, keeps no room.
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE)
            with open(fd, "wb", buffering=0) as file:
                while self.held < size:
                    self.held += file.write(os.urandom(min(PIECE, size - self.held)))
                os.fsync(fd)
        except OSError:
            self.release()
            return False
        return True

    def beside(self, size: int) -> bool:
        """Return whether as many bytes are free beside it, as far as that is known."""
        free = _free(os.path.dirname(self._path))
        return free is None or free >= size

    def release(self) -> None:
        """Give its room back."""
        with suppress(OSError):  # without one, each commit goes into the database at once
            os.unlink(self._path)
        self.held = 0


def _free(folder: str) -> int | None:
    """Return the bytes that this user may still write; None if that is unknown."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize if disk.f_blocks else None
