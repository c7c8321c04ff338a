"""TextFile: a table in text, read by pyarrow block by block.

1. What pyarrow refuses (blanks between columns, a number in another spelling, a wrong row) is read
   by `submerge_client.datasets.text` from there on: row by row, with the place of a mistake.
2. Without pyarrow that reads all of the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from submerge_client.datasets import text
from submerge_client.datasets.fields import TRUTH, cure, is_number, pointed, unit
from submerge_client.datasets.source import Source
from submerge_client.datasets.table import check_distinct, check_text
from submerge_files.reader.formats.arrow_file import columns_in
from submerge_files.reader.formats.remote_path import is_remote
from submerge_files.reader.formats.tables import (
    HEAD_ROWS,
    ColumnHead,
    Kind,
    RawRows,
    TableFile,
    block_rows,
)
from submerge_files.reader.time_form import is_time

BLOCK_BYTES = 1 << 20
"""Bytes that pyarrow parses at once; a row has to be shorter."""

NANS = ("NAN", "Nan", "-nan", "-NaN", "+nan", "+NaN")
"""Gaps beside those of `MISSING`, as numbers are written."""


class NotParsed(Exception):
    """A row is none that pyarrow can read."""


@dataclass(frozen=True, eq=False)
class TextFile(TableFile):
    """A table in text."""

    _source: Source
    _form: text.TextForm

    @classmethod
    def of(cls, source: Source, missing: Collection[str] = ()) -> TextFile:
        """Look at the first rows of a file; raises UsageError if they are no table."""
        check_text(source)
        form = text.form_of(source, missing)
        check_distinct(source.path, form.columns)
        rows = text.sample(source, form, HEAD_ROWS + 1)
        whole, rows = len(rows) <= HEAD_ROWS, rows[:HEAD_ROWS]
        headings = form.names or ("",) * form.width
        columns = tuple(
            _column(name, [row[i].strip() for row in rows], form, heading=bool(headings[i]))
            for i, name in enumerate(form.columns)
        )
        named = bool(form.names)
        return cls(source.path, columns, len(rows), whole, form.notes, named, source, form)

    def at(self, row: int) -> str:
        """Return the line of a row."""
        return f"line {text.line_of(self._source, self._form, row)}"

    def blocks(
        self, numbers: Sequence[int], texts: Sequence[int], begin: int = 0
    ) -> Iterator[RawRows]:
        """Read columns as numbers and as text, from a row on."""
        most, row = block_rows(len(self.columns)), 0
        with self._source.damage_first():
            try:
                for raw in self._parsed(numbers, texts, most):
                    row += len(raw.numbers)
                    if row > begin:
                        yield raw.last(row - begin)
                return
            except NotParsed:
                # What pyarrow has read is only counted, and mistakes get their places.
                row = max(row, begin)
            for piece in text.pieces(
                self._source, self._form, numbers, texts, begin=row, most=most
            ):
                yield RawRows(*piece)

    def _parsed(self, numbers: Sequence[int], texts: Sequence[int], most: int) -> Iterator[RawRows]:
        """Yield rows; raises NotParsed at the first that pyarrow refuses."""
        # A column can be parsed as one type alone.
        if self._form.delimiter is None or {*numbers} & {*texts}:
            raise NotParsed
        try:
            import pyarrow as pa
            from pyarrow import csv
        except ModuleNotFoundError as error:
            raise NotParsed from error
        names = [str(i) for i in range(len(self.columns))]
        wanted = [*numbers, *texts] or [0]
        types = {names[i]: self._type(pa, i) for i in numbers}
        types |= {names[i]: pa.string() for i in wanted if i not in {*numbers}}
        with ExitStack() as opened:
            try:
                parsed = opened.enter_context(
                    csv.open_csv(
                        self._stream(pa, opened),
                        csv.ReadOptions(
                            use_threads=False,
                            block_size=BLOCK_BYTES,
                            skip_rows=self._form.skip,
                            column_names=names,
                        ),
                        csv.ParseOptions(delimiter=self._form.delimiter, newlines_in_values=True),
                        csv.ConvertOptions(
                            column_types=types,
                            include_columns=[names[i] for i in dict.fromkeys(wanted)],
                            null_values=[*self._form.missing, *NANS],
                            true_values=[word for word, value in TRUTH.items() if value],
                            false_values=[word for word, value in TRUTH.items() if not value],
                            decimal_point="," if self._form.comma else ".",
                        ),
                    )
                )
                for batch in parsed:
                    for start in range(0, batch.num_rows, most):
                        part = batch.slice(start, most)
                        rows = columns_in(pa, part, [names[i] for i in numbers])
                        if np.isinf(rows).any():
                            raise NotParsed
                        yield RawRows(rows, tuple(part.column(names[i]) for i in texts))
            except pa.ArrowInvalid as error:
                raise NotParsed from error

    def _type(self, pa: Any, place: int) -> Any:
        full = self.columns[place].full
        return pa.bool_() if full and all(value in TRUTH for value in full) else pa.float64()

    def _stream(self, pa: Any, opened: ExitStack) -> Any:
        if self._source.packed or is_remote(self.path):
            return opened.enter_context(self._source.unpacked())
        return opened.enter_context(pa.OSFile(str(self.path)))


def _column(name: str, fields: Sequence[str], form: text.TextForm, *, heading: bool) -> ColumnHead:
    values = tuple("" if form.is_missing(field) else field for field in fields)
    if form.comma:
        values = tuple(map(pointed, values))
    return ColumnHead(name, _kind([value for value in values if value]), values, heading=heading)


def _kind(full: Sequence[str]) -> Kind:
    """Return what fields are, as most of them are; the others are found when they are read."""
    if not full:
        return Kind.EMPTY
    numbers = sum(map(is_number, full))
    if numbers == len(full):
        return Kind.NUMBERS
    if all(map(is_time, full)):
        return Kind.TIMES
    if 2 * (numbers + _nearly(full)) > len(full):
        return Kind.NUMBERS
    return Kind.TEXT


def _nearly(full: Sequence[str]) -> int:
    """Return how many fields are numbers in a spelling that we do not read."""
    units = Counter(unit(field) for field in full if not is_number(field))
    # Names such as 7a, 7b and 8c have many "units"; a column of readings has one.
    several = len(units) > 2
    return sum(not is_number(f) and bool(cure(f)) and not (several and unit(f)) for f in full)
