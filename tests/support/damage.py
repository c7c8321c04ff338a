"""Damage: what becomes of honest messages in the wrong hands, field by field or bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from submerge_proto.v1 import summary_pb2

Rng = np.random.Generator

WHOLE = (0, 1, 2, 63, 64, 65, 256, 2**20, 2**31, 2**32 - 1, 2**40, 2**41, 2**53, 2**53 + 1)
WHOLE += (2**61, 2**61 + 1, 2**62, 2**62 + 1, 2**63 - 1, 2**63, 2**64 - 1)
REAL = (0.0, -0.0, 1.0, -1.0, 5e-324, 1e-310, 2.0**-601, 2.0**-600, 1e-50, 1e-30, 1e-6, 0.5)
REAL += (1e6, 1e12, 1.9e19, 3.4e38, 3.5e38, 1e140, 1e280, 1.7e308, -1.7e308)
REAL += (float("nan"), float("inf"), float("-inf"))
TEXTS = ("", ".", "a/b", "+", "#", "x" * 64, "x" * 65, "room\n", "пресс", "\0", "\x1b[2J", "r")
"""Numbers and texts at the edges of what is believed, and beyond."""


def damaged(data: bytes, rng: Rng) -> bytes:
    """Flip a bit or a few, cut it short, or repeat a piece."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if len(out) < 2:
            break
        at = int(rng.integers(len(out)))
        match int(rng.integers(6)):
            case 0:
                del out[at:]
            case 1:
                out[at:at] = out[at : at + int(rng.integers(1, 20))]
            case 2:
                out[at] = int(rng.integers(256))
            case _:
                out[at] ^= 1 << int(rng.integers(8))
    return bytes(out)


def spliced(one: bytes, other: bytes, rng: Rng) -> bytes:
    """Go on with another message, from any place to any place, or after the whole of the first."""
    if rng.random() < 0.5:
        return one + other  # which protobuf merges
    return one[: int(rng.integers(len(one) + 1))] + other[int(rng.integers(len(other) + 1)) :]


def mutate(form: Any, rng: Rng) -> None:
    """Change one field of a message, or of those within it, whether it is there or not."""
    places = [(holder, field) for holder in _holders(form) for field in holder.DESCRIPTOR.fields]
    holder, field = places[int(rng.integers(len(places)))]
    value = getattr(holder, field.name)
    if field.cpp_type == field.CPPTYPE_MESSAGE:
        _mutate_part(holder, field, value, rng)
    elif hasattr(value, "extend"):
        _mutate_list(value, field, rng)
    else:
        _put(holder, field, _other(value, rng))


def _holders(form: Any) -> Iterator[Any]:
    """Walk a message and those that are in it."""
    yield form
    for field, value in form.ListFields():
        if field.cpp_type == field.CPPTYPE_MESSAGE:
            for part in value if hasattr(value, "extend") else [value]:
                yield from _holders(part)


def _mutate_part(holder: Any, field: Any, value: Any, rng: Rng) -> None:
    if hasattr(value, "extend"):
        if len(value) and rng.random() < 0.6:
            value.extend(list(value) * int(rng.integers(1, 5)))
        elif rng.random() < 0.3:
            del value[:]
        else:
            value.add()
    elif rng.random() < 0.4:
        holder.ClearField(field.name)
    elif isinstance(value, summary_pb2.Subspace) and rng.random() < 0.3:
        value.MergeFrom(holder.subspace)
    elif rng.random() < 0.3:
        _swap(holder, field, value)
    else:
        value.SetInParent()


def _swap(holder: Any, field: Any, value: Any) -> None:
    """Put the bytes of another part in its place, of another type perhaps."""
    for other, part in holder.ListFields():
        if other.cpp_type == other.CPPTYPE_MESSAGE and other is not field:
            first = part[0] if hasattr(part, "extend") and len(part) else part
            if not hasattr(first, "extend"):
                try:
                    value.MergeFromString(first.SerializePartialToString())
                except DecodeError:
                    holder.ClearField(field.name)  # no such part has these bytes
                return


def _mutate_list(value: Any, field: Any, rng: Rng) -> None:
    if len(value) and rng.random() < 0.3:
        del value[int(rng.integers(len(value))) :]
    elif len(value) and rng.random() < 0.5:
        i = int(rng.integers(len(value)))
        new = _other(value[i], rng)
        try:
            value[i] = new
        except (ValueError, TypeError):
            value[i] = type(value[i])()
    else:
        one = "" if field.cpp_type == field.CPPTYPE_STRING else 1
        value.extend(list(value) * int(rng.integers(1, 4)) or [one])


def _put(holder: Any, field: Any, value: Any) -> None:
    try:
        setattr(holder, field.name, value)
    except (ValueError, TypeError):
        holder.ClearField(field.name)  # too large for the field, or no text


def _other(value: Any, rng: Rng) -> Any:
    """Return another value of a field's type."""
    match value:
        case bool():
            return not value
        case int():
            near = (value + 1, max(0, value - 1), value * 2, value // 2)
            return int(rng.choice(np.array([*WHOLE, *near], dtype=object)))
        case float():
            near = (value * (1 + 1e-6), value * 2, value / 2, -value)
            return float(rng.choice([*REAL, *near]))
        case str():
            return str(rng.choice(TEXTS))
        case _:
            return _other_bytes(bytes(value), rng)


def _other_bytes(value: bytes, rng: Rng) -> bytes:
    """Return other bytes: an array with a number changed, longer or shorter, or none."""
    kind = str(rng.choice(["<f8", "<f4", "<u8", "i1"]))
    size = np.dtype(kind).itemsize
    draw = rng.random()
    if draw < 0.5 and len(value) >= size:
        array = np.frombuffer(value[: len(value) // size * size], kind).copy()
        at = int(rng.integers(len(array)))
        with np.errstate(all="ignore"):
            if kind.startswith("<f"):
                near = [*REAL, *(array[at] * np.array([1 + 1e-6, 2, 0.5, -1, 1e-3]))]
                array[at] = np.array(rng.choice(near)).astype(kind)
            else:
                array[at] = np.array(rng.integers(0, 2**63)).astype(kind)
        return array.tobytes()
    if draw < 0.6:
        return value[: int(rng.integers(len(value) + 1))]
    if draw < 0.7:
        return value[: len(value) // size * size - size] if len(value) >= size else value
    if draw < 0.8:
        return value + value[:size]
    if draw < 0.9:
        return bytes(len(value))
    return rng.bytes(int(rng.choice([0, 1, 8, 16, 17, 32, 64, len(value)])))
