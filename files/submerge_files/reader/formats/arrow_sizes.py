"""What Arrow IPC batches take when they are unpacked, by what the file says, before any is.

pyarrow unpacks a batch as soon as it reads it. The sizes are in the file: a message's header, a
flatbuffer, lists the buffers of its body, and a packed buffer begins with its size. We read these
few numbers ourselves (Arrow columnar format 1.5, "Encapsulated message format").
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any


class DamagedHeader(Exception):
    """A header lacks what it must have."""


DAMAGE = (struct.error, IndexError, DamagedHeader)
"""What reading a damaged header raises."""

_DICTIONARY, _BATCH = 2, 3
"""Kinds of message that have buffers: `MessageHeader` of the format's Message.fbs."""


def unpacked_sizes(pa: Any, path: str, skip: int) -> Iterator[int]:
    """Yield the bytes of each batch, unpacked.

    skip : Where the messages begin: after a file's first bytes.
    """
    with pa.memory_map(path) as mapped:
        mapped.seek(skip)
        for message in pa.ipc.MessageReader.open_stream(mapped):
            yield _size(memoryview(message.metadata), memoryview(message.body or b""))


def _size(header: memoryview, body: memoryview) -> int:
    message = struct.unpack_from("<I", header, 0)[0]
    kind = _field(header, message, 1)
    if kind is None or header[kind] not in (_DICTIONARY, _BATCH):
        return 0
    batch = _table(header, message, 2)
    if header[kind] == _DICTIONARY:
        batch = _table(header, batch, 1)
    listed = _field(header, batch, 2)
    if listed is None:
        return 0
    packed = _field(header, batch, 3) is not None
    start = listed + struct.unpack_from("<I", header, listed)[0]
    count = struct.unpack_from("<I", header, start)[0]
    total = 0
    for i in range(count):
        offset, length = struct.unpack_from("<qq", header, start + 4 + 16 * i)
        size = struct.unpack_from("<q", body, offset)[0] if packed and length else length
        # A packed buffer of size -1 is stored as it is.
        total += max(size, 0) if size != -1 else length
    return total


def _table(header: memoryview, table: int, number: int) -> int:
    """Return where a table's field, itself a table, begins."""
    at = _field(header, table, number)
    if at is None:
        raise DamagedHeader("it lacks fields")
    return int(at + struct.unpack_from("<I", header, at)[0])


def _field(header: memoryview, table: int, number: int) -> int | None:
    """Return where a table's field is, or None if it has its default."""
    vtable = table - struct.unpack_from("<i", header, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", header, vtable)[0]:
        return None
    offset = struct.unpack_from("<H", header, vtable + 4 + 2 * number)[0]
    return table + offset if offset else None
