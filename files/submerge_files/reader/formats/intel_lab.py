"""The Intel Lab log (Deshpande et al. 2004): one line a reading of one mote.

    2004-03-31 03:38:15.757551 2 1 122.153 -3.91901 11.04 2.03397
    date       time            epoch mote temperature humidity light voltage

It becomes a matrix, an epoch a row and a mote a column (with "all", four columns). Radios with
dying batteries wrote it: a bad line is counted and left out where other formats would be refused.

1. Fields may be missing at the end of a line, or inside it: then there are two separators
   side by side, and the later fields keep their places.
2. Of several readings of a mote in an epoch, the last one counts.
3. Epochs and motes without any reading of the quantity are left out.
"""

from __future__ import annotations

import difflib
import io
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge import Array, UsageError
from submerge_client.datasets.source import Source, refusal
from submerge_client.datasets.table import counted

QUANTITIES = ("temperature", "humidity", "light", "voltage")
CHOICES = (*QUANTITIES, "all")
USUAL = "temperature"
MOTES = 54
FIELDS = 8
LATEST = 2**53  # the log's last epoch is 65535; a number beyond this is a broken field

BAD = {
    "truncated": ("truncated row", "truncated rows"),
    "broken": ("broken row", "broken rows"),
    "unknown": ("row of an unknown mote", "rows of unknown motes"),
}
"""The kinds of bad line, as the notes count them."""

_LINE = re.compile(
    rb"^[ \t]*\d{4}-\d\d-\d\d[ \t]+\d\d:\d\d:\d\d(\.\d+)?([ \t]+\d+){2}([ \t\r\n]|$)", re.M
)
_SEPARATOR = re.compile(rb"[ \t]")
_BUFFER = 1 << 20


class MoteReadings(NamedTuple):
    """Readings in the order of their lines, (n, q) for q quantities, NaN for a missing field."""

    epochs: npt.NDArray[np.int64]
    motes: npt.NDArray[np.int8]
    values: Array


class MoteLog(NamedTuple):
    """Readings (n, motes * q), an epoch a row, and the earliest date and time of each epoch."""

    names: tuple[str, ...]
    rows: Array
    stamps: list[str]
    notes: tuple[str, ...]


def check_quantity(quantity: str) -> None:
    """Refuse a quantity that no log has, whatever the files are."""
    if quantity not in CHOICES:
        near = difflib.get_close_matches(quantity, CHOICES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"quantity must be one of {', '.join(CHOICES)}, got {quantity!r}{hint}")


def recognizes(head: bytes) -> bool:
    """Return whether a first line is date, time, epoch, mote, and most have a log's fields."""
    # Lines of other tables may also begin with a date, a time and two numbers.
    lines = [line for line in head.splitlines()[:20] if line.strip()]
    widths = [len(line.split()) for line in lines]
    found = _LINE.search(head[:4096]) is not None
    return found and b"\t" not in lines[0] and 2 * widths.count(FIELDS) > len(widths)


def read(source: Source, quantity: str) -> MoteLog:
    """Read one quantity of a log, or "all"."""
    wanted = QUANTITIES if quantity == "all" else (quantity,)
    first = QUANTITIES.index(wanted[0])
    stamps: dict[int, str] = {}
    with source.unpacked() as stream:
        lines = _stamped(_lines(source, stream), stamps)
        readings, left_out = _collect(lines, slice(first, first + len(wanted)))

    name = source.path.name
    present = np.flatnonzero(~np.isnan(readings.values).all(axis=1))
    silent = len(readings.values) - len(present)
    readings = MoteReadings(
        readings.epochs[present], readings.motes[present], readings.values[present]
    )
    notes = [f"{counted(n, *BAD[kind])} left out of {name}" for kind, n in left_out.items() if n]
    if silent:
        notes.append(f"{counted(silent, 'row')} of {name} without {' or '.join(wanted)} left out")
    if len(readings.epochs) == 0:
        raise refusal(
            source.path,
            expected=f"readings of {' or '.join(wanted)}",
            got="none: " + "; ".join(notes),
            hint="choose another quantity, or check how the log was cut",
        )
    epochs, motes, rows, repeated = _matrix(readings)
    if repeated:
        notes.append(f"{counted(repeated, 'repeated reading')} in {name}: the last one counts")
    names = [f"mote{mote}" for mote in motes]
    if quantity == "all":
        names = [f"{mote}.{each}" for mote in names for each in wanted]
    known = [stamps.get(epoch, "") for epoch in epochs.tolist()]
    return MoteLog(tuple(names), rows, known, tuple(notes))


def _stamped(lines: Iterable[bytes], stamps: dict[int, str]) -> Iterator[bytes]:
    """Yield the same lines, and keep the earliest date and time of each epoch."""
    for line in lines:
        if _LINE.match(line):
            day, clock, epoch = line.split(None, 3)[:3]
            stamp = f"{day.decode()} {clock.decode()}"
            stamps[int(epoch)] = min(stamp, stamps.get(int(epoch), stamp))
        yield line


def _lines(source: Source, stream: BinaryIO) -> Iterable[bytes]:
    # GzipFile finds lines in Python; a buffer over it finds them in C.
    return io.BufferedReader(stream, _BUFFER) if source.packed else stream  # type: ignore[type-var]


def _collect(lines: Iterable[bytes], wanted: slice) -> tuple[MoteReadings, Counter[str]]:
    """Read the lines once; return the usable readings, and the counts of bad lines by kind."""
    epochs, motes, values = array("q"), array("b"), array("d")
    left_out = Counter(dict.fromkeys(BAD, 0))
    for line in lines:
        fields = line.split()
        if len(fields) != FIELDS:
            if not fields:
                continue
            fields = _in_place(line)
            if len(fields) < 4:
                left_out["truncated"] += 1
                continue
        try:
            epoch, mote = int(fields[2]), int(fields[3])
            readings = list(map(float, fields[4:]))
        except ValueError:
            left_out["broken"] += 1
            continue
        # Python reads 1_000 as a number; a log has no such numbers.
        if (
            len(fields) > FIELDS
            or not 0 <= epoch <= LATEST
            or b"_" in line
            or math.inf in readings
            or -math.inf in readings
        ):
            left_out["broken"] += 1
        elif not 1 <= mote <= MOTES:
            left_out["unknown"] += 1
        else:
            epochs.append(epoch)
            motes.append(mote)
            values.extend(readings[wanted])
    width = wanted.stop - wanted.start
    return MoteReadings(
        np.asarray(epochs), np.asarray(motes), np.asarray(values).reshape(-1, width)
    ), left_out


def _in_place(line: bytes) -> list[bytes]:
    """Split a line without eight words; a missing field becomes nan in its place."""
    fields = _SEPARATOR.split(line.rstrip(b"\r\n"))
    if len(fields) > FIELDS or b"" in fields[:4]:
        # These are columns padded with blanks, not single separators.
        fields = line.split()
    if len(fields) < 4:
        return fields
    return [field or b"nan" for field in fields] + [b"nan"] * (FIELDS - len(fields))


def _matrix(
    readings: MoteReadings,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int8], Array, int]:
    """Return readings by epoch and mote: these, (epochs, motes * q), and how many repeat."""
    epochs, row = np.unique(readings.epochs, return_inverse=True)
    motes, column = np.unique(readings.motes, return_inverse=True)
    cell = row * len(motes) + column
    width = readings.values.shape[1]
    flat = np.full((len(epochs) * len(motes), width), np.nan)
    for quantity in range(width):
        present = np.flatnonzero(~np.isnan(readings.values[:, quantity]))
        # NumPy does not define which of several writes to a cell wins. Reversed, the first
        # of each cell is the last reading.
        present = present[::-1]
        cells, last = np.unique(cell[present], return_index=True)
        flat[cells, quantity] = readings.values[present[last], quantity]
    repeated = len(cell) - len(np.unique(cell))
    return epochs, motes, flat.reshape(len(epochs), -1), repeated
