"""Numbers in text: whitespace matrices, CSV and TSV.

1. `text_form` finds the separator and the header.
2. `numpy.loadtxt` reads some hundred lines at a time. Lines that it refuses, such as those
   with missing values, are read again row by row; only that pass finds errors and their
   places. It also reads all of a CSV from the first quote on: a field in quotes may have any
   number of lines.
3. Columns may be read as text beside the numbers: times, or the names of machines.

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
from submerge_client.datasets.instants import is_time
from submerge_client.datasets.source import (
    HEAD,
    MOST_CHARACTERS,
    Place,
    Source,
    binary,
    empty,
    illegible,
    refusal,
    shown,
)
from submerge_client.datasets.table import Table, columns_but

MISSING = frozenset({"", "NA", "N/A", "n/a", "nan", "NaN", "NULL", "null", "None", "?", "-"})

TRUTH = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}

PLAIN = re.compile(r"[0-9eE.+\-NaAULulon/?]*")
"""The characters of numbers and missing values: no `_`, no inf, ASCII digits."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_NAN = re.compile(r"[+-]?nan", re.IGNORECASE)

_SIGNED = r"[+-]?\s*"
_CURES = (
    (
        re.compile(_SIGNED + r"\d{1,3}(,\d{3})+", re.ASCII),
        "a decimal comma, or digits in groups: write a decimal point and no groups",
    ),
    (
        re.compile(_SIGNED + r"(\d+,\d*|,\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE),
        "a decimal comma: write decimal points",
    ),
    (
        re.compile(_SIGNED + r"\d{1,3}([,.' \u00a0\u202f]\d{3})+([.,]\d+)?", re.ASCII),
        "digits in groups: write the number without thousands separators",
    ),
)
_UNIT = re.compile(NUMBER.pattern + r"\s*([A-Za-z°%‰µμΩ][^\d,;]{0,9})", re.ASCII | re.IGNORECASE)


def is_missing(field: str) -> bool:
    """Return whether a field stands for a gap."""
    text = field.strip()
    return text in MISSING or _NAN.fullmatch(text) is not None


def is_number(field: str) -> bool:
    """Return whether a field stands for a number: infinity, true and false are some."""
    text = field.strip()
    return text in TRUTH or any(p.fullmatch(text) for p in (NUMBER, _INFINITE))


def is_value(field: str) -> bool:
    """Return whether a field stands for a number, missing and infinite ones included."""
    return is_missing(field) or is_number(field)


def cure(field: str) -> str:
    """Return what a field that is nearly a number has, and what to do; or an empty string.

    Examples
    --------
    >>> cure("12,5")
    'a decimal comma: write decimal points'
    >>> cure("pump")
    ''
    """
    text = field.strip()
    for pattern, advice in _CURES:
        if pattern.fullmatch(text):
            return advice
    if unit(text):
        return f"a unit ({unit(text)}): write the number alone, and the unit in the heading"
    return ""


def unit(field: str) -> str:
    """Return the unit that stands behind a number, as in "12 C", or an empty string."""
    found = _UNIT.fullmatch(field.strip())
    return found[3].strip() if found else ""


def number(field: str, place: Place) -> float:
    """Return a field's number, NaN for a gap, or refuse it with its place."""
    text = field.strip()
    if is_missing(text):
        return math.nan
    if text in TRUTH:
        return TRUTH[text]
    if NUMBER.fullmatch(text) and math.isfinite(value := float(text)):
        return value
    if is_number(text):
        raise refusal(
            place,
            expected="a finite number",
            got=shown(text),
            hint="infinity is no reading: write NA for a missing value",
        )
    advice = cure(text)
    raise refusal(
        place,
        expected="a number",
        got=shown(text),
        hint=f"it has {advice}"
        if advice
        else "leave the column out (--skip), or write NA for a missing value",
    )


LINES = 20
"""First lines that show whether tabs separate columns."""


_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_QUOTED = re.compile(r'\s*"[^"]*"(\s*[,;\t]\s*"[^"]*")+\s*')


class TextForm(NamedTuple):
    """The form of a text file: delimiter, None for any whitespace; names, none without a header.

    The `first` line is of the first row, header or not; `skip` lines stand before its numbers.
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


BLOCK = 512
"""Most rows read at once: enough for the speed of C, few enough for a small device."""

_GAPS = "|".join(re.escape(field) for field in sorted(MISSING, reverse=True))


_TRUTH_MARKS = ("rue", "RUE", "als", "ALS")
"""Parts of true and false: a search for these is faster than a pattern."""


class Piece(NamedTuple):
    """Rows (n, used) of a text file, the texts of others, and the line where each row begins."""

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
    """Yield the columns `used` as numbers, and `texts` as text, at most `most` rows at a time."""
    with source.lines() as lines:
        line = 1 + sum(1 for _ in islice(lines, form.skip))
        while chunk := _chunk(lines, most):
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
        for line, fields in islice(rows_of(source, lines, form.delimiter, skipped), most):
            check_legible(source, line, fields)
            _check_width(source, form, line, fields)
            rows.append(fields)
        return rows


def _chunk(lines: Iterator[str], most: int) -> list[str]:
    """Return the next lines, fewer than `most` if they are long."""
    chunk, size = [], 0
    for line in lines:
        chunk.append(line)
        size += len(line)
        if len(chunk) == most or size > MOST_CHARACTERS:
            break
    return chunk


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
        # Most refusals are gaps, or true and false: as numbers they are read as fast as those.
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
    """Return lines with nan for each missing value, and 1 and 0 for true and false."""
    before, after = rf"(?<![^{delimiter}])", rf"(?![^{delimiter}\r\n])"
    gap = re.compile(rf"{before}({_GAPS}){after}")
    filled = [gap.sub("nan", line) for line in chunk]
    if any(mark in line for line in chunk for mark in _TRUTH_MARKS):
        truth = re.compile(rf"{before}({'|'.join(TRUTH)}){after}")
        filled = [truth.sub(lambda found: f"{TRUTH[found[1]]:g}", line) for line in filled]
    return filled


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
    rows = rows_of(source, lines, form.delimiter, first)
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
    check_legible(source, line, fields)
    _check_width(source, form, line, fields)
    names = form.names or ("",) * form.width
    return [number(fields[i], Place(source.path, line, i + 1, names[i])) for i in used]


def _check_width(source: Source, form: TextForm, line: int, fields: list[str]) -> None:
    if len(fields) == form.width:
        return
    commas = form.delimiter == "," and form.width < len(fields) <= 2 * form.width
    packed = form.delimiter is None and any(mark in field for field in fields for mark in ",;")
    marked = bool(fields) and fields[0].startswith("#")
    title = line <= form.first + 1 and (packed or marked or form.width == 1)
    raise refusal(
        Place(source.path, line),
        expected=f"{form.width} fields as in line {form.first}",
        got=str(len(fields)),
        hint="complete the row (NA for what is missing) or leave it out"
        + ("; if commas are its decimal marks, write points" if commas else "")
        + ("; if lines stand above its headings, remove them" if title else ""),
    )
