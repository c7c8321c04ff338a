"""ClockColumn: which column holds the times, and how its values become seconds since 1970.

1. A column of a time type, or of text that reads as times, is found by its content. A column of
   numbers is found by its name (time, timestamp, date, ts, ...) and its size.
2. Of several, the first in the file's order counts. A note names the others.
3. Numbers are seconds, milliseconds, microseconds or nanoseconds since 1970 by their size; smaller
   ones are seconds from an unknown start.
4. A column of dates and one of times of day are read as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submerge import Array
from submerge_client.datasets.fields import is_number
from submerge_client.datasets.instants import (
    is_ambiguous,
    is_clock,
    is_time,
    to_micros,
    to_seconds,
)
from submerge_client.datasets.source import Place, refusal, shown
from submerge_fleet.files.options import NO_TIME
from submerge_fleet.files.selecting import place_of
from submerge_fleet.files.tables import ColumnHead, Kind, RawRows, TableFile, names_of

_WORDS = frozenset("time times timestamp timestamps date datetime ts epoch unixtime utc".split())  # noqa: SIM905
_ELAPSED = frozenset("time times timestamp ts seconds elapsed".split())  # noqa: SIM905

SCALES = ((1e8, 1e11, 1.0), (1e11, 1e14, 1e3), (1e14, 1e17, 1e6), (1e17, 1e20, 1e9))
"""From, to, how many a second: times since 1970 from 1973 on, in s, ms, µs and ns."""

FORMS = "2026-11-23 10:00, 2026-11-23T10:00:00Z, 23.11.2026 10:00:00 or numbers since 1970"


@dataclass(frozen=True)
class ClockColumn:
    """The column or columns of a file that say when its rows were.

    places : one column, or a date's and a time of day's
    scale : how many units of a number are a second; None for text
    typed : whether the numbers are seconds already
    """

    places: tuple[int, ...]
    scale: float | None = None
    typed: bool = False

    @property
    def numeric(self) -> bool:
        """Whether it is read as numbers."""
        return self.typed or self.scale is not None

    def seconds(self, file: TableFile, raw: RawRows, numbers: Array | None) -> Array:
        """Return the times (n,) of some rows in seconds since 1970.

        Parameters
        ----------
        raw : RawRows
            Its first texts are this column's, if it is text.
        numbers : (n,) or None
            Its values, if it is numeric.

        Raises
        ------
        UsageError
            At the first row without a time.
        """
        if numbers is None:
            texts = raw.texts[0]
            if len(self.places) == 2:
                texts = [f"{day} {clock}" for day, clock in zip(*raw.texts[:2], strict=True)]
            seconds = to_seconds(texts)
        else:
            texts = []
            seconds = numbers if self.typed else to_micros(numbers / (self.scale or 1.0))
        bad = np.flatnonzero(~np.isfinite(seconds))
        if len(bad):
            row = int(bad[0])
            raise _no_time(file, self.places[0], raw.places[row], texts[row] if texts else "")
        return seconds


class Found(NamedTuple):
    """What times a file has.

    clock : None if it has none
    notes : what was guessed
    others : places of further columns of times
    """

    clock: ClockColumn | None
    notes: tuple[str, ...] = ()
    others: tuple[int, ...] = ()


def clock_of(file: TableFile, option: str) -> Found:
    """Find the time column of a file, or read the one that is named.

    Raises
    ------
    UsageError
        If there is no such column, or it holds no times that we can read.
    """
    if option == NO_TIME and NO_TIME not in names_of(file):
        return Found(None)
    if option:
        return _named(file, option)
    # By type, then by content, then by name: the surest first.
    places = [*dict.fromkeys([*_by_type(file), *_by_content(file), *_by_name(file)])]
    if not places:
        _check_passed_over(file)
        return Found(None, tuple(_passed_over(file)))
    found = _read_as(file, places[0])
    read = found.clock.places if found.clock else ()
    others = tuple(place for place in places if place not in read)
    numbers = [file.columns[i].name for i in others if file.columns[i].kind == Kind.NUMBERS]
    notes = [f"column {name} holds times too and is left out" for name in numbers]
    return Found(found.clock, (*found.notes, *notes), others)


def _named(file: TableFile, option: str) -> Found:
    day, plus, clock = option.partition("+")
    if plus and option not in names_of(file):
        return Found(ClockColumn((place_of(file, day, "--time"), place_of(file, clock, "--time"))))
    return _read_as(file, place_of(file, option, "--time"))


def _by_type(file: TableFile) -> Iterator[int]:
    return (i for i, column in enumerate(file.columns) if column.typed)


def _by_content(file: TableFile) -> Iterator[int]:
    for i, column in enumerate(file.columns):
        some_text = column.kind == Kind.TEXT and _is_called_time(column)
        some_times = any(is_time(v) or is_ambiguous(v) for v in column.full)
        if column.kind == Kind.TIMES or (some_text and some_times):
            yield i


def _by_name(file: TableFile) -> Iterator[int]:
    for i, column in enumerate(file.columns):
        if column.kind == Kind.NUMBERS and _is_called_time(column):
            values = _values(column)
            if _scale(values) or (_normal(column.name) in _ELAPSED and _rises(values)):
                yield i


def _check_passed_over(file: TableFile) -> None:
    """Refuse a column that is called time and holds text with digits: times that we cannot read."""
    for place, column in enumerate(file.columns):
        digits = any(mark.isdigit() for mark in "".join(column.full[:1]))
        if column.kind == Kind.TEXT and digits and _is_called_time(column):
            raise _not_times(file, place)


def _passed_over(file: TableFile) -> Iterator[str]:
    for column in file.columns:
        if column.kind == Kind.NUMBERS and _is_called_time(column):
            yield f"{column.name} holds numbers that are no times and is read as a channel"


def _read_as(file: TableFile, place: int) -> Found:
    column = file.columns[place]
    if column.typed:
        return Found(ClockColumn((place,), typed=True))
    if column.kind == Kind.NUMBERS:
        if scale := _scale(_values(column)):
            return Found(ClockColumn((place,), scale))
        note = f"{column.name} holds seconds from an unknown start: shown as if from 1970"
        return Found(ClockColumn((place,), 1.0), (note,))
    if not any(is_time(value) for value in column.full):
        raise _not_times(file, place)
    days_only = all(len(value) <= 10 for value in column.full)
    beside = [
        i for i, each in enumerate(file.columns) if each.full and all(map(is_clock, each.full))
    ]
    if days_only and beside:
        return Found(ClockColumn((place, beside[0])))
    return Found(ClockColumn((place,)))


def _not_times(file: TableFile, place: int) -> Exception:
    column = file.columns[place]
    got = shown(column.full[0]) if column.full else "no value"
    ambiguous = bool(column.full) and is_ambiguous(column.full[0])
    return refusal(
        Place(file.path, column=place + 1, name=column.name),
        expected=f"times such as {FORMS}",
        got=got,
        hint="nothing says whether the day or the month is first: write 2026-11-23"
        if ambiguous
        else "write them so, name another column (--time), or read none (--time none)",
    )


def _no_time(file: TableFile, place: int, at: int, text: str) -> Exception:
    return refusal(
        f"{file.path}, {file.unit} {at}, column {place + 1} ({file.columns[place].name})",
        expected=f"a time such as {FORMS}" if text else "a time in each row",
        got=shown(text) if text else "none",
        hint="nothing says whether the day or the month is first: write 2026-11-23"
        if is_ambiguous(text)
        else "write it so, or leave the row out",
    )


def _normal(name: str) -> str:
    return " ".join(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))


def _is_called_time(column: ColumnHead) -> bool:
    words = _normal(column.name).split()
    return not _WORDS.isdisjoint(words) or "".join(words) in _WORDS


def _values(column: ColumnHead) -> Array:
    return np.array([float(value) for value in column.full if is_number(value)])


def _scale(values: Array) -> float | None:
    """Return how many of a column's units are a second, if they are times since 1970."""
    for low, high, scale in SCALES:
        if len(values) and low <= values.min() and values.max() < high:
            return scale
    return None


def _rises(values: Sequence[float] | Array) -> bool:
    return len(values) > 1 and bool((np.diff(values) > 0).all())
