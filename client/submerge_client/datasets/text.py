"""Tables in text: CSV, TSV and whitespace matrices, row by row, with the place of an error."""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, zip_longest
from typing import NamedTuple

import numpy as np

from submerge import Array
from submerge_client.datasets.fields import (
    ANOTHER_MARK,
    MISSING,
    NUMBER,
    PLAIN,
    WITH_COMMA,
    cure,
    has_decimal_comma,
    in_groups,
    is_dated,
    is_missing,
    is_number,
    is_value,
    number,
    pointed,
)
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

BLOCK = 512
"""Most rows read at once."""

LINES = 200
"""First lines that show the form."""

MARKS = (";", "\t", "|", ",")
"""What separates columns, beside blanks."""

UNITS = 3
"""Most rows of text below the headings: units, and how values were sampled."""

_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_QUOTED = re.compile(r'\s*"[^"]*"(\s*[,;\t]\s*"[^"]*")+\s*')
_BETWEEN = {None: "blanks", "\t": "tabs"}
_SEPARATOR = re.compile(r"sep=.?", re.IGNORECASE)
_LOGGERS = ("TOA5", "TOACI1")
"""How files of Campbell's loggers begin: with a line about the station."""

NumberedRow = tuple[int, list[str]]
"""The line where a row begins, and its fields."""


class TextForm(NamedTuple):
    """The form of a text file."""

    delimiter: str | None  # None for any whitespace
    names: tuple[str, ...]  # none without a header
    width: int
    first: int  # line of the first row, header or not
    skip: int  # lines before its numbers
    comma: bool = False
    missing: frozenset[str] = MISSING
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns' names, or `x0, x1, ...`."""
        return tuple(name or f"x{i}" for i, name in enumerate(self.names or [""] * self.width))

    def is_missing(self, field: str) -> bool:
        return field.strip() in self.missing or is_missing(field)


class Piece(NamedTuple):
    """Rows (n, used) of a text file, and the texts of other columns."""

    rows: Array
    texts: tuple[list[str], ...]


def form_of(source: Source, missing: Collection[str] = ()) -> TextForm:
    delimiter = _delimiter(source.head)
    with source.lines() as lines:
        rows = list(islice(rows_of(source, lines, delimiter), LINES))
    if not rows:
        raise empty(source.path)
    check_legible(source, *rows[0])
    cells = ([field.strip() for field in row] for _, row in rows)
    columns = list(zip_longest(*cells, fillvalue=""))
    grouped = check_groups(source, columns)
    comma = delimiter != "," and has_decimal_comma(columns)
    if comma:
        rows = [(line, [pointed(field) for field in row]) for line, row in rows]
    names, at, begin = _heading(source, rows, delimiter)
    first, fields = rows[at]
    if names and begin == len(rows):
        raise refusal(
            source.path,
            expected=f"rows of numbers below line {first}",
            got=f"only a header ({', '.join(map(shown, fields[:3]))}{', …' * (len(fields) > 3)})",
            hint="check how it was written",
        )
    form = TextForm(
        delimiter,
        names,
        len(names) or len(fields),
        first,
        rows[begin][0] - 1,
        comma,
        MISSING | {*missing},
    )
    notes = [*_remarks(source, form, rows, at, begin)]
    if grouped and delimiter in (";", "\t"):  # as where commas are decimal marks
        said = f"{grouped} and all other numbers of {source.path.name} are read with decimal points"
        notes.append(f"{said}: if these group digits, write the numbers without them")
    return form._replace(notes=tuple(notes))


def check_groups(source: Source, columns: Iterable[Sequence[str]]) -> str:
    """Return a number whose point may group its digits; refuse it if other fields show it."""
    grouped, sure = in_groups(columns)
    if sure:
        raise refusal(
            source.path,
            expected="numbers with decimal points",
            got=f"{grouped}, whose point groups its digits, as other fields show",
            hint="write numbers without groups",
        )
    return grouped


def _heading(
    source: Source, rows: Sequence[NumberedRow], delimiter: str | None
) -> tuple[tuple[str, ...], int, int]:
    """Return the names, if there are any; the index of their row; that of the first row below."""
    at, marked = _first_of_table(rows, delimiter)
    first, fields = rows[at]
    if marked:
        return marked, at, at + 1
    text = [not is_value(field) for field in fields]
    below = [row for _, row in rows[at + 1 :] if len(row) == len(fields)]
    named = all(text) if delimiter is None else any(text)
    if not named and below and not any(map(is_dated, fields)):
        named = _is_set_off(source.head, fields, below)
        if not named and _are_whole_above_decimals(fields, below):
            raise refusal(
                Place(source.path, first),
                expected="names of columns, or a row as those below",
                got=f"whole numbers ({', '.join(fields[:3])}) above decimals, as headings are",
                hint="if they are names, quote them; if they are a row, write decimals (5.0)",
            )
    if not named:
        return (), at, at
    names = tuple(field.strip() for field in fields)
    return names, at, at + 1 + _units(below)


def _first_of_table(
    rows: Sequence[NumberedRow], delimiter: str | None
) -> tuple[int, tuple[str, ...]]:
    """Return the index of a table's first row; and its headings, if a mark `#` is before them."""
    fields = rows[0][1]
    body = [row for _, row in rows[len(rows) // 2 :]]
    width = Counter(map(len, body)).most_common(1)[0][0]
    comments = 0
    while comments < len(rows) - 1 and _is_comment(rows[comments][1], delimiter):
        comments += 1
    if not comments and len(fields) == width and _is_full(fields):
        return 0, ()
    # Where rows of numbers begin, what stands above is one row of headings among other things.
    values = (i for i, (_, row) in enumerate(rows) if len(row) == width and _has_values(row))
    end = next((i for i in values if i >= comments), 0)
    for i in range(comments, end):
        row = rows[i][1]
        if len(row) == width and _is_full(row) and not any(map(is_number, row)):
            return i, ()
    if comments and end == comments:
        names = _marked(rows[comments - 1][1], width, delimiter)
        return comments - bool(names), names
    return 0, ()


def _is_comment(fields: Sequence[str], delimiter: str | None) -> bool:
    first = fields[0].strip()
    alone = first == "#" and delimiter is not None  # a column that counts the rows
    marked = first.startswith("#") and not alone
    return marked or first in _LOGGERS or _SEPARATOR.fullmatch(first) is not None


def _marked(fields: Sequence[str], width: int, delimiter: str | None) -> tuple[str, ...]:
    """Return the headings in a comment, such as `# time flow temp`; none if it has others."""
    names = [field.strip() for field in fields]
    names[0] = names[0].lstrip("#").strip()
    names = names if names[0] or delimiter is not None else names[1:]
    text = len(names) == width and _is_full(names) and not any(map(is_value, names))
    return tuple(names) if text else ()


def _is_full(fields: Sequence[str]) -> bool:
    """Return whether most fields are full, as headings are, and titles above them are not."""
    return 2 * sum(bool(field.strip()) for field in fields) > len(fields)


def _has_values(fields: Sequence[str]) -> bool:
    return any(is_number(field) or is_dated(field) for field in fields)


def _units(below: Sequence[list[str]]) -> int:
    """Return how many rows below the headings are of text, where others have numbers."""
    values = (i for i, row in enumerate(below) if any(map(_is_nearly, row)))
    rows = next(values, 0)
    if not 0 < rows <= UNITS:
        return 0
    after = below[rows : rows + 3]
    numbers = [i for i, _ in enumerate(below[0]) if all(_is_nearly(row[i]) for row in after)]
    texts = [[row[i] for i in numbers if not is_missing(row[i])] for row in below[:rows]]
    one_at_least = len(numbers) > 1 and all(texts)
    return rows if one_at_least and len(texts[0]) > 1 else 0


def _is_nearly(field: str) -> bool:
    return is_number(field) or cure(field) != ""


def _is_set_off(head: bytes, fields: list[str], below: list[list[str]]) -> bool:
    """Return whether a first row of numbers is marked as a header."""
    lines = [*filter(str.strip, head.decode("utf-8-sig", "replace").splitlines())]
    if _QUOTED.fullmatch(lines[0]) and '"' not in "".join(lines[1:2]):
        return True
    beside = [row[0].strip() for row in below]
    begin = int(beside[0]) if _WHOLE.fullmatch(beside[0]) else 0
    counts = len(beside) > 2 and beside == [str(begin + i) for i in range(len(beside))]
    behind = not fields[0].strip() and all(map(str.strip, fields[1:]))
    return behind and (counts or all(map(is_dated, beside)))


def _are_whole_above_decimals(fields: list[str], below: list[list[str]]) -> bool:
    """Return whether a first row has whole numbers, each another, and no other row has any."""
    whole = len({*fields}) == len(fields) > 1 and len(below) > 2
    whole = whole and all(_WHOLE.fullmatch(each.strip()) for each in fields)
    return whole and not any(_WHOLE.fullmatch(each.strip()) for row in below for each in row)


def _remarks(
    source: Source, form: TextForm, rows: Sequence[NumberedRow], at: int, begin: int
) -> Iterator[str]:
    """Yield notes about what was passed over, and about names that may surprise."""
    name = source.path.name
    if at:
        yield f"{_lines(rows[0][0], rows[at][0] - 1)} of {name} above the table passed over"
    if at + 1 < begin:
        below = _lines(rows[at + 1][0], rows[begin][0] - 1)
        yield f"{below} of {name} below the headings passed over: no numbers, but text as of units"
    if form.comma:
        yield f"commas in numbers of {name} are read as decimal points"
    place = f"line {form.first} of {name}"
    numbers = [each for each in form.names if NUMBER.fullmatch(each)]
    if numbers:
        yield f"{place} read as column names, though it has numbers: {', '.join(numbers[:3])}"
    for column, each in enumerate(form.names):
        if not each:
            yield f"column {column + 1} has no name in {place}: called x{column}"


def _lines(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first} to {last}"


def _delimiter(head: bytes) -> str | None:
    bare = re.sub(r'"[^"]*"', "q", head.decode("utf-8-sig", errors="replace"))
    lines = [line for line in re.split(r"[\r\n]+", bare) if line.strip()]
    if len(head) == HEAD and len(lines) > 1:
        del lines[-1]  # it may be cut
    lines = lines[:LINES]
    first, body = (lines[0], lines[len(lines) // 2 :]) if lines else ("", [])
    # Where lines stand above the headings, those below show the mark.
    for mark in MARKS:
        usual = Counter(line.count(mark) for line in body).most_common(1)
        if usual and usual[0][0] == first.count(mark) > 0 and _separates(mark, lines):
            return mark
    for mark in MARKS:
        most = 2 * sum(mark in line for line in body) > len(body) > 2
        if most and _separates(mark, body):
            return mark
    marks = (mark for mark in (";", ",") if mark in first and _separates(mark, lines))
    return next(marks, None)


def _separates(mark: str, lines: Sequence[str]) -> bool:
    """Return whether a mark separates columns, and is not inside of fields."""
    if mark == "\t":
        return _between_tabs(lines)
    # 1,5 2,5 has blanks between numbers, and decimal commas.
    words = lines[-1].split()
    numbers = [word for word in words if WITH_COMMA.fullmatch(word) or is_value(word)]
    inside = any(re.search(r"\d,\d", word) for word in words)
    return mark == ";" or not (inside and 1 < len(words) == len(numbers))


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
) -> Iterator[NumberedRow]:
    """Yield the first line and the fields of each row that is not blank."""
    if delimiter is None:
        for each_number, line in enumerate(lines, first):
            if fields := line.split():
                yield each_number, fields
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


def body_of(source: Source, form: TextForm, lines: Iterator[str]) -> Iterator[NumberedRow]:
    """Yield the rows below the headings, of a file's lines from its start."""
    skipped = sum(1 for _ in islice(lines, form.skip))
    return rows_of(source, lines, form.delimiter, 1 + skipped)


def line_of(source: Source, form: TextForm, row: int) -> int:
    """Return the line of a row below the headings, counted from 1."""
    with source.lines() as lines:
        return next(islice(body_of(source, form, lines), row - 1, None))[0]


def sample(source: Source, form: TextForm, most: int) -> list[list[str]]:
    """Return the fields of the first rows below the header, as they are written."""
    with source.lines() as lines:
        rows = []
        for line, fields in islice(body_of(source, form, lines), most):
            check_legible(source, line, fields)
            _check_width(source, form, line, fields)
            rows.append(fields)
        return rows


def pieces(
    source: Source,
    form: TextForm,
    used: Sequence[int],
    texts: Sequence[int] = (),
    *,
    begin: int = 0,
    most: int = BLOCK,
) -> Iterator[Piece]:
    """Yield columns as numbers and as text from a row on, at most `most` rows at a time."""
    with source.lines() as lines:
        rows = islice(body_of(source, form, lines), begin, None)
        while some := list(islice(rows, most)):
            numbers = array("d")
            for line, fields in some:
                numbers.extend(_numbers(source, form, used, line, fields))
            strings = tuple([fields[i].strip() for _, fields in some] for i in texts)
            yield Piece(np.asarray(numbers).reshape(len(some), len(used)), strings)


def _numbers(
    source: Source, form: TextForm, used: Sequence[int], line: int, fields: list[str]
) -> list[float]:
    if len(fields) == form.width and not form.comma:
        wanted = [fields[i] for i in used]
        if PLAIN.fullmatch("".join(wanted)):
            # True for nearly all rows, and several times as fast as a check of each field.
            with suppress(ValueError):
                row = [math.nan if field in form.missing else float(field) for field in wanted]
                if math.inf not in row and -math.inf not in row:
                    return row
    check_legible(source, line, fields)
    _check_width(source, form, line, fields)
    names = form.names or ("",) * form.width
    return [
        math.nan
        if form.is_missing(fields[i])
        else number(fields[i], Place(source.path, line, i + 1, names[i]), comma=form.comma)
        for i in used
    ]


def check_legible(source: Source, line: int, fields: list[str]) -> None:
    if fault := illegible("".join(fields)):
        raise binary(Place(source.path, line), source.head, fault)


def _check_width(source: Source, form: TextForm, line: int, fields: list[str]) -> None:
    if len(fields) == form.width:
        return
    commas = form.delimiter == "," and form.width < len(fields) <= 2 * form.width
    packed = form.delimiter is None and any(mark in field for field in fields for mark in ",;")
    title = line <= form.first + LINES and (packed or form.width == 1)
    ends = len(fields) == form.width + 1 and not fields[-1].strip()
    one = form.width == 1
    raise refusal(
        Place(source.path, line),
        expected=f"{form.width} field{'s' * (not one)} as in line {form.first}",
        got=f"{len(fields)}, between {_BETWEEN.get(form.delimiter, repr(form.delimiter))}",
        hint="complete the row (NA for what is missing) or leave it out"
        + ("; if each row ends in that mark, end the headings in it, too" if ends else "")
        + (f"; {ANOTHER_MARK}" if one else "")
        + ("; if commas are its decimal marks, write points" if commas and not ends else "")
        + ("; if lines stand above its headings, remove them" if title else ""),
    )
