"""frames_of(): what is in a write-ahead log, and what of it SQLite does not read back.

SQLite reads a log up to the first frame that does not match its checksum, and leaves out the rest
without a word. The end of a transaction that was being written when the process died is like
that, and was never acknowledged. A transaction that is *whole* behind that place is not.

References
----------
The WAL file format, https://www.sqlite.org/fileformat2.html#walformat
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

PAGE_BYTES = 4096
"""Bytes of a page, in the database and in the log."""

HEADER = struct.Struct(">8I")
"""Magic, format, page size, number of the checkpoint, two salts, two checksums."""

FRAME = struct.Struct(">6I")
"""Page, pages of the database after a commit (else 0), two salts, two checksums."""

MAGIC = 0x377F0682
"""The lowest bit is 1 where checksums are computed over big-endian words."""

MASK = 0xFFFFFFFF


class LogFrames(NamedTuple):
    """The frames of the log's present round; those of earlier rounds have other salts.

    whole : the header is as it was written; otherwise SQLite reads nothing
    commits : numbers of the frames that end a transaction, from 1
    """

    whole: bool
    commits: tuple[int, ...]

    def unread(self, read: int) -> int:
        """Return how many transactions are in the log that SQLite has not read.

        read : the number of frames that it has read
        """
        return sum(number > read for number in self.commits)


NOTHING = LogFrames(True, ())


def frames_of(path: str) -> LogFrames:
    """Return what a log holds; nothing if there is none, or it cannot be read.

    path : the log of a store
    """
    try:
        with open(path, "rb") as log:
            header = log.read(HEADER.size)
            if len(header) < HEADER.size:
                return NOTHING
            magic, _, stated, _, *salts, first, second = HEADER.unpack(header)
            whole = magic & ~1 == MAGIC and _checksum(header[:24], magic) == (first, second)
            step = FRAME.size + (stated if whole else PAGE_BYTES)
            size = os.fstat(log.fileno()).st_size
            commits = []
            for number in range(1, (size - HEADER.size) // step + 1):
                log.seek(HEADER.size + (number - 1) * step)
                page, pages, *others = FRAME.unpack(log.read(FRAME.size))
                # Without a header there are no salts to compare: every frame counts.
                if page and pages and (not whole or others[:2] == salts):
                    commits.append(number)
            return LogFrames(whole, tuple(commits))
    except (OSError, struct.error):
        return NOTHING


def _checksum(data: bytes, magic: int) -> tuple[int, int]:
    """Return SQLite's two checksums over an even number of 32-bit words."""
    words = struct.unpack(f"{'>' if magic & 1 else '<'}{len(data) // 4}I", data)
    first = second = 0
    for i in range(0, len(words), 2):
        first = (first + words[i] + second) & MASK
        second = (second + words[i + 1] + first) & MASK
    return first, second
