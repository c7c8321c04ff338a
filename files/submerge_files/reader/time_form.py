"""TimeForm: how the values of a column of times become seconds since 1970.

| form | example | read |
|---|---|---|
| of a time type | Parquet's timestamps | as numbers |
| text | `2026-11-23 10:00` | as text |
| slashed dates, in one order | `03/14/2026 2:05 PM` | as text |
| a pattern of `strptime` | `--time-format '%d.%m.%y'` | as text |
| since 1970, in s, ms, us or ns | `1764000000` | as numbers |
| dates without separators | `20260302140500` | as numbers |
| serial dates of Excel | `45000.5` | as numbers |
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from submerge import Array, UsageError
from submerge_client.datasets.day_order import slashed_seconds
from submerge_client.datasets.instants import seconds_of, to_micros, to_seconds

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""Units of numbers since 1970, and how many of each are a second."""

COMPACT_DIGITS = (14, 12, 10, 8)
"""Digits of dates without separators: to the second, minute, hour or day."""

YEARS = (1970, 2100)
"""From, to: years that dates without separators are read as."""

EXCEL_1970, DAY_S = 25569, 86400
"""The serial date of 1 January 1970."""


class TimeForm(NamedTuple):
    """How values become times.

    numeric : whether they are read as numbers; else as text
    seconds : makes values (n,) seconds since 1970, NaN for what is no time
    typed : whether the column's type says so
    """

    numeric: bool
    seconds: Callable[[Any], Array]
    typed: bool = False

    def of_text(self, texts: list[str] | tuple[str, ...]) -> Array:
        """Return times (n,) of values as they stand in a file; NaN for what is no time."""
        if not self.numeric:
            return self.seconds(texts)
        numbers = np.full(len(texts), np.nan)
        for i, text in enumerate(texts):
            try:
                numbers[i] = float(text)
            except ValueError:
                continue
        return self.seconds(numbers)


def since_1970(scale: float) -> TimeForm:
    """Return the form of numbers since 1970, so many of which are a second."""
    return TimeForm(True, lambda values: to_micros(values / scale))


def slashed(order: bool) -> TimeForm:
    """Return the form of slashed dates in one order of day and month."""
    return TimeForm(False, partial(slashed_seconds, order=order))


def compact_seconds(values: Array) -> Array:
    """Return times (n,) of dates without separators; NaN for numbers that are none.

    Examples
    --------
    >>> compact_seconds(np.array([19700102.0, 19700101000005.0, 19700132.0]))
    array([8.64e+04, 5.00e+00,      nan])
    """
    seconds = np.full(len(values), np.nan)
    whole = np.isfinite(values) & (values == np.floor(values))
    for digits in COMPACT_DIGITS:
        low, high = (year * 10 ** (digits - 4) for year in YEARS)
        which = np.flatnonzero(whole & (values >= low) & (values < high))
        parts = values[which].astype(np.int64) * 10 ** (14 - digits)
        clock, date = parts % 10**6, parts // 10**6
        if digits == 8:
            clock = np.zeros_like(clock)
        day, month, year = date % 100, date // 100 % 100, date // 10_000
        months = (year - 1970) * 12 + month - 1
        midnight = months.astype("M8[M]").astype("M8[D]") + (day - 1)
        right = (month >= 1) & (month <= 12) & (day >= 1)
        right &= midnight.astype("M8[M]") == months.astype("M8[M]")
        hour, minute, second = clock // 10_000, clock // 100 % 100, clock % 100
        right &= (hour < 24) & (minute < 60) & (second < 60)
        found = midnight.astype(np.int64) * DAY_S + hour * 3600 + minute * 60 + second
        seconds[which] = np.where(right, found, np.nan)
    return seconds


def _excel_seconds(values: Array) -> Array:
    # A serial date has a millisecond, and not much more.
    return np.asarray(np.rint((values - EXCEL_1970) * DAY_S * 1e3) / 1e3)


def _parsed(pattern: str, texts: list[str]) -> Array:
    return np.array([_by_pattern(pattern, text) for text in texts])


def _by_pattern(pattern: str, text: str) -> float:
    try:
        return seconds_of(datetime.strptime(text.strip(), pattern))
    except ValueError:
        return np.nan


def parsed_by(option: str) -> TimeForm:
    """Return the form that a person names: a unit, "excel", or a pattern of `strptime`.

    Raises
    ------
    UsageError
        If it is none.
    """
    if option in UNITS:
        return since_1970(UNITS[option])
    if option == "excel":
        return EXCEL
    if "%" not in option:
        raise UsageError(
            f"--time-format is a pattern such as '%d/%m/%Y %H:%M', one of {', '.join(UNITS)}, or"
            f" excel, got {option!r}: name what the column holds"
        )
    now = datetime(2026, 11, 23, 10)
    try:
        datetime.strptime(now.strftime(option), option)
    except ValueError as error:
        raise UsageError(
            f"expected --time-format as of strptime, got {option!r} ({error}):"
            " write such as '%d/%m/%Y %H:%M'"
        ) from error
    if not any(mark in option for mark in ("%Y", "%y", "%c", "%x", "%G", "%s")):
        raise UsageError(
            f"expected --time-format with a year (%Y or %y), got {option!r}: give the whole date;"
            " --time DATE+CLOCK reads two columns as one"
        )
    return TimeForm(False, partial(_parsed, option))


TYPED = TimeForm(True, lambda values: values, typed=True)
TEXT = TimeForm(False, to_seconds)
COMPACT = TimeForm(True, compact_seconds)
EXCEL = TimeForm(True, _excel_seconds)
