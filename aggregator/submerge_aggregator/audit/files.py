"""AuditFiles: lines in a file that is rotated by size, PATH, PATH.1, ... with the newest first.

Only their owner may read them. A line that a full disk or a kill cut short stays on a line of its
own, and readers leave it out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from submerge import UsageError
from submerge_client.files import is_same, open_private, refuse_link, stat_of

MOST_BYTES, FILES = 1 << 20, 8
"""Bytes of a file, before the next one begins; files, with the one that is being written."""


class AuditFiles:
    """The files of one audit log, for one writer."""

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES, files: int = FILES) -> None:
        refuse_link(path, what="the audit log")
        if path.exists() and not path.is_file():
            raise UsageError(f"audit.path must be a file, got {path}: name another, or '' for none")
        self._path, self._most_bytes, self._files = path, most_bytes, files
        self._fd = -1
        self._size = 0
        self._torn = False

    def append(self, lines: bytes) -> None:
        """Append whole lines, on disk when this returns; after an OSError a part may be there."""
        if self._fd >= 0 and not is_same(os.fstat(self._fd), stat_of(self._path)):
            self.close()  # removed, or rotated by another program: readers look for the name
        if self._fd >= 0 and self._size + len(lines) > self._most_bytes and self._size:
            self._rotate()
        if self._fd < 0:
            self._open()
        data = b"\n" + lines if self._torn else lines
        self._torn = True
        rest = memoryview(data)
        try:
            while rest:
                written = os.write(self._fd, rest)
                self._size += written
                rest = rest[written:]
            os.fsync(self._fd)
        except OSError:
            self.close()
            raise
        self._torn = False

    def close(self) -> None:
        """Close the file; the next line opens it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = open_private(self._path, os.O_RDWR | os.O_APPEND)
        self._size = os.fstat(self._fd).st_size
        self._torn = self._size > 0 and os.pread(self._fd, 1, self._size - 1) != b"\n"

    def _rotate(self) -> None:
        self.close()
        for number in range(self._files - 1, 0, -1):
            with suppress(FileNotFoundError):
                os.replace(older(self._path, number - 1), older(self._path, number))


def older(path: Path, number: int) -> Path:
    """Return the name of the file that was rotated `number` times."""
    return path.with_name(f"{path.name}.{number}") if number else path


def lines_in(path: Path, *, follow: bool = False) -> Iterator[bytes | None]:
    """Yield the lines of all files, the oldest first.

    `follow`: go on with lines as they are written, without end; None whenever there is none now.
    """
    opened = _open_all(path)
    if not opened and not follow:
        raise FileNotFoundError(path)
    for file in opened[:-1]:
        with file:
            yield from file
    newest = opened[-1] if opened else None
    try:
        while True:
            if newest is not None:
                yield from _whole(newest) if follow else newest
            if not follow:
                return
            newer = _open(path)
            if newer is None or (newest is not None and _same(newest, newer)):
                if newer is not None:
                    newer.close()
                yield None
                continue
            if newest is not None:
                # It was rotated: what was written to it in between comes first.
                yield from newest
                newest.close()
            newest = newer
    finally:
        if newest is not None:
            newest.close()


def _whole(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file that is being written; one without its end is read again."""
    while line := file.readline():
        if not line.endswith(b"\n"):
            file.seek(-len(line), os.SEEK_CUR)
            return
        yield line


def _open_all(path: Path) -> list[BinaryIO]:
    """Return all files, open, the oldest first; a rotation meanwhile does no harm."""
    found: list[BinaryIO] = []
    for number in range(FILES):
        file = _open(older(path, number))
        if file is None:
            continue
        if any(_same(file, each) for each in found):
            file.close()
        else:
            found.append(file)
    return found[::-1]


def _open(path: Path) -> BinaryIO | None:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        return None


def _same(one: BinaryIO, other: BinaryIO) -> bool:
    return os.path.samestat(os.fstat(one.fileno()), os.fstat(other.fileno()))
