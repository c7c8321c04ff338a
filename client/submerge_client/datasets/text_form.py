"""TextForm: how a text file is cut into fields, and whether its first row is a header.

1. The separator is a semicolon, else a tab if the first lines are columns between single tabs,
   else a comma, if the first line has one outside quotes; else any whitespace.
2. The first row is a header if any of its fields is text (CSV, TSV), or all are
   (whitespace). Missing values (`fields.MISSING`) are not text, and neither are times. Numbers
   are a header if they alone are quoted, or stand behind an empty field above an index or times.
   Whole numbers above decimals may be a header or a row: they are refused.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from submerge_client.datasets.fields import NUMBER, is_value
from submerge_client.datasets.instants import is_time
from submerge_client.datasets.source import (
    HEAD,
    Place,
    Source,
    binary,
    empty,
    illegible,
    refusal,
    shown,
)

LINES = 20
"""First lines that show whether tabs separate columns."""


_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_QUOTED = re.compile(r'\s*"[^"]*"(\s*[,;\t]\s*"[^"]*")+\s*')


class TextForm(NamedTuple):
    """The form of a text file.

    delimiter : None for any whitespace
    names : of the columns; none without a header
    width : number of columns
    first : the line of the first row, header or not
    skip : how many lines stand before the first row of numbers
    """

    delimiter: str | None
    names: tuple[str, ...]
    width: int
    first: int
    skip: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns' names, or `x0, x1, ...`."""
        return tuple(name or f"x{i}" for i, name in enumerate(self.names or [""] * self.width))


def form_of(source: Source) -> TextForm:
    """Return the form of a file, from its first two rows."""
    delimiter = _delimiter(source.head)
    with source.lines() as lines:
        rows = list(islice(rows_of(source, lines, delimiter), LINES))
    if not rows:
        raise empty(source.path)
    first, fields = rows[0]
    check_legible(source, first, fields)
    text = [not (is_value(field) or is_time(field)) for field in fields]
    below = [row for _, row in rows[1:] if len(row) == len(fields)]
    named = all(text) if delimiter is None else any(text)
    if not named and below and not any(map(is_time, fields)):
        named = _is_set_off(source.head, fields, below)
        if not named and _are_whole_above_decimals(fields, below):
            raise refusal(
                Place(source.path, first),
                expected="names of columns, or a row as those below",
                got=f"whole numbers ({', '.join(fields[:3])}) above decimals, as headings are",
                hint="if they are names, quote them; if they are a row, write decimals (5.0)",
            )
    if not named:
        return TextForm(delimiter, (), len(fields), first, first - 1)
    if len(rows) == 1:
        raise refusal(
            source.path,
            expected=f"rows of numbers below line {first}",
            got=f"only a header ({', '.join(map(shown, fields[:3]))}{', …' * (len(fields) > 3)})",
            hint="check how it was written",
        )
    names = tuple(field.strip() for field in fields)
    return TextForm(delimiter, names, len(fields), first, rows[1][0] - 1)


def _is_set_off(head: bytes, fields: list[str], below: list[list[str]]) -> bool:
    """Return whether a first row of numbers is marked as a header."""
    lines = [*filter(str.strip, head.decode("utf-8-sig", "replace").splitlines())]
    if _QUOTED.fullmatch(lines[0]) and '"' not in "".join(lines[1:2]):
        return True
    beside = [row[0].strip() for row in below]
    begin = int(beside[0]) if _WHOLE.fullmatch(beside[0]) else 0
    counts = len(beside) > 2 and beside == [str(begin + i) for i in range(len(beside))]
    behind = not fields[0].strip() and all(map(str.strip, fields[1:]))
    return behind and (counts or all(map(is_time, beside)))


def _are_whole_above_decimals(fields: list[str], below: list[list[str]]) -> bool:
    """Return whether a first row has whole numbers, each another, and no other row has any."""
    whole = len({*fields}) == len(fields) > 1 and len(below) > 2
    whole = whole and all(_WHOLE.fullmatch(each.strip()) for each in fields)
    return whole and not any(_WHOLE.fullmatch(each.strip()) for row in below for each in row)


def _delimiter(head: bytes) -> str | None:
    bare = re.sub(r'"[^"]*"', "q", head.decode("utf-8-sig", errors="replace"))
    lines = [line for line in re.split(r"[\r\n]+", bare) if line.strip()]
    if len(head) == HEAD and len(lines) > 1:
        del lines[-1]  # it may be cut
    lines = lines[:LINES]
    first = lines[0] if lines else ""
    if ";" in first:
        return ";"
    if "\t" in first and _between_tabs(lines):
        return "\t"
    return "," if "," in first else None


def _between_tabs(lines: Sequence[str]) -> bool:
    """Return whether each tab of some lines separates two columns: blanks may be in fields."""
    fields = [line.split("\t") for line in lines]
    if len({*map(len, fields)}) != 1:
        return False
    # A matrix that is indented with tabs, or ends its lines with them.
    if any(not any(row[side].strip() for row in fields) for side in (0, -1)):
        return False
    several = (field.split() for row in fields for field in row)
    return not any(len(words) > 1 and all(map(is_value, words)) for words in several)


def rows_of(
    source: Source, lines: Iterable[str], delimiter: str | None, first: int = 1
) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the fields of each row that is not blank."""
    if delimiter is None:
        for number, line in enumerate(lines, first):
            if fields := line.split():
                yield number, fields
        return
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    begin = first
    try:
        for fields in reader:
            if len(fields) > 1 or any(field.strip() for field in fields):
                yield begin, fields
            begin = first + reader.line_num
    except csv.Error as error:
        raise refusal(
            Place(source.path, begin),
            expected="a row of CSV",
            got=f"one that cannot be read ({error})",
            hint='look for a quote (") that is never closed',
        ) from error


def check_legible(source: Source, line: int, fields: list[str]) -> None:
    """Refuse a row with characters that are no text."""
    if fault := illegible("".join(fields)):
        raise binary(Place(source.path, line), source.head, fault)


def remarks(source: Source, form: TextForm) -> list[str]:
    """Return notes about names that may surprise the user."""
    remarks = []
    place = f"line {form.first} of {source.path.name}"
    numbers = [name for name in form.names if NUMBER.fullmatch(name)]
    if numbers:
        remarks.append(
            f"{place} read as column names, though it has numbers: {', '.join(numbers[:3])}"
        )
    for column, name in enumerate(form.names):
        if not name:
            remarks.append(f"column {column + 1} has no name in {place}: called x{column}")
    return remarks
