"""What a copy of a store is: a database, and a line behind it.

    the bytes of the database, as SQLite has them
    submerge backup 1 SHA-256 {"node": "root", "bytes": 405504, ...}

SQLite does not look at what follows its last page: `sqlite3` opens a copy as it is. The SHA-256 is
of all before it and of the JSON text behind it, so a copy that a disk has changed, or that was cut
short, is refused before anything in it is read. It keeps no forger out.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from submerge.errors import SubmergeError, UsageError
from submerge.protocol.machine import Now

FORM = 1
MARK = b"\nsubmerge backup "

MOST_LINE = 1 << 20
"""Longest line: a hundred bytes or two for each group."""

PIECE = 1 << 20
"""Bytes that are read at a time."""


class CopyDamaged(SubmergeError):
    """A copy that is not as it was made."""

    def __init__(self, path: str | os.PathLike[str], why: str) -> None:
        super().__init__(f"{os.fspath(path)} is damaged: {why}; take another copy")


@dataclass(frozen=True, slots=True)
class GroupState:
    """What a group was at a copy's commit, in the machine that ran.

    fingerprint : Of its schema.
    learnt : Readings that its rows count.
    elapsed : The group's time, which ages of nodes follow: a store keeps it once an hour.
    model : SHA-256 of the model that followed from its rows (`row_models.model_of_rows`).
    """

    fingerprint: str
    learnt: int
    elapsed: float
    model: str


@dataclass(frozen=True, slots=True)
class CopyIdentity:
    """Whose copy it is, and of which commit.

    node, incarnation : Of the aggregator and of its store.
    software : The version that made it.
    wall, synced : When, by the aggregator's clock, and whether that was synchronized.
    bytes : Of the database.
    """

    node: str
    incarnation: str
    software: str
    wall: float
    synced: bool
    groups: dict[str, GroupState]
    bytes: int = 0

    @property
    def now(self) -> Now:
        """The time of the copy, for a machine that starts from it."""
        return Now(0.0, self.wall, self.synced)


def line_of(identity: CopyIdentity, digest: hashlib._Hash) -> bytes:
    """Return the line behind a database.

    digest : SHA-256, so far of the database
    """
    about = msgspec.json.encode(identity)
    digest.update(about)
    return b"%s%d %s %s\n" % (MARK, FORM, digest.hexdigest().encode(), about)


def identity_of(path: Path, progress: Callable[[int], None] = lambda _: None) -> CopyIdentity:
    """Return whose copy a file is, once all of it was read.

    progress : called with bytes read since the last call

    Raises UsageError if it is no copy, or of a later form; CopyDamaged if it is not as it was made.
    """
    try:
        with path.open("rb") as file:
            about, stated, size = _line_in(file, path)
            digest, left = hashlib.sha256(), size
            file.seek(0)
            while left:
                piece = file.read(min(PIECE, left))
                if not piece:
                    raise CopyDamaged(path, "it became shorter while it was read")
                digest.update(piece)
                left -= len(piece)
                progress(len(piece))
    except OSError as error:
        raise UsageError(f"expected a copy in {path}, got: {error.strerror or error}") from error
    digest.update(about)
    if digest.hexdigest().encode() != stated:
        raise CopyDamaged(path, "its bytes are not those that were written")
    try:
        identity = msgspec.json.decode(about, type=CopyIdentity)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path} was made by another version of submerge: {error}") from error
    if identity.bytes != size:
        raise CopyDamaged(path, f"{identity.bytes} bytes were written, and {size} are there")
    return identity


def _line_in(file: BinaryIO, path: Path) -> tuple[bytes, bytes, int]:
    """Return the JSON text, the digest, and how many bytes come before the line."""
    size = file.seek(0, os.SEEK_END)
    file.seek(-min(size, MOST_LINE), os.SEEK_END)
    _, mark, line = file.read().rpartition(MARK)
    form, _, rest = line.partition(b" ")
    stated, _, about = rest.partition(b" ")
    if not mark or not about.endswith(b"\n"):
        file.seek(0)
        if file.read(16) == b"SQLite format 3\0":
            raise CopyDamaged(path, "it ends without the line that says whose it is")
        raise UsageError(
            f"expected a copy that `submerge backup` has made, got another file: {path}"
        )
    if form != b"%d" % FORM:
        raise UsageError(f"{path} was made by a later submerge: update submerge")
    return about[:-1], stated, size - len(mark) - len(line)
