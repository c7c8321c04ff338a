"""Numbers in text: whitespace matrices and CSV.

1. The separator is a semicolon, else a comma, if the first line has one outside
   quotes; else any whitespace.
2. The first row is a header if any of its fields is text (CSV), or all are
   (whitespace). An empty field, NA, nan and ? are missing values, not text.
3. `numpy.loadtxt` reads some hundred lines at a time. Lines that it refuses, such as those
   with missing values, are read again row by row; only that pass finds errors and their
   places. It also reads all of a CSV from the first quote on: a field in quotes may have any
   number of lines.

No comments, no decimal commas, no digits grouped by underscores.
"""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from submerge import Array
from submerge_client.datasets.source import Place, Source, binary, empty, illegible, refusal, shown
from submerge_client.datasets.table import Table, columns_but

BLOCK = 512
"""Most rows read at once: enough for the speed of C, few enough for a small device."""

MISSING = frozenset({"", "NA", "nan", "NaN", "?"})

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_NAN = re.compile(r"[+-]?nan", re.IGNORECASE)
_PLAIN = re.compile(r"[0-9eE.+\-NaA?]*")
"""The characters of numbers and missing values: no `_`, no inf, ASCII digits."""


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


def read(source: Source, skip: Collection[str] = ()) -> Table:
    """Read a matrix of numbers, with or without a header, without the columns in `skip`."""
    form = form_of(source)
    used = columns_but(source.path, form.columns, skip)
    numbers, n = array("d"), 0
    for block in blocks(source, form, used):
        numbers.frombytes(block.tobytes())
        n += len(block)
    rows = np.asarray(numbers).reshape(n, len(used))
    return Table.of(
        source.path, rows, names=[form.columns[i] for i in used], notes=remarks(source, form)
    )


def blocks(source: Source, form: TextForm, used: Sequence[int]) -> Iterator[Array]:
    """Yield the columns `used`, in that order, at most `BLOCK` rows at a time."""
    with source.text() as lines:
        line = 1 + sum(1 for _ in islice(lines, form.skip))
        while chunk := list(islice(lines, BLOCK)):
            if form.delimiter is not None and any('"' in text for text in chunk):
                yield from _row_by_row(source, form, used, line, chain(chunk, lines))
                return
            rows = _at_once(form, used, chunk)
            if rows is None:
                yield from _row_by_row(source, form, used, line, chunk)
            else:
                yield rows
            line += len(chunk)


def form_of(source: Source) -> TextForm:
    """Return the form of a file, from its first two rows."""
    delimiter = _delimiter(source.head)
    with source.text() as lines:
        rows = list(islice(_rows(source, lines, delimiter), 2))
    if not rows:
        raise empty(source.path)
    first, fields = rows[0]
    _check_legible(source, first, fields)
    text = [not _is_value(field) for field in fields]
    if not (all(text) if delimiter is None else any(text)):
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


def _delimiter(head: bytes) -> str | None:
    bare = re.sub(r'"[^"]*"', "", head.decode("utf-8-sig", errors="replace"))
    first = re.split(r"[\r\n]", bare.lstrip(), maxsplit=1)[0]
    return next((mark for mark in ";," if mark in first), None)


def _rows(
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


def _at_once(form: TextForm, used: Sequence[int], chunk: list[str]) -> Array | None:
    """Read some lines with NumPy's C parser, or return None if it refuses."""
    if not any(map(str.strip, chunk)):
        return np.empty((0, len(used)))
    as_it_is = list(used) == list(range(form.width))
    if not as_it_is and not all(len(line.split(form.delimiter)) == form.width for line in chunk):
        # NumPy would accept such lines if they have the columns in use.
        return None
    try:
        rows = np.loadtxt(
            chunk,
            delimiter=form.delimiter,
            comments=None,
            usecols=None if as_it_is else used,
            ndmin=2,
            encoding=None,
        )
    except ValueError:
        # Its messages count rows, not lines; the other pass has better ones.
        return None
    return None if rows.shape[1] != len(used) or np.isinf(rows).any() else rows


def _row_by_row(
    source: Source, form: TextForm, used: Sequence[int], first: int, lines: Iterable[str]
) -> Iterator[Array]:
    """Yield blocks of rows; missing values become NaN, and errors have a place."""
    rows = _rows(source, lines, form.delimiter, first)
    while some := [_numbers(source, form, used, *row) for row in islice(rows, BLOCK)]:
        yield np.array(some)


def _numbers(
    source: Source, form: TextForm, used: Sequence[int], line: int, fields: list[str]
) -> list[float]:
    if len(fields) == form.width:
        wanted = [fields[i] for i in used]
        if _PLAIN.fullmatch("".join(wanted)):
            # True for nearly all rows, and several times as fast as a check of each field.
            with suppress(ValueError):
                row = [math.nan if field in MISSING else float(field) for field in wanted]
                if math.inf not in row and -math.inf not in row:
                    return row
    _check_legible(source, line, fields)
    if len(fields) != form.width:
        raise refusal(
            Place(source.path, line),
            expected=f"{form.width} fields as in line {form.first}",
            got=str(len(fields)),
            hint="complete the row (NA for what is missing) or leave it out",
        )
    names = form.names or ("",) * form.width
    return [_number(fields[i], Place(source.path, line, i + 1, names[i])) for i in used]


def _number(field: str, place: Place) -> float:
    text = field.strip()
    if text in MISSING or _NAN.fullmatch(text):
        return math.nan
    if _NUMBER.fullmatch(text) and math.isfinite(value := float(text)):
        return value
    if _is_value(text):
        raise refusal(
            place,
            expected="a finite number",
            got=shown(text),
            hint="infinity is no reading: write NA for a missing value",
        )
    raise refusal(
        place,
        expected="a number",
        got=shown(text),
        hint="leave the column out (--skip), or write NA for a missing value",
    )


def _is_value(field: str) -> bool:
    """Return whether a field stands for a number, missing and infinite ones included."""
    text = field.strip()
    return text in MISSING or any(p.fullmatch(text) for p in (_NUMBER, _NAN, _INFINITE))


def _check_legible(source: Source, line: int, fields: list[str]) -> None:
    if fault := illegible("".join(fields)):
        raise binary(Place(source.path, line), source.head, fault)


def remarks(source: Source, form: TextForm) -> list[str]:
    """Return notes about names that may surprise the user."""
    remarks = []
    place = f"line {form.first} of {source.path.name}"
    numbers = [name for name in form.names if _NUMBER.fullmatch(name)]
    if numbers:
        remarks.append(
            f"{place} read as column names, though it has numbers: {', '.join(numbers[:3])}"
        )
    for column, name in enumerate(form.names):
        if not name:
            remarks.append(f"column {column + 1} has no name in {place}: called x{column}")
    return remarks
