"""Day order: whether the day or the month is first in dates such as 03/14/2026.

One number above 12 says it for its whole column. A column without one is not read by guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from submerge_client.datasets.instants import Times, is_slashed, to_seconds

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
