"""What a column of times looks like: its name, and the size of its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from submerge import Array
from submerge_client.datasets.fields import TRUTH, is_number
from submerge_files.reader.formats.tables import ColumnHead, TableFile
from submerge_files.reader.time_form import compact_seconds

_WORDS = frozenset("time times timestamp timestamps date datetime ts epoch unixtime utc".split())  # noqa: SIM905
_ELAPSED = frozenset("time times timestamp ts seconds elapsed".split())  # noqa: SIM905

SCALES = ((1e8, 1e11, 1.0), (1e11, 1e14, 1e3), (1e14, 1e17, 1e6), (1e17, 1e20, 1e9))
"""From, to, how many a second: times since 1970 from 1973 on, in s, ms, µs and ns."""

SERIAL = (20_000, 80_000)
"""Serial dates of Excel, from 1954 to 2119."""


def _normal(name: str) -> str:
    return " ".join(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))


def places_called_time(file: TableFile) -> Iterator[int]:
    """Yield the places of columns that are called time."""
    return (i for i, column in enumerate(file.columns) if is_called_time(column))


def is_called_time(column: ColumnHead) -> bool:
    """Return whether a word of a column's name is one for time."""
    words = _normal(column.name).split()
    return not _WORDS.isdisjoint(words) or "".join(words) in _WORDS


def values_of(column: ColumnHead) -> Array:
    """Return the numbers (n,) among a column's first values."""
    numbers = (value for value in column.full if is_number(value) and value not in TRUTH)
    return np.array([float(value) for value in numbers])


def scale_of(values: Array) -> float | None:
    """Return how many of a column's units are a second, if they are times since 1970."""
    for low, high, scale in SCALES:
        if len(values) and low <= values.min() and values.max() < high:
            return scale
    return None


def is_compact(values: Array) -> bool:
    """Return whether numbers are dates without separators."""
    return len(values) > 0 and bool(np.isfinite(compact_seconds(values)).all())


def is_serial(column: ColumnHead, values: Array) -> bool:
    """Return whether numbers look like serial dates of Excel."""
    low, high = SERIAL
    if not len(values) or values.min() < low or values.max() >= high:
        return False
    if _normal(column.name) not in _ELAPSED:
        return True
    # Seconds from a start are whole numbers, or steps of more than a fraction of a day.
    return bool((values % 1 != 0).any()) and bool((np.abs(np.diff(values)) < 0.5).all())


def is_elapsed(column: ColumnHead, values: Array) -> bool:
    """Return whether numbers look like seconds from a start."""
    rises = len(values) > 1 and bool((np.diff(values) > 0).all())
    return rises and _normal(column.name) in _ELAPSED


def going_on(different: Sequence[int]) -> list[int]:
    """Return which columns of times go on, by how many different times each has, in their order."""
    return [i for i, n in enumerate(different) if 2 * n >= max(different)]


def shared_times(what: str, rows: int, times: int, most: int) -> tuple[str, ...]:
    """Return a note if rows share their times: so many of one machine have so many, `most` one."""
    if rows < 2 * times or most < 2:
        return ()
    said = f"{what}{rows:,} rows have {times:,} time{'s' * (times > 1)}, {most:,} of them one"
    lost = "write them in full, or name another column (--time, DATE+CLOCK for two)"
    coarse = "if clocks are so coarse, times of alarms are no more exact"
    return (f"{said}: if times have lost digits or hours, {lost}; {coarse}",)
