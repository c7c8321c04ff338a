"""CheckpointFile: a client's records in one file, on a card that may fail at any moment.

The file has two slots. Each holds a whole state, and a write replaces the older one. It promises
that `write` returns when the state is on disk; that a power loss at any moment leaves the state
before or the one after; and that damage never stops a client.

1. One process has the file, by a lock that ends with it.
2. The newest state is never written over, and is on disk before the other slot is touched.
3. A state that outgrows its slot goes into a larger file, which then replaces the first. So
   does a state for a file without a valid slot (which is renamed: it may be a user's file, named by
   mistake), or for a read-only one.
4. A slot is a header and a payload, little-endian:

       magic (8) | form u32 | generation u64 | length of the payload u64 | checksum (16)
       length of the directory u32 | directory, JSON: [[key, length], ...] | values, in order

   The higher generation is the newer. The checksum (BLAKE2b) covers all else in the slot.
   Every later form keeps this header. Form 2 says that earlier versions have to refuse it.
5. Slots begin at 0 and at the capacity, which is the smallest power of two that is half of
   the file or more: a file that lost its end still shows where the second one begins.
6. A file that lost its name, or its folder, is written again under it, unless another has it.
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
from typing import Any, NamedTuple

from submerge.client.fleet_view import MODEL
from submerge.errors import PeerError, UsageError
from submerge.protocol.machine import Keep, Key, Records
from submerge_client.files import make_private, open_private, refuse_link, stat_of, sync_folder
from submerge_client.logs import say
from submerge_proto.kept import records
from submerge_proto.kept.client import has_whole_scatter

MAGIC = b"submckpt"
FORM, FORM_1 = 2, 1
HEAD = struct.Struct("<8sIQQ")
SUM_BYTES = 16
HEADER_BYTES = HEAD.size + SUM_BYTES
DIRECTORY = struct.Struct("<I")
LEAST_CAPACITY = 4096
ONLY_READABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


class _Newest(NamedTuple):
    """The slot of the newest state; generation 0 means that there is none."""

    generation: int
    place: int


class CheckpointFile:
    """The state that outlives a client's process; `notes`: damage that the last `load` found."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        refuse_link(path, what="the checkpoint")
        self.path = os.path.realpath(path)
        self.notes: list[str] = []
        self._newest: _Newest | None = None
        self._settled = False
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise UsageError(f"a checkpoint must be a file, got {self.path}: name another")
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        make_private(self.path, what="checkpoint")
        self._fd, self._writable = _lock_file(self.path)

    def load(self) -> dict[Key, bytes]:
        """Return the newest valid state, or {}; UsageError if a later submerge wrote it."""
        return self._look()[1]

    def write(self, records: Mapping[Key, bytes], form: int = FORM_1) -> None:
        """Keep this state, on disk when this returns; versions from that of `form` on read it."""
        # After an OSError the state before is unchanged; the next `write` may succeed.
        generation, place = self._newest or self._look()[0]
        slot = _pack(records, generation + 1, form)
        capacity = _capacity(os.fstat(self._fd).st_size)
        named = self._has_name()
        if named and generation and self._writable and len(slot) <= capacity:
            self._settle()
            place = 1 - place
            _write_all(self._fd, slot, place * capacity)
            os.fdatasync(self._fd)
            self._newest = _Newest(generation + 1, place)
            if self._has_name():
                return
        self._begin_file(slot, rename=named and not generation)
        self._newest = _Newest(generation + 1, 0)
        self._settle()

    def close(self) -> None:
        """Release the file and its lock; a newest state that lost its name gets it back."""
        fd = self._fd
        try:
            if fd >= 0 and not self._has_name() and (state := self._look()[1]):
                self.write(state, FORM)
        except (OSError, UsageError) as error:
            say("checkpoint not kept", level="error", why=str(error))
        finally:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    def _has_name(self) -> bool:
        """Whether the file still has its name; UsageError if another file has it."""
        there = stat_of(self.path)
        if there is not None and not os.path.samestat(os.fstat(self._fd), there):
            raise UsageError(
                f"expected the checkpoint {self.path} in its place while it is open, got another"
                " file: stop who else uses it, or move it away, and start again"
            )
        return there is not None

    def _look(self) -> tuple[_Newest, dict[Key, bytes]]:
        """Find the newest state, and note damage."""
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
                f"no state in {self.path} is valid: the client begins without one, and the next"
                f" write renames the file to {self.path}.damaged"
            )
        # The state may be a dead process's, and only in the system's memory.
        self._newest, self._settled = newest, False
        return newest, state

    def _begin_file(self, slot: bytes, *, rename: bool) -> None:
        """Write a state into a new file, and replace the present one by it."""
        beside = f"{self.path}.new"
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with ExitStack() as undo:
            fd = open_private(beside, os.O_RDWR | os.O_TRUNC)
            undo.callback(os.close, fd)
            undo.callback(os.unlink, beside)
            # Locked before it has the name, so that no other process can lock it first.
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Zeros to the end: later writes need no further space on the disk.
            _write_all(fd, slot.ljust(2 * _capacity(2 * len(slot)), b"\0"), 0)
            os.fsync(fd)
            if rename and os.fstat(self._fd).st_size:
                os.replace(self.path, f"{self.path}.damaged")
            os.replace(beside, self.path)
            undo.pop_all()
        os.close(self._fd)
        self._fd, self._writable, self._settled = fd, True, False

    def _settle(self) -> None:
        """Make sure that the newest state is on disk, with its file's name."""
        if self._settled:
            return
        os.fdatasync(self._fd)
        sync_folder(os.path.dirname(self.path))
        self._settled = True


def state_of(path: str | os.PathLike[str]) -> dict[Key, bytes]:
    """Return the newest state in a file that a client may be writing; {} if none."""
    newest: tuple[int, dict[Key, bytes]] = 0, {}
    fd = os.open(path, os.O_RDONLY)
    with ExitStack() as undo:
        undo.callback(os.close, fd)
        for place in (0, 1):
            with suppress(PeerError):  # this slot is damaged, or being written
                newest = max(newest, _slot(fd, os.fspath(path), place), key=lambda each: each[0])
    return newest[1]


def _slot(fd: int, path: str, place: int) -> tuple[int, dict[Key, bytes]]:
    """Return a slot's generation and state; generation 0 if it was never written."""
    size = os.fstat(fd).st_size
    capacity = _capacity(size)
    start = place * capacity
    header = os.pread(fd, HEADER_BYTES, start)
    # The second slot of a new file is zeros; the first never is.
    if not size or (place and header == bytes(HEADER_BYTES)):
        return 0, {}
    room = min(capacity, size - start) - HEADER_BYTES
    if room < 0:
        raise PeerError("it is cut short")
    magic, form, generation, length = HEAD.unpack_from(header)
    if magic != MAGIC:
        raise PeerError("it does not begin as a checkpoint does")
    # Checked before so many bytes are read.
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
    return generation, _parse(payload)


def _lock_file(path: str) -> tuple[int, bool]:
    """Open and lock the file of this name; return it, and whether it may be written."""
    while True:
        with ExitStack() as undo:
            fd, writable = _open_file(path)
            undo.callback(os.close, fd)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"another process uses the checkpoint {path}: stop it, or name another file"
                ) from error
            # Its last owner may have replaced the file meanwhile.
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                undo.pop_all()
                return fd, writable


def _open_file(path: str) -> tuple[int, bool]:
    try:
        return open_private(path, os.O_RDWR), True
    except OSError as error:
        # A failing card is mounted read-only, and its state is still worth reading.
        if error.errno not in ONLY_READABLE or not os.path.exists(path):
            raise
        return os.open(path, os.O_RDONLY), False


def _write_all(fd: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(fd, rest, offset)
        rest, offset = rest[written:], offset + written


def _capacity(file_bytes: int) -> int:
    """Return the bytes of a slot in a file of this size: a power of two."""
    half = max(LEAST_CAPACITY, (file_bytes + 1) // 2)
    return int(1 << (half - 1).bit_length())


def _pack(records: Mapping[Key, bytes], generation: int, form: int) -> bytes:
    names = [[key, len(value)] for key, value in records.items()]
    directory = json.dumps(names, ensure_ascii=False, separators=(",", ":")).encode()
    payload = b"".join((DIRECTORY.pack(len(directory)), directory, *records.values()))
    head = HEAD.pack(MAGIC, form, generation, len(payload))
    return head + _checksum(head, payload) + payload


def _parse(payload: bytes) -> dict[Key, bytes]:
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


# A client can do without its records: it loses at most what it gathered since the newest one. So
# a disk that is full or read-only is logged once, tried again with the next record, and never
# stops the node. A version before whole scatters would take a record with one for damage, delete
# it, and lose its readings in silence. Where a record holds one, the file is therefore of form 2,
# which that version refuses by name.


class RecordStore:
    """The records that a client keeps; without a file none. `lost`: another file took its name."""

    def __init__(self, file: CheckpointFile | None) -> None:
        self._file = file
        self.lost: UsageError | None = None
        self._packed: dict[Key, bytes] = {}
        self._whole: set[Key] = set()  # keys of records with a whole scatter
        self._written = True
        self._failed = False

    def load(self) -> Records:
        """Return the kept records, without those that cannot be read."""
        if self._file is None:
            return {}
        kept = {}
        try:
            self._packed = dict(self._file.load())
        except OSError as error:
            say("checkpoint unreadable", level="warning", why=str(error))
        for note in self._file.notes:
            say("checkpoint damaged", level="warning", why=note)
        for key, data in list(self._packed.items()):
            try:
                kept[key] = records.unpack(key, data)
                self._note(key, kept[key])
            except PeerError as error:
                del self._packed[key]
                say("record damaged", level="warning", key="/".join(key), why=str(error))
        return kept

    def keep(self, effect: Keep) -> None:
        """Write records; on disk when this returns, unless the disk fails."""
        for key, record in effect.records.items():
            self._note(key, record)
            if record is None:
                self._packed.pop(key, None)
            else:
                self._packed[key] = records.pack(key, record)
        self._written = False
        # A model alone can wait for the next record: that spares the card a write.
        if set(effect.records) != {MODEL}:
            self.flush()

    @property
    def is_written(self) -> bool:
        """Whether the file holds the newest records."""
        return self._file is not None and self._written

    def flush(self) -> None:
        if self._file is None or self._written:
            return
        try:
            self._file.write(self._packed, FORM if self._whole else FORM_1)
        except OSError as error:
            if not self._failed:
                self._failed = True
                say("checkpoint not written", level="error", why=str(error))
            return
        except UsageError as error:
            # Another file has its name: the program ends, after its last report.
            self.lost, file, self._file = error, self._file, None
            file.close()
            return
        if self._failed:
            say("checkpoint written again")
        self._written, self._failed = True, False

    def _note(self, key: Key, record: Any | None) -> None:
        """Remember whether this record holds a whole scatter."""
        if has_whole_scatter(record):
            self._whole.add(key)
        else:
            self._whole.discard(key)

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.flush()
        if self._file is not None:
            self._file.close()
