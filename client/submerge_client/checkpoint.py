"""CheckpointFile: a client's records in one file, on a card that may fail at any moment.

The file has two slots, each of which holds a whole state, and a write goes into the one
with the older. It promises that `write` returns when the state is on disk; that power lost
at any moment leaves the state before or the one after; and that damage never stops a
client: the other slot's state comes back, or none. It keeps no more than these two, and
does not know what a record says.

1. One process has the file, by a lock that ends with it.
2. The newest state is never written over, and is on disk before the other slot is touched.
3. A state that outgrows its slot goes into a larger file, which then takes the place of the
   first. So does one that the file is no good for: because no slot in it can be believed,
   or because it may only be read. What could not be believed is set aside, not deleted: it
   may be a file of the user's, named by mistake.
4. A slot is a header and a payload, little-endian:

       magic (8) | form u32 | generation u64 | length of the payload u64 | checksum (16)
       length of the directory u32 | directory, JSON: [[key, length], ...] | values, in order

   The higher generation is the newer. The checksum (BLAKE2b) covers all else in the slot.
   Every later form keeps this header: a form is believed only where the checksum is right.
5. Slots begin at 0 and at the capacity, which is the smallest power of two that is half of
   the file or more: a file that lost its end still shows where the second one begins.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import struct
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from hashlib import blake2b
from typing import NamedTuple

from submerge.errors import PeerError, UsageError
from submerge.protocol.machine import Key
from submerge_client.atomic_file import sync_folder

MAGIC = b"submckpt"
FORM = 1
HEAD = struct.Struct("<8sIQQ")
SUM_BYTES = 16
HEADER_BYTES = HEAD.size + SUM_BYTES
DIRECTORY = struct.Struct("<I")
LEAST_CAPACITY = 4096
ONLY_READABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


class _Newest(NamedTuple):
    """Where the newest state stands; generation 0 is none."""

    generation: int
    place: int


class CheckpointFile:
    """The state that outlives a client's process.

    Parameters
    ----------
    path : str or path
        The file; it is made, and its folder, if there is none.

    Attributes
    ----------
    notes : list of str
        What the last look at the file found wrong with it, a line each: for the log.

    Raises
    ------
    UsageError
        If another process uses the file, or it is a folder or a device.
    OSError
        If it can not even be read, or not be made.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.realpath(path)
        self.notes: list[str] = []
        self._newest: _Newest | None = None
        self._settled = False
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise UsageError(f"a checkpoint must be a file, got {self.path}: name another")
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self._fd, self._writable = _locked(self.path)

    def load(self) -> dict[Key, bytes]:
        """Return the newest state that is whole; {} if none is.

        Raises
        ------
        UsageError
            If a later submerge wrote it: that is no damage, and must not be written over.
        """
        return self._look()[1]

    def write(self, records: Mapping[Key, bytes]) -> None:
        """Keep this state; on disk when this returns.

        Raises
        ------
        UsageError
            As `load` does.
        OSError
            If the disk is full or worse. The state before is as it was (though the new one
            may be there, too), and the next `write` may succeed.
        """
        generation, place = self._newest or self._look()[0]
        slot = _packed(records, generation + 1)
        capacity = _capacity(os.fstat(self._fd).st_size)
        if generation and self._writable and len(slot) <= capacity:
            self._settle()
            place = 1 - place
            _write_all(self._fd, slot, place * capacity)
            os.fdatasync(self._fd)
            self._newest = _Newest(generation + 1, place)
        else:
            self._begin_file(slot, set_aside=not generation)
            self._newest = _Newest(generation + 1, 0)
            self._settle()

    def close(self) -> None:
        """Let another process have the file."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _look(self) -> tuple[_Newest, dict[Key, bytes]]:
        """Find the newest state, and note what is wrong."""
        self.notes = []
        newest, state = _Newest(0, 0), {}
        for place in (0, 1):
            try:
                generation, records = _slot(self._fd, self.path, place)
            except (PeerError, OSError) as error:
                self.notes.append(f"slot {place + 1} of {self.path} is lost: {error}")
                continue
            if generation > newest.generation:
                newest, state = _Newest(generation, place), records
        if self.notes and not newest.generation:
            self.notes.append(
                f"no state in {self.path} is whole: it begins without one, and the next write"
                f" sets the file aside as {self.path}.damaged"
            )
        # What was found may be a dead process's, and in the system's memory only.
        self._newest, self._settled = newest, False
        return newest, state

    def _begin_file(self, slot: bytes, *, set_aside: bool) -> None:
        """Put a state into a new file, and that in place of the one that we have."""
        beside = f"{self.path}.new"
        with ExitStack() as undo:
            fd = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            undo.callback(os.close, fd)
            undo.callback(os.unlink, beside)
            # Locked before it has the name, so that nobody comes in between.
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Zeros to the end: later writes then need no room that the disk may not have.
            _write_all(fd, slot.ljust(2 * _capacity(2 * len(slot)), b"\0"), 0)
            os.fsync(fd)
            if set_aside and os.fstat(self._fd).st_size:
                os.replace(self.path, f"{self.path}.damaged")
            os.replace(beside, self.path)
            undo.pop_all()
        os.close(self._fd)
        self._fd, self._writable, self._settled = fd, True, False

    def _settle(self) -> None:
        """See that the newest state is on disk, its file's name included."""
        if self._settled:
            return
        os.fdatasync(self._fd)
        sync_folder(os.path.dirname(self.path))
        self._settled = True


def state_of(path: str | os.PathLike[str]) -> dict[Key, bytes]:
    """Return the newest state in a file that a client may be writing; {} if none is whole.

    Nothing is locked and nothing is changed: the newest state is never written over.

    Raises
    ------
    OSError
        If the file cannot be read.
    UsageError
        If a later submerge wrote it.
    """
    newest: tuple[int, dict[Key, bytes]] = 0, {}
    fd = os.open(path, os.O_RDONLY)
    with ExitStack() as undo:
        undo.callback(os.close, fd)
        for place in (0, 1):
            with suppress(PeerError):  # of the other slot, or half written
                newest = max(newest, _slot(fd, os.fspath(path), place), key=lambda each: each[0])
    return newest[1]


def _slot(fd: int, path: str, place: int) -> tuple[int, dict[Key, bytes]]:
    """Return a slot's generation and state; generation 0 if it was never written."""
    size = os.fstat(fd).st_size
    capacity = _capacity(size)
    start = place * capacity
    header = os.pread(fd, HEADER_BYTES, start)
    # A new file's second slot is zeros; its first never is.
    if not size or (place and header == bytes(HEADER_BYTES)):
        return 0, {}
    room = min(capacity, size - start) - HEADER_BYTES
    if room < 0:
        raise PeerError("it is cut short")
    magic, form, generation, length = HEAD.unpack_from(header)
    if magic != MAGIC:
        raise PeerError("it does not begin as a checkpoint does")
    # Before anything of that size is read.
    if length > room:
        raise PeerError(f"it claims {length} bytes, and there are {room}")
    payload = os.pread(fd, length, start + HEADER_BYTES)
    if header[HEAD.size :] != _checksum(header[: HEAD.size], payload):
        raise PeerError("it does not match its checksum, as after a write cut short")
    if form > FORM:
        raise UsageError(
            f"the checkpoint {path} was written by a later submerge (form {form}, this"
            f" one knows {FORM}): update submerge, or move the file away"
        )
    return generation, _parsed(payload)


def _locked(path: str) -> tuple[int, bool]:
    """Open and lock the file that has this name; and whether it may be written."""
    while True:
        with ExitStack() as undo:
            fd, writable = _opened(path)
            undo.callback(os.close, fd)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"another process uses the checkpoint {path}: stop it, or name another file"
                ) from error
            # Its last owner may have put another file in its place while we came in.
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                undo.pop_all()
                return fd, writable


def _opened(path: str) -> tuple[int, bool]:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600), True
    except OSError as error:
        # A card in trouble is mounted read-only: what it holds is worth the more.
        if error.errno not in ONLY_READABLE or not os.path.exists(path):
            raise
        return os.open(path, os.O_RDONLY), False


def _write_all(fd: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(fd, rest, offset)
        rest, offset = rest[written:], offset + written


def _capacity(file_bytes: int) -> int:
    """Bytes that a slot has in a file of this size: a power of two."""
    half = max(LEAST_CAPACITY, (file_bytes + 1) // 2)
    return int(1 << (half - 1).bit_length())


def _packed(records: Mapping[Key, bytes], generation: int) -> bytes:
    names = [[key, len(value)] for key, value in records.items()]
    directory = json.dumps(names, ensure_ascii=False, separators=(",", ":")).encode()
    payload = b"".join((DIRECTORY.pack(len(directory)), directory, *records.values()))
    head = HEAD.pack(MAGIC, FORM, generation, len(payload))
    return head + _checksum(head, payload) + payload


def _parsed(payload: bytes) -> dict[Key, bytes]:
    (length,) = DIRECTORY.unpack_from(payload)
    start = DIRECTORY.size + length
    records = {}
    for key, length in json.loads(payload[DIRECTORY.size : start]):
        records[tuple(key)] = payload[start : start + length]
        start += length
    return records


def _checksum(head: bytes, payload: bytes) -> bytes:
    both = blake2b(head, digest_size=SUM_BYTES)
    both.update(payload)
    return both.digest()
