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

import math
import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from submerge import Array
from submerge_client.datasets.fields import MISSING, PLAIN, TRUTH, number
from submerge_client.datasets.source import (
    MOST_CHARACTERS,
    Place,
    Source,
    refusal,
)
from submerge_client.datasets.table import Table, columns_but
from submerge_client.datasets.text_form import TextForm, check_legible, form_of, remarks, rows_of

BLOCK = 512
"""Most rows read at once: enough for the speed of C, few enough for a small device."""

_GAPS = "|".join(re.escape(field) for field in sorted(MISSING, reverse=True))


_TRUTH_MARKS = ("rue", "RUE", "als", "ALS")
"""Parts of true and false: a search for these is faster than a pattern."""


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

    used, texts : Places of the columns that are read as numbers, and as text.
    """
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
