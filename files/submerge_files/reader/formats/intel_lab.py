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
from typing import Any, NamedTuple, cast

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
    first, name = QUANTITIES.index(wanted[0]), source.path.name
    cells, values, stamps, left_out = _collected(source, slice(first, first + len(wanted)))
    notes = [f"{counted(n, *BAD[kind])} left out of {name}" for kind, n in left_out.items() if n]
    present = ~np.isnan(values).all(axis=1)
    if silent := len(values) - int(np.count_nonzero(present)):
        notes.append(f"{counted(silent, 'row')} of {name} without {' or '.join(wanted)} left out")
    cells, values = cells[present], values[present]
    if not len(cells):
        raise refusal(
            source.path,
            expected=f"readings of {' or '.join(wanted)}",
            got="none: " + "; ".join(notes),
            hint="choose another quantity, or check how the log was cut",
        )
    epochs, row = np.unique(cells[:, 0], return_inverse=True)
    motes, column = np.unique(cells[:, 1], return_inverse=True)
    place = row * len(motes) + column
    rows = np.full((len(epochs) * len(motes), len(wanted)), np.nan)
    for i in range(len(wanted)):
        # NumPy does not define which of several writes to a place wins: reversed, the first of
        # each is the last reading.
        known = np.flatnonzero(~np.isnan(values[:, i]))[::-1]
        places, last = np.unique(place[known], return_index=True)
        rows[places, i] = values[known[last], i]
    if repeated := len(place) - len(np.unique(place)):
        notes.append(f"{counted(repeated, 'repeated reading')} in {name}: the last one counts")
    names = [f"mote{mote}" for mote in motes]
    if quantity == "all":
        names = [f"{mote}.{each}" for mote in names for each in wanted]
    known_stamps = [stamps.get(epoch, "") for epoch in epochs.tolist()]
    return MoteLog(tuple(names), rows.reshape(len(epochs), -1), known_stamps, tuple(notes))


def _collected(
    source: Source, wanted: slice
) -> tuple[npt.NDArray[np.int64], Array, dict[int, str], Counter[str]]:
    """Return epochs and motes (n, 2), their values, each epoch's first time, and bad lines."""
    cells, values, stamps = array("q"), array("d"), dict[int, str]()
    left_out = Counter(dict.fromkeys(BAD, 0))
    with source.unpacked() as stream:
        # GzipFile finds lines in Python; a buffer over it finds them in C.
        lines: Any = io.BufferedReader(cast("Any", stream), 1 << 20) if source.packed else stream
        for line in lines:
            fields = line.split()
            if _LINE.match(line):
                stamp = f"{fields[0].decode()} {fields[1].decode()}"
                stamps[int(fields[2])] = min(stamp, stamps.get(int(fields[2]), stamp))
            if len(fields) != FIELDS and fields:
                fields = _in_place(line)
            if len(fields) < 4:
                left_out["truncated"] += bool(fields)
                continue
            try:
                epoch, mote = int(fields[2]), int(fields[3])
                readings = list(map(float, fields[4:]))
            except ValueError:
                left_out["broken"] += 1
                continue
            # Python reads 1_000 as a number; a log has no such numbers.
            odd = len(fields) > FIELDS or b"_" in line or any(map(math.isinf, readings))
            if odd or not 0 <= epoch <= LATEST:
                left_out["broken"] += 1
            elif not 1 <= mote <= MOTES:
                left_out["unknown"] += 1
            else:
                cells.extend((epoch, mote))
                values.extend(readings[wanted])
    width = wanted.stop - wanted.start
    found = np.asarray(cells).reshape(-1, 2), np.asarray(values).reshape(-1, width)
    return *found, stamps, left_out


def _in_place(line: bytes) -> list[bytes]:
    """Split a line without eight words; a missing field becomes nan in its place."""
    fields = _SEPARATOR.split(line.rstrip(b"\r\n"))
    if len(fields) > FIELDS or b"" in fields[:4]:
        # These are columns padded with blanks, not single separators.
        fields = line.split()
    if len(fields) < 4:
        return fields
    return [field or b"nan" for field in fields] + [b"nan"] * (FIELDS - len(fields))
