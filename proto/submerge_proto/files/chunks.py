"""Chunks as protobuf, and back, checked: columns of numbers, and two tables of texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from submerge import PeerError
from submerge.protocol.history import Chunk
from submerge_proto.v1 import learnt_pb2 as pb
from submerge_proto.wire import parts
from submerge_proto.wire.fields import number

MOST_CHUNKS, MOST_MACHINES, MOST_FILES = 1 << 18, 1 << 14, 1 << 17
"""Most of each in one file: in memory a quarter of a million chunks take 60 MiB."""

LETTERS = 200  # longest name of a machine or a file
KEY = 32  # bytes of a key


def chunks(value: Iterable[Chunk]) -> pb.Chunks:
    ordered = sorted(value, key=lambda chunk: chunk.key)
    named = [parts.text(chunk.file, LETTERS) for chunk in ordered]
    machines, files = sorted({chunk.machine for chunk in ordered}), sorted(set(named))
    of_machine = {text: place for place, text in enumerate(machines)}
    of_file = {text: place for place, text in enumerate(files)}
    return pb.Chunks(
        keys=b"".join(chunk.key for chunk in ordered),
        rows=_bytes([chunk.rows for chunk in ordered], "<u8"),
        first=_bytes([chunk.first for chunk in ordered], "<f8"),
        last=_bytes([chunk.last for chunk in ordered], "<f8"),
        machines=machines,
        machine=_bytes([of_machine[chunk.machine] for chunk in ordered], "<u4"),
        files=files,
        file=_bytes([of_file[text] for text in named], "<u4"),
    )


def chunks_of(message: pb.Chunks) -> tuple[Chunk, ...]:
    joined = message.keys  # once: each access copies the bytes
    n, rest = divmod(len(joined), KEY)
    if rest or n > MOST_CHUNKS:
        raise PeerError(
            f"expected at most {MOST_CHUNKS} chunks with keys of {KEY} bytes, got"
            f" {len(joined)} bytes",
            kind="oversize",
        )
    keys = [joined[at : at + KEY] for at in range(0, KEY * n, KEY)]
    if any(one >= other for one, other in pairwise(keys)):
        raise PeerError("keys of chunks must ascend, no two alike", kind="unsorted")
    rows = _column("rows", message.rows, "<u8", n)
    first, last = (_column("times", each, "<f8", n) for each in (message.first, message.last))
    _check_rows(rows)
    _check_times(first, last)
    machine = _named("machines", message.machines, message.machine, n, MOST_MACHINES)
    file = _named("files", message.files, message.file, n, MOST_FILES)
    columns = keys, machine, rows.tolist(), first.tolist(), last.tolist(), file
    return tuple(map(Chunk, *columns))


def name_of(what: str, text: str) -> str:
    """Return a name in a file, if it can be printed."""
    if text != parts.text(text, LETTERS):
        raise PeerError(
            f"{what}: expected printable names of at most {LETTERS} letters,"
            f" got {parts.text(text, 40)!r}",
            kind="name",
        )
    return text


def ascending(what: str, texts: Sequence[str], most: int) -> list[str]:
    """Return names that ascend, each of them printable."""
    if len(texts) > most:
        raise PeerError(f"expected at most {most} {what}, got {len(texts)}", kind="oversize")
    named = [name_of(what, text) for text in texts]
    if any(one >= other for one, other in pairwise(named)):
        raise PeerError(f"{what} must ascend, no two alike", kind="unsorted")
    return named


def _named(what: str, texts: Sequence[str], places: bytes, n: int, most: int) -> list[str]:
    table, column = ascending(what, texts, most), _column(what, places, "<u4", n)
    if n and int(column.max()) >= len(table):
        raise PeerError(
            f"{what}: expected places below {len(table)}, got {int(column.max())}", kind="range"
        )
    return [table[place] for place in column.tolist()]


def _check_rows(rows: npt.NDArray[Any]) -> None:
    numbers = rows.tolist()
    if numbers and min(numbers) < 1:
        raise PeerError("a chunk has one row or more, got none", kind="range")
    number("rows", sum(numbers), parts.MOST_READINGS)


def _check_times(first: npt.NDArray[Any], last: npt.NDArray[Any]) -> None:
    timeless = np.isnan(first) & np.isnan(last)
    with np.errstate(invalid="ignore"):
        timed = np.isfinite(first) & np.isfinite(last) & (first <= last)
    if not (timed | timeless).all():
        raise PeerError(
            "times of a chunk: expected a first that is not after the last, or neither",
            kind="range",
        )


def _column(what: str, data: bytes, form: str, n: int) -> npt.NDArray[Any]:
    """Return one number for each of n chunks."""
    if len(data) != np.dtype(form).itemsize * n:
        raise PeerError(
            f"{what}: expected those of {n} chunks, got {len(data)} bytes", kind="shape"
        )
    return np.frombuffer(data, form)


def _bytes(values: Sequence[float], form: str) -> bytes:
    if "u" in form and min(values, default=0) < 0:
        raise OverflowError("a count below 0")  # NumPy 1 would make a large one of it
    return np.array(values, dtype=form).tobytes()
