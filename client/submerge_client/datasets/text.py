"""Numbers in text: whitespace matrices, CSV and TSV.

1. The separator is a semicolon, else a tab if the first lines are columns between single tabs,
   else a comma, if the first line has one outside quotes; else any whitespace.
2. The first row is a header if any of its fields is text (CSV, TSV), or all are
   (whitespace). Missing values (`fields.MISSING`) are not text, and neither are times.
3. `numpy.loadtxt` reads some hundred lines at a time. Lines that it refuses, such as those
   with missing values, are read again row by row; only that pass finds errors and their
   places. It also reads all of a CSV from the first quote on: a field in quotes may have any
   number of lines.

4. Columns may be read as text beside the numbers: times, or the names of machines.

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
from submerge_client.datasets.fields import MISSING, NUMBER, PLAIN, is_value, number
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
from submerge_client.datasets.table import Table, columns_but

BLOCK = 512
"""Most rows read at once: enough for the speed of C, few enough for a small device."""

_GAPS = "|".join(re.escape(field) for field in sorted(MISSING, reverse=True))

LINES = 20
"""First lines that show whether tabs separate columns."""


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


class Piece(NamedTuple):
    """Some rows of a text file.

    rows : (n, used)
    texts : of each column that is read as text, its n fields
    lines : (n,), where each row begins in the file
    """

    rows: Array
    texts: tuple[list[str], ...]
    lines: Sequence[int]


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
    for piece in pieces(source, form, used):
        yield piece.rows


def pieces(
    source: Source,
    form: TextForm,
    used: Sequence[int],
    texts: Sequence[int] = (),
    *,
    most: int = BLOCK,
) -> Iterator[Piece]:
    """Yield columns as numbers, and others as text, at most `most` rows at a time.

    Parameters
    ----------
    used, texts : sequence of int
        Places of the columns that are read as numbers, and as text.
    """
    with source.lines() as lines:
        line = 1 + sum(1 for _ in islice(lines, form.skip))
        while chunk := list(islice(lines, most)):
            if form.delimiter is not None and any('"' in text for text in chunk):
                rest = chain(chunk, lines)
                yield from _row_by_row(source, form, used, texts, line, rest, most)
                return
            piece = _at_once(form, used, texts, line, chunk)
            if piece is None:
                yield from _row_by_row(source, form, used, texts, line, chunk, most)
            else:
                yield piece
            line += len(chunk)


def sample(source: Source, form: TextForm, most: int) -> list[list[str]]:
    """Return the fields of the first rows below the header, as they are written."""
    with source.lines() as lines:
        skipped = 1 + sum(1 for _ in islice(lines, form.skip))
        rows = []
        for line, fields in islice(_rows(source, lines, form.delimiter, skipped), most):
            _check_legible(source, line, fields)
            _check_width(source, form, line, fields)
            rows.append(fields)
        return rows


def form_of(source: Source) -> TextForm:
    """Return the form of a file, from its first two rows."""
    delimiter = _delimiter(source.head)
    with source.lines() as lines:
        rows = list(islice(_rows(source, lines, delimiter), 2))
    if not rows:
        raise empty(source.path)
    first, fields = rows[0]
    _check_legible(source, first, fields)
    text = [not (is_value(field) or is_time(field)) for field in fields]
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


def _at_once(
    form: TextForm, used: Sequence[int], texts: Sequence[int], line: int, chunk: list[str]
) -> Piece | None:
    """Read some lines with NumPy's C parser, or return None if it refuses."""
    lines: Sequence[int] = range(line, line + len(chunk))
    if not all(map(str.strip, chunk)):
        full = [i for i, text in enumerate(chunk) if text.strip()]
        lines, chunk = [line + i for i in full], [chunk[i] for i in full]
    if not chunk:
        return Piece(np.empty((0, len(used))), tuple([] for _ in texts), lines)
    as_it_is = list(used) == list(range(form.width))
    if not as_it_is and not _all_wide(form, chunk):
        # NumPy would accept such lines if they have the columns in use.
        return None
    strings = _text_columns(form, texts, chunk)
    if not used:
        return Piece(np.empty((len(chunk), 0)), strings, lines)
    rows = _loaded(form, None if as_it_is else used, chunk)
    if rows is None and form.delimiter is not None:
        # Most refusals are gaps: named nan, they are read as fast as numbers.
        rows = _loaded(form, None if as_it_is else used, _filled(form.delimiter, chunk))
    if rows is None or rows.shape != (len(chunk), len(used)) or np.isinf(rows).any():
        return None
    return Piece(rows, strings, lines)


def _loaded(form: TextForm, used: Sequence[int] | None, chunk: Sequence[str]) -> Array | None:
    try:
        return np.loadtxt(
            chunk,
            delimiter=form.delimiter,
            comments=None,
            usecols=used,
            ndmin=2,
            encoding=None,
        )
    except ValueError:
        # Its messages count rows, not lines; the other pass has better ones.
        return None


def _filled(delimiter: str, chunk: Sequence[str]) -> list[str]:
    """Return lines with nan for each missing value."""
    gap = re.compile(rf"(?<![^{delimiter}])({_GAPS})(?![^{delimiter}\r\n])")
    return [gap.sub("nan", line) for line in chunk]


def _all_wide(form: TextForm, chunk: Sequence[str]) -> bool:
    """Return whether all lines have the header's number of fields."""
    if form.delimiter is None:
        return all(len(line.split()) == form.width for line in chunk)
    # Counting is several times as fast as splitting.
    return all(line.count(form.delimiter) == form.width - 1 for line in chunk)


def _text_columns(
    form: TextForm, texts: Sequence[int], chunk: Sequence[str]
) -> tuple[list[str], ...]:
    if not texts:
        return ()
    cuts = max(texts) + 1
    split = [line.split(form.delimiter, cuts) for line in chunk]
    return tuple([fields[i].strip() for fields in split] for i in texts)


def _row_by_row(
    source: Source,
    form: TextForm,
    used: Sequence[int],
    texts: Sequence[int],
    first: int,
    lines: Iterable[str],
    most: int,
) -> Iterator[Piece]:
    """Yield pieces; missing values become NaN, and errors have a place."""
    rows = _rows(source, lines, form.delimiter, first)
    while some := list(islice(rows, most)):
        numbers = [_numbers(source, form, used, line, fields) for line, fields in some]
        strings = tuple([fields[i].strip() for _, fields in some] for i in texts)
        shape = (len(some), len(used))
        yield Piece(np.array(numbers).reshape(shape), strings, [line for line, _ in some])


def _numbers(
    source: Source, form: TextForm, used: Sequence[int], line: int, fields: list[str]
) -> list[float]:
    if len(fields) == form.width:
        wanted = [fields[i] for i in used]
        if PLAIN.fullmatch("".join(wanted)):
            # True for nearly all rows, and several times as fast as a check of each field.
            with suppress(ValueError):
                row = [math.nan if field in MISSING else float(field) for field in wanted]
                if math.inf not in row and -math.inf not in row:
                    return row
    _check_legible(source, line, fields)
    _check_width(source, form, line, fields)
    names = form.names or ("",) * form.width
    return [number(fields[i], Place(source.path, line, i + 1, names[i])) for i in used]


def _check_width(source: Source, form: TextForm, line: int, fields: list[str]) -> None:
    if len(fields) == form.width:
        return
    commas = form.delimiter == "," and form.width < len(fields) <= 2 * form.width
    raise refusal(
        Place(source.path, line),
        expected=f"{form.width} fields as in line {form.first}",
        got=str(len(fields)),
        hint="complete the row (NA for what is missing) or leave it out"
        + ("; if commas are its decimal marks, write points" if commas else ""),
    )


def _check_legible(source: Source, line: int, fields: list[str]) -> None:
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
