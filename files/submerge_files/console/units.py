"""Durations, shares, rates and text of others, as a command line writes them, and for people."""

from __future__ import annotations

import csv
import io
import math
import re
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import click

from submerge import UsageError
from submerge_client.config.spans import NUMBER, SECONDS, seconds

MOST_LETTERS = 100  # of a name: what is longer is cut


def printable(text: str) -> str:
    """Return foreign text without the characters that control a terminal, or cannot be seen."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


_UNSEEN = re.compile(
    r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_FORMULA = re.compile(r"\s*(?:[=@]|[-+](?!(?:[\d.,]*(?:[eE][-+]?\d+)?%?|inf|nan)\s*\Z))")
_PLAIN = re.compile(r"(?:\w[\w .:/+-]*|-\d+(?:\.\d*)?(?:e[-+]\d+)?)?")


EMPTY = '""'


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV: no text is a formula to a spreadsheet, or controls a terminal."""
    # An empty line would be no row.
    return "".join(f"{','.join(csv_cells(row)) or EMPTY}\n" for row in rows)


def csv_cells(values: Iterable[Any]) -> list[str]:
    """Return values as cells of such a row."""
    texts = ("" if value is None else str(value) for value in values)
    return [text if _PLAIN.fullmatch(text) else _csv_cell(text) for text in texts]


@lru_cache(1024)
def _csv_cell(text: str) -> str:
    text, cell = _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text), io.StringIO()
    csv.writer(cell, lineterminator="\n").writerow(
        [f"'{text}" if _FORMULA.match(text) else text, ""]
    )
    return cell.getvalue()[:-2]


def name_text(name: str) -> str:
    """Return a foreign name: printable, and cut if it is very long."""
    return printable(name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…")


def names_text(names: Sequence[str], most: int) -> str:
    """Return the first of some foreign names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(name_text, names[:most])) + more


PER_HOUR = {"": 1.0, "/h": 1.0, "/d": 1 / 24}

MOST_OFTEN = 3600.0  # Events an hour, of one kind. More is a typing error, and would take for ever.

SHARE = re.compile(NUMBER + "(%?)")
RATE = re.compile(NUMBER + "(|/h|/d)")


def duration(text: str) -> float:
    """Return seconds: `1y` (365 days), `2d`, `3h`, `5m`, `90s` or `50ms`."""
    try:
        return seconds(text)
    except UsageError as error:
        raise click.BadParameter(str(error)) from error


def share(text: str) -> float:
    """Return a number from 0 to 1: `5%` or `0.05`."""
    found = SHARE.fullmatch(text)
    part = float(found[1]) / (100.0 if found[2] else 1.0) if found else math.nan
    if not 0.0 <= part <= 1.0:
        raise click.BadParameter(f"expected a share such as 5% or 0.05, got {text!r}")
    return part


def rate(text: str) -> float:
    """Return events an hour: `0.5`, `0.5/h` or `2/d`."""
    found = RATE.fullmatch(text)
    often = float(found[1]) * PER_HOUR[found[2]] if found else math.nan
    if not 0.0 <= often <= MOST_OFTEN:
        raise click.BadParameter(
            f"expected events an hour, from 0 to {MOST_OFTEN:g}, such as 0.5 or 2/d, got {text!r}"
        )
    return often


def span_text(seconds: float) -> str:
    """Write a duration in its largest unit that leaves no fraction."""
    for unit in ("d", "h", "m"):
        if seconds and seconds % SECONDS[unit] == 0:
            return f"{plain(seconds / SECONDS[unit])}{unit}"
    return f"{plain(seconds)}s"


def plain(number: float) -> str:
    """Write a number so that it reads back as the same, in as few characters as it takes."""
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def ago(seconds: float) -> str:
    """Return about how long, for a person: `40 s`, `3 min`, `5 h`, `2 d`."""
    # Tables have no room for humanize's `naturaldelta`, to which 36 hours are "a day".
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def in_words(seconds: float) -> str:
    """Return how long: `8 min`, `12 d`, `3 ms`."""
    return ago(seconds) if seconds >= 1 else f"{seconds * 1e3:.0f} ms"


def size_of(size: float, *, decimals: int = 0) -> str:
    """Return how much: `48 MiB`, `77 GiB`."""
    import humanize  # late: most commands print no size

    return humanize.naturalsize(size, binary=True, format=f"%.{decimals}f")


def moment(seconds: float) -> str:
    """Return a Unix time as people read it, in UTC."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return f"at {seconds:g} s"  # another machine's clock may hold any value


def figure(value: float, sign: str = "") -> str:
    """Return three digits of a number, and all before the point of one that is below a million."""
    whole = 1000 <= abs(value) < 1e6
    return f"{value:{sign},.0f}" if whole else f"{value:{sign}.3g}"
