"""Instants: times in text as seconds since 1970 in UTC.

| form | example |
|---|---|
| ISO 8601, with `T` or a blank | `2026-11-23 10:00`, `2026-11-23T10:00:00.25` |
| an hour of one digit | `2026-11-23 9:00` |
| with a zone | `2026-11-23T10:00:00Z`, `2026-11-23 11:00:00+01:00` |
| year first, with slashes | `2026/11/23 10:00` |
| day first, with points | `23.11.2026 10:00:00` |
| twelve hours | `2026-11-23 2:05 PM` |

1. A time without a zone is taken as UTC. Zones may differ from row to row.
2. Dates such as 11/12/2026 are times, but the day or the month may be first: `day_order` says
   which, and here they are NaN.
3. Times are kept to a microsecond, so the same time is the same float64 from any format.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from submerge import Array

MICRO = 1_000_000

_DATE = r"(\d{4}-\d\d-\d\d|\d{4}/\d\d?/\d\d?|\d\d?\.\d\d?\.\d{4})"
_SLASHED = r"\d\d?([/-])\d\d?\1\d{4}"
_CLOCK = r"\d?\d:\d\d(:\d\d([.,]\d{1,9})?)?(\s?[AaPp]\.?[Mm]\.?)?"
_REST = rf"([T ]\s*{_CLOCK}\s*(Z|UTC|[+-]\d\d:?(\d\d)?)?)?"
_TIME = re.compile(_DATE + _REST, re.ASCII)
_EITHER = re.compile(_SLASHED + _REST, re.ASCII)
_HALF = re.compile(r"(\d?\d)(:[\d:.]+)\s?([ap])\.?m\.?", re.ASCII | re.IGNORECASE)
_ZONELESS = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?Z?", re.ASCII)
_CLOCK_ONLY = re.compile(_CLOCK, re.ASCII)

Times = npt.NDArray[np.float64]


def is_time(field: str) -> bool:
    """Return whether a field is a date, or a date with a time of day."""
    text = field.strip()
    return _TIME.fullmatch(text) is not None or _EITHER.fullmatch(text) is not None


def is_clock(field: str) -> bool:
    """Return whether a field is a time of day alone."""
    return _CLOCK_ONLY.fullmatch(field.strip()) is not None


def is_slashed(field: str) -> bool:
    """Return whether a field is a time whose day and month may be either way round."""
    return _EITHER.fullmatch(field.strip()) is not None


def to_seconds(texts: Sequence[str]) -> Times:
    """Return times (n,) in seconds since 1970; NaN for what is no time, or a slashed date."""
    if len(texts) == 0:
        return np.empty(0)
    if len({*map(len, texts)}) == 1 and _ZONELESS.fullmatch(texts[0]):
        stamps = _at_once(texts)
        if stamps is not None:
            return stamps
    return np.array([_one(text) for text in texts])


def seconds_of(when: datetime) -> float:
    """Return a time in seconds since 1970; without a zone it is in UTC."""
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    since = when - datetime(1970, 1, 1, tzinfo=UTC)
    return float((since.days * 86400 + since.seconds) * MICRO + since.microseconds) / MICRO


def to_micros(seconds: Array) -> Times:
    """Return times rounded to a microsecond.

    Examples
    --------
    >>> float(to_micros(np.array([0.1 + 0.2]))[0])
    0.3
    """
    return np.asarray(np.rint(seconds * MICRO) / MICRO)


def _at_once(texts: Sequence[str]) -> Times | None:
    cut = len(texts[0]) - texts[0].endswith("Z")
    if cut < len(texts[0]) and not all(text.endswith("Z") for text in texts):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy warns of a zone that it leaves out
            stamps = np.array([text[:cut] for text in texts], dtype="datetime64[us]")
    except (ValueError, Warning):
        return None
    if np.isnat(stamps).any():
        return None
    return np.asarray(stamps.astype(np.int64) / MICRO)


def _one(text: str) -> float:
    text = text.strip()
    if not _TIME.fullmatch(text):
        return np.nan
    date, clock = re.split(r"[T ]", text, maxsplit=1) if re.search(r"[T ]", text) else (text, "")
    if "." in date:
        day, month, year = date.split(".")
        date = f"{year}-{month:0>2}-{day:0>2}"
    elif "/" in date:
        year, month, day = date.split("/")
        date = f"{year}-{month:0>2}-{day:0>2}"
    clock = _HALF.sub(_whole_day, clock.strip().replace(",", "."))
    clock = clock.replace("UTC", "Z").replace(" ", "")
    if clock[1:2] == ":":
        clock = f"0{clock}"
    try:
        return seconds_of(datetime.fromisoformat(f"{date}T{clock}" if clock else date))
    except ValueError:
        return np.nan


def _whole_day(clock: re.Match[str]) -> str:
    """Return a time of day by twelve hours as one by 24; an hour of 13 or more stays wrong."""
    hour = int(clock[1])
    if not 1 <= hour <= 12:
        return "99"
    return f"{hour % 12 + 12 * (clock[3] in 'pP'):02}{clock[2]}"


_NUMBERS = re.compile(r"\s*(\d\d?)[/-](\d\d?)[/-](\d{4})", re.ASCII)

DAY_FIRST, MONTH_FIRST = True, False


def orders_of(fields: Iterable[str]) -> frozenset[bool]:
    """Return the orders in which every slashed date of some fields is a date.

    Examples
    --------
    >>> orders_of(["03/02/2026", "03/14/2026"]) == {MONTH_FIRST}
    True
    """
    largest = [0, 0]
    for field in fields:
        if found := _NUMBERS.match(field):
            largest = [max(largest[0], int(found[1])), max(largest[1], int(found[2]))]
    return frozenset(
        order
        for order, month in ((DAY_FIRST, largest[1]), (MONTH_FIRST, largest[0]))
        if month <= 12
    )


def slashed_seconds(fields: Sequence[str], order: bool) -> Times:
    """Return times (n,) in seconds since 1970; NaN for what is no time in this order."""
    return to_seconds([_year_first(field, order) for field in fields])


def patterns_of(field: str) -> tuple[str, str]:
    """Return how `strptime` would read a slashed date: with the day first, and the month first.

    Examples
    --------
    >>> patterns_of("03/02/2026 2:05 PM")
    ('%d/%m/%Y %I:%M %p', '%m/%d/%Y %I:%M %p')
    """
    clock = re.sub(r"^\S+", "", field.strip().replace("T", " "), count=1)
    half = re.search(r"[AaPp]\.?[Mm]", clock)
    hours = "%I" if half else "%H"
    clock = re.sub(r"\d+:\d+", f"{hours}:%M", clock, count=1)
    clock = re.sub(r"%M:\d+", "%M:%S", clock)
    clock = re.sub(r"%S[.,]\d+", "%S.%f", clock)
    clock = re.sub(r"[AaPp]\.?[Mm]\.?", "%p", clock)
    clock = re.sub(r"Z$|[+-]\d\d:?(\d\d)?$", "%z", clock)
    mark = "-" if "-" in field[:3] else "/"
    return f"%d{mark}%m{mark}%Y{clock}", f"%m{mark}%d{mark}%Y{clock}"


def readings_of(field: str) -> tuple[str, str] | None:
    """Return the two dates that a field may be, for people; None if it is one date alone."""
    found = _NUMBERS.match(field)
    if not is_slashed(field) or found is None or orders_of([field]) != {True, False}:
        return None
    one, other, year = int(found[1]), int(found[2]), int(found[3])
    if not (one and other):
        return None
    days = datetime(year or 1, other, one), datetime(year or 1, one, other)
    return f"{days[0]:%d %B}", f"{days[1]:%d %B}"


def _year_first(field: str, order: bool) -> str:
    found = _NUMBERS.match(field)
    if found is None:
        return field
    day, month = (found[1], found[2]) if order == DAY_FIRST else (found[2], found[1])
    return f"{found[3]}-{month:0>2}-{day:0>2}{field[found.end() :]}"
