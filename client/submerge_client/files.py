"""Files that only their owner may read; files that are replaced as a whole, or stay as they were.

A symbolic link in a file's place is refused: a program of root would write where another points.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from submerge.errors import UsageError
from submerge_client.logs import say


@contextmanager
def atomic_file(
    path: Path, *, mode: int = 0o666, durable: bool = True, beside: str | None = None
) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` if the body ends without error; `durable`: once on disk."""
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


def atomic_write(path: Path, data: bytes, *, mode: int = 0o666, beside: str | None = None) -> None:
    with atomic_file(path, mode=mode, beside=beside) as file:
        rest = memoryview(data)
        while rest:
            # Unbuffered: tests kill the process between any two calls, and within this one.
            rest = rest[os.write(file.fileno(), rest) :]


@contextmanager
def writing_to(target: str) -> Iterator[None]:
    """Raise UsageError, which names the target, if it cannot be written; a full disk stays one."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise  # not a mistake of the input: the command line reports it
        raise UsageError(f"cannot write {target}: {error.strerror or error}") from error


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Wait until a folder's names are on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


PRIVATE = 0o600

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def refuse_link(path: str | os.PathLike[str], *, what: str) -> None:
    """Check that a path is no symbolic link; a missing file is fine."""
    if os.path.islink(path):
        raise UsageError(
            f"{what} must be a file of its own, got {os.fspath(path)}, a symbolic link to"
            f" {os.readlink(path)}: name that file itself"
        )


def stat_of(path: str | os.PathLike[str]) -> os.stat_result | None:
    """Return what a name stands for now; None if it cannot be looked up."""
    try:
        return os.stat(path)
    except OSError:
        return None


class FileLooks:
    """How often files that are read again when they change are to be read again as they are."""

    asked = 0


def stamp(found: os.stat_result) -> tuple[int, int, int, int]:
    """Return a value that changes when a file does, or all are to be read again."""
    return found.st_mtime_ns, found.st_size, found.st_ino, FileLooks.asked


def is_same(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    """Return whether both are one file: it may have been removed, renamed or replaced."""
    return one is not None and other is not None and os.path.samestat(one, other)


def create_private(path: str | os.PathLike[str]) -> None:
    """Create an empty file that only its owner may read; an existing one stays as it is."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE)
    except FileExistsError:
        return
    os.close(fd)


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file, and create it for its owner alone; an existing one keeps its mode."""
    return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, PRIVATE)


def make_private(path: str | os.PathLike[str], *, what: str) -> None:
    """Take an existing file away from other users, and log that; a missing one is fine."""
    # The file is not opened: closing it would end the locks that this process holds on it.
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if not mode & OTHERS:
            return
        os.chmod(path, PRIVATE)
    except FileNotFoundError:
        return
    except OSError as error:
        why = error.strerror or str(error)
        say(f"{what} is open to other users", level="warning", path=str(path), why=why)
        return
    say(f"{what} was open to other users", path=str(path), mode=f"{mode:o}", now=f"{PRIVATE:o}")


class LineFile:
    """Lines at the end of a file, for one writer; others may rotate the file."""

    def __init__(self, path: Path, *, what: str) -> None:
        refuse_link(path, what=what)
        self.path, self.size = path, 0
        self._fd, self._torn = -1, False

    @property
    def is_open(self) -> bool:
        """Whether what is open is what the name stands for now."""
        return self._fd >= 0 and is_same(os.fstat(self._fd), stat_of(self.path))

    def open(self, most: int = 1) -> bytes:
        """Open the file anew, and return so many bytes of its end."""
        self.close()
        self._fd = open_private(self.path, os.O_RDWR | os.O_APPEND)
        self.size = os.fstat(self._fd).st_size
        tail = os.pread(self._fd, most, max(0, self.size - most))
        self._torn = bool(tail) and not tail.endswith(b"\n")
        return tail

    def append(self, lines: bytes) -> None:
        """Append whole lines, on disk when this returns; after an OSError a part may be there."""
        # Without the line break, a line that was cut short would swallow this one.
        data = b"\n" + lines if self._torn else lines
        try:
            if os.write(self._fd, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._fd)
        except OSError:
            self.close()  # its end is read again
            raise
        self.size, self._torn = self.size + len(data), False

    def close(self) -> None:
        """Close the file, until it is opened again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
