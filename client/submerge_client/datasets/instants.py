"""Instants: times in text as seconds since 1970 in UTC.

| form | example |
|---|---|
| ISO 8601, with `T` or a blank | `2026-11-23 10:00`, `2026-11-23T10:00:00.25` |
| an hour of one digit | `2026-11-23 9:00` |
| with a zone | `2026-11-23T10:00:00Z`, `2026-11-23 11:00:00+01:00` |
| year first, with slashes | `2026/11/23 10:00` |
| day first, with points | `23.11.2026 10:00:00` |

1. A time without a zone is taken as UTC. Zones may differ from row to row.
2. Dates such as 11/12/2026 are refused: nothing says which is the month.
3. Times are kept to a microsecond, so the same time is the same float64 from any format.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from submerge import Array

MICRO = 1_000_000

_DATE = r"(\d{4}-\d\d-\d\d|\d{4}/\d\d?/\d\d?|\d\d\.\d\d\.\d{4})"
_CLOCK = r"\d?\d:\d\d(:\d\d([.,]\d{1,9})?)?"
_TIME = re.compile(_DATE + rf"([T ]\s*{_CLOCK}\s*(Z|UTC|[+-]\d\d:?(\d\d)?)?)?", re.ASCII)
_ZONELESS = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?Z?", re.ASCII)
_CLOCK_ONLY = re.compile(_CLOCK, re.ASCII)
_AMBIGUOUS = re.compile(r"\d{1,2}/\d{1,2}/\d{2,4}\b.*", re.ASCII)

Times = npt.NDArray[np.float64]


def is_time(field: str) -> bool:
    """Return whether a field is a date, or a date with a time of day."""
    return _TIME.fullmatch(field.strip()) is not None


def is_clock(field: str) -> bool:
    """Return whether a field is a time of day alone."""
    return _CLOCK_ONLY.fullmatch(field.strip()) is not None


def is_ambiguous(field: str) -> bool:
    """Return whether a field is a date whose month and day may be either way round."""
    return _AMBIGUOUS.fullmatch(field.strip()) is not None


def to_seconds(texts: Sequence[str]) -> Times:
    """Return times (n,) in seconds since 1970; NaN for what is no time.

    Notes
    -----
    Fields of one width without a zone, or with Z, go through NumPy at once; all others one by
    one.
    """
    if len(texts) == 0:
        return np.empty(0)
    if len({*map(len, texts)}) == 1 and _ZONELESS.fullmatch(texts[0]):
        stamps = _at_once(texts)
        if stamps is not None:
            return stamps
    return np.array([_one(text) for text in texts])


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
        date = "-".join(reversed(date.split(".")))
    elif "/" in date:
        year, month, day = date.split("/")
        date = f"{year}-{month:0>2}-{day:0>2}"
    clock = clock.replace(",", ".").replace("UTC", "Z").replace(" ", "")
    if clock[1:2] == ":":
        clock = f"0{clock}"
    try:
        when = datetime.fromisoformat(f"{date}T{clock}" if clock else date)
    except ValueError:
        return np.nan
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    since = when - datetime(1970, 1, 1, tzinfo=UTC)
    return float((since.days * 86400 + since.seconds) * MICRO + since.microseconds) / MICRO
