"""A reader and a writer of protobuf's wire format, without a schema.

https://protobuf.dev/programming-guides/encoding/ defines it. Groups, which nothing has written
since 2008, are refused. A field is read in one pass over the bytes; nothing is copied.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from submerge_client.sensors.mqtt.decoder import MalformedMessage

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

LONGEST_VARINT = 10
"""Bytes of a number of 64 bits, seven in each."""


def read_fields(data: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """Yield the fields of a message: number, wire type and value, in their order.

    A value is a whole number for a varint, or else its bytes.

    Raises
    ------
    MalformedMessage
        If the bytes are no message.
    """
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        if not 0 < number < 1 << 29:
            raise MalformedMessage(f"expected the number of a field, got {number}")
        if kind == VARINT:
            value, place = _varint(data, place)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, place = _varint(data, place)
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
        else:
            raise MalformedMessage(f"expected a wire type of protobuf, got {kind}")
        if size > len(data) - place:
            raise MalformedMessage(f"expected {size} bytes more, got {len(data) - place}")
        yield number, kind, data[place : place + size]
        place += size


def text_in(value: int | memoryview) -> str:
    """Return a field's text."""
    try:
        return bytes(_bytes(value)).decode()
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"expected text, got other bytes: {error}") from None


def message_in(value: int | memoryview) -> memoryview:
    """Return a field's bytes: those of an inner message."""
    return _bytes(value)


def whole_in(value: int | memoryview) -> int:
    """Return a field's whole number."""
    if isinstance(value, int):
        return value
    raise MalformedMessage("expected a varint, got bytes")


def real_in(value: int | memoryview) -> float:
    """Return a field's float or double."""
    data = _bytes(value)
    if len(data) not in (4, 8):
        raise MalformedMessage(f"expected 4 or 8 bytes of a float, got {len(data)}")
    return float(struct.unpack("<f" if len(data) == 4 else "<d", data)[0])


def write_field(number: int, value: int | bytes) -> bytes:
    """Return a field as bytes: a varint, or bytes with their length."""
    if isinstance(value, int):
        return _as_varint(number << 3 | VARINT) + _as_varint(value)
    return _as_varint(number << 3 | BYTES) + _as_varint(len(value)) + value


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise MalformedMessage("expected bytes, got a varint")
    return value


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    """Return a varint and the place behind it."""
    value = 0
    for i, byte in enumerate(data[place : place + LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value & (1 << 64) - 1, place + i + 1
    raise MalformedMessage("expected the end of a varint, got none")


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
