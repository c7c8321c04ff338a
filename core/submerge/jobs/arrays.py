"""pack(), unpack(): named arrays as little-endian bytes behind a JSON header, and back, checked."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from submerge.errors import PeerError, UsageError

Arrays = Mapping[str, npt.NDArray[Any]]
"""Arrays by name: float64, float32 or whole numbers (uint64)."""

Shapes = Mapping[str, tuple[int, ...]]

DTYPES: dict[str, np.dtype[Any]] = {
    "f8": np.dtype("<f8"),
    "f4": np.dtype("<f4"),
    "u8": np.dtype("<u8"),
}
"""What an array may hold, by its word in the header."""

WORDS = {dtype: word for word, dtype in DTYPES.items()}

MAGIC = b"SMJ1"
MOST_HEADER = 1 << 20
"""Bytes of a header: 4096 participants with long names take half of it."""

LARGEST_NUMBER = 1e100
"""What travels is at most this, either way."""

OFF = 1e-6
"""By how much sums may be off: their order is free."""

MOST_ARRAYS, MOST_AXES = 32, 3
MOST_EMPTY = 1 << 32
"""Numbers of an array if its axes of length 0 were 1: NumPy has to bear the others all the same."""

ARRAY_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")


def pack(header: Mapping[str, Any], arrays: Arrays) -> bytes:
    names = sorted(arrays)
    listed = [[name, WORDS[arrays[name].dtype], list(arrays[name].shape)] for name in names]
    text = json.dumps(
        {"arrays": listed, "header": dict(header)},
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
    ).encode()
    bodies = (np.ascontiguousarray(arrays[name]).tobytes() for name in names)
    return b"".join((MAGIC, len(text).to_bytes(4, "little"), text, *bodies))


def unpack(body: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the header and the arrays that bytes hold; PeerError if `pack` makes no such bytes."""
    if body[:4] != MAGIC or len(body) < 8:
        raise PeerError(f"expected a payload of a job, got {len(body)} bytes of something else")
    length = int.from_bytes(body[4:8], "little")
    if length > MOST_HEADER or 8 + length > len(body):
        raise PeerError(f"a header has at most {MOST_HEADER} bytes, got {length}", kind="oversize")
    content = _json(body[8 : 8 + length])
    if not isinstance(content, dict) or set(content) != {"arrays", "header"}:
        raise PeerError("a payload of a job has arrays and a header")
    listed, header = content["arrays"], content["header"]
    if not isinstance(header, dict) or not isinstance(listed, list):
        raise PeerError("a payload of a job has a list of arrays and a header")
    if len(listed) > MOST_ARRAYS:
        raise PeerError(f"at most {MOST_ARRAYS} arrays, got {len(listed)}", kind="oversize")
    arrays: dict[str, npt.NDArray[Any]] = {}
    at = 8 + length
    for each in listed:
        name, dtype, shape = _described(each)
        end = at + math.prod(shape) * dtype.itemsize
        if end > len(body) or name in arrays or math.prod(filter(None, shape)) > MOST_EMPTY:
            raise PeerError(f"array {name}: cut short, or twice", kind="shape")
        # A copy: it is aligned as any other array is, and may be written to.
        found = np.frombuffer(body[at:end], dtype).reshape(shape).copy()
        if dtype.kind == "f" and not np.isfinite(found).all():
            raise PeerError(f"array {name} must be finite", kind="not_finite")
        arrays[name], at = found, end
    if at != len(body):
        raise PeerError(f"{len(body) - at} bytes after the last array", kind="shape")
    return header, arrays


def expect(
    arrays: Arrays,
    shapes: Mapping[str, tuple[int | None, ...]],
    *,
    single: Collection[str] = (),
    whole: Collection[str] = (),
) -> None:
    """Refuse (PeerError) arrays that are not those named, of those shapes; None is any length.

    single, whole : Names of arrays that are float32, and uint64; others are float64.
    """
    if set(arrays) != set(shapes):
        raise PeerError(f"expected arrays {sorted(shapes)}, got {sorted(arrays)}", kind="shape")
    for name, shape in shapes.items():
        got = arrays[name]
        fits = len(shape) == got.ndim and all(
            wanted in (None, n) for wanted, n in zip(shape, got.shape, strict=True)
        )
        dtype = DTYPES["f4" if name in single else "u8" if name in whole else "f8"]
        if not fits or got.dtype != dtype:
            raise PeerError(
                f"array {name}: expected {dtype} {shape}, got {got.dtype} {got.shape}", kind="shape"
            )
        # Sums of larger numbers' squares could overflow.
        if dtype == DTYPES["f8"] and not (np.abs(got) <= LARGEST_NUMBER).all():
            raise PeerError(
                f"array {name} must be at most {LARGEST_NUMBER:g} either way", kind="range"
            )


def added(ups: Sequence[Arrays]) -> Arrays:
    total = dict(ups[0])
    for up in ups[1:]:
        total = {name: array + up[name] for name, array in total.items()}
    return total


def check_counts(counts: npt.NDArray[Any], most: float) -> None:
    """Refuse counts that are no whole numbers, or more than `most` together, with `PeerError`."""
    if not ((counts >= 0) & (counts == np.rint(counts))).all() or not counts.sum() <= most:
        raise PeerError(f"counts are whole numbers, together {most:g} at most", kind="range")


def off_by(off: float, clients: int) -> float:
    """Return by how much what so many clients say may be off: more than theirs are together."""
    # What one parent has taken must be within what the next one takes, rounding included.
    return off * (1.0 + 4.0 * math.log2(clients))


def check_at_most(what: str, values: Any, most: Any, clients: int) -> None:
    """Refuse numbers that are larger, either way, than rows lead to, with `PeerError`."""
    if not (np.abs(values) <= most * (1.0 + off_by(OFF, clients))).all():
        raise PeerError(f"{what} are larger than so many rows lead to", kind="range")


def check_finite(arrays: Arrays) -> None:
    """Refuse results that are no numbers, with `UsageError`."""
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise UsageError(f"the numbers of this job are too large: {name} is not finite")


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PeerError("the header of a payload is no JSON") from error


def _described(each: Any) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    """Return name, type and shape of an array, as a header lists it."""
    name, word, shape = each if isinstance(each, list) and len(each) == 3 else ("", "", [-1])
    named = isinstance(name, str) and isinstance(word, str) and ARRAY_NAME.fullmatch(name)
    shaped = isinstance(shape, list) and len(shape) <= MOST_AXES
    if (
        named
        and word in DTYPES
        and shaped
        and all(type(n) is int and 0 <= n < 2**31 for n in shape)
    ):
        return name, DTYPES[word], tuple(shape)
    raise PeerError("an array has a name, a type and a shape", kind="shape")
