"""Opening: the reader of a file, chosen by its first bytes; text, matrices, sheets of workbooks.

What pyarrow refuses, `submerge_client.datasets.text` reads from there on, row by row; without
pyarrow, all of it.
"""

from __future__ import annotations

import csv
import importlib
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from operator import add
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from submerge import Array, UsageError
from submerge_client.datasets import npy, text
from submerge_client.datasets.fields import TRUTH, cure, is_number, pointed, unit
from submerge_client.datasets.source import HEAD, Place, Source, foreign, refusal
from submerge_client.datasets.table import check_distinct, check_text, counted
from submerge_files.reader.formats import arrow_file, intel_lab
from submerge_files.reader.formats.arrow_file import columns_in
from submerge_files.reader.formats.remote_path import is_remote, source_of
from submerge_files.reader.formats.tables import (
    HEAD_ROWS,
    ColumnHead,
    Kind,
    RawRows,
    TableFile,
    block_rows,
)
from submerge_files.reader.time_form import is_time, to_seconds

BLOCK_BYTES = 1 << 20  # bytes that pyarrow parses at once; a row has to be shorter

NANS = ("NAN", "Nan", "-nan", "-NaN", "+nan", "+NaN")
"""Gaps beside those of `MISSING`, as numbers are written."""


FOOTER = re.compile(
    r"(?i)((grand |sub)?totals?|sum(me)?|average|avg|mean|gesamt|mittelwert|suma|合计|平均):?"
)
"""What stands beside sums and means below a table, in one of its `LAST` lines."""

PAIRED = re.compile(r"(?i)(min|max)(imum)?\.?:?|count:?|median:?|std(\.? ?dev)?\.?:?")
"""Likewise, of which one alone may be a state of a machine."""

LAST = 4


def _end_of(stream: BinaryIO, *, packed: bool) -> list[str]:
    """Return the last lines of a text; what is packed has to be read to its end."""
    most = HEAD // 8
    if not packed:
        stream.seek(max(0, stream.seek(0, io.SEEK_END) - most))
    end = b""
    while more := stream.read(BLOCK_BYTES):
        end = (end + more)[-most:]
    return end.decode("utf-8", "replace").splitlines()[1:]


class NotParsed(Exception):
    """A row is none that pyarrow can read."""


@dataclass(frozen=True, eq=False)
class TextFile(TableFile):
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
        file = cls(source.path, columns, len(rows), whole, form.notes, named, source, form)
        file._check_end()
        return file

    def _check_end(self) -> None:
        """Refuse sums and means below the table, which would be a row; and digits in groups."""
        source, form = self._source, self._form
        if is_remote(self.path):
            return
        with source.unpacked() as stream, source.damage_first():
            end = _end_of(stream, packed=source.packed and not isinstance(source, SheetSource))
        rows = [row for _, row in text.rows_of(source, end, form.delimiter)]
        columns = [[row[i].strip() for row in rows if i < len(row)] for i in range(form.width)]
        for place, (column, cells) in enumerate(zip(self.columns, columns, strict=True)):
            known = {*cells[:-LAST], *column.full[:-LAST]}
            last = [word for word in cells[-LAST:] if word not in known]
            below = [word for word in last if FOOTER.fullmatch(word)]
            paired = [word for word in last if PAIRED.fullmatch(word)]
            if word := next(iter(below + paired * (len({*paired}) > 1)), ""):
                with source.lines() as lines:
                    line = max(i for i, each in enumerate(lines, 1) if word in each)
                raise refusal(
                    Place(self.path, line, place + 1, column.name),
                    expected="a row as those above",
                    got=f"{word!r}, as sums and means below a table have",
                    hint="leave the line out",
                )
        if not form.comma:
            text.check_groups(
                source, map(add, (list(each.values) for each in self.columns), columns)
            )

    def at(self, row: int) -> str:
        return f"line {text.line_of(self._source, self._form, row)}"

    def blocks(
        self, numbers: Sequence[int], texts: Sequence[int], begin: int = 0
    ) -> Iterator[RawRows]:
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
        known = {i: {*self.columns[i].full} for i in numbers}
        truth = {i for i, full in known.items() if full and full <= TRUTH.keys()}
        types = {names[i]: pa.bool_() if i in truth else pa.float64() for i in numbers}
        types |= {names[i]: pa.string() for i in wanted if i not in {*numbers}}
        with ExitStack() as opened:
            try:
                parsed = opened.enter_context(
                    csv.open_csv(
                        opened.enter_context(
                            self._source.unpacked()
                            if self._source.packed or is_remote(self.path)
                            else pa.OSFile(str(self.path))
                        ),
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


@dataclass(frozen=True, eq=False)
class MatrixFile(TableFile):
    _n: int
    _some: Callable[[int, int], Array]
    _quantity: str = intel_lab.USUAL

    def __reduce__(self) -> tuple[Any, ...]:
        # Its rows may be in memory: another process reads them again.
        return open_file, (self.path, (), self._quantity)

    @classmethod
    def of(cls, matrix: npy.Matrix) -> MatrixFile:
        head = matrix.block(0, HEAD_ROWS)
        columns = tuple(head_of(f"x{i}", head[:, i]) for i in range(head.shape[1]))
        n, path = matrix.shape[0], matrix.source.path
        return cls(path, columns, len(head), n <= HEAD_ROWS, (), False, n, matrix.block)

    @classmethod
    def of_log(cls, source: Source, quantity: str) -> MatrixFile:
        """Read a quantity of an Intel Lab log."""
        log = intel_lab.read(source, quantity)
        # The time of an epoch is the earliest of its lines; a mote's clock may be wrong, so epochs
        # are put in the order of these times. NaN is last: all lines of the epoch begin wrongly.
        times = to_seconds(log.stamps)
        order = np.argsort(times, kind="stable")[: np.isfinite(times).sum()]
        lost = len(times) - len(order)
        said = [f"{counted(lost, 'epoch')} without a time left out"] if lost else []
        rows = np.column_stack([times, log.rows])[order]
        n, head = len(rows), rows[:HEAD_ROWS]
        clock = ColumnHead("time", Kind.TIMES, _texts(head[:, 0]), typed=True)
        columns = [head_of(name, head[:, i]) for i, name in enumerate(log.names, 1)]
        table = (clock, *columns), len(head), n <= HEAD_ROWS, (*log.notes, *said), True
        return cls(source.path, *table, n, lambda begin, end: rows[begin:end], quantity)

    def blocks(
        self, numbers: Sequence[int], texts: Sequence[int], begin: int = 0
    ) -> Iterator[RawRows]:
        most = block_rows(len(self.columns))
        for first in range(begin, self._n, most):
            rows = self._some(first, first + most)
            fields = tuple(list(_texts(rows[:, i])) for i in texts)
            yield RawRows(rows[:, list(numbers)], fields)


def head_of(name: str, first: Array) -> ColumnHead:
    """Return a column of numbers by its first values (n,)."""
    kind = Kind.EMPTY if np.isnan(first).all() else Kind.NUMBERS
    return ColumnHead(name, kind, _texts(first))


def _texts(values: Array) -> tuple[str, ...]:
    return tuple("" if value != value else f"{float(value):.17g}" for value in values)


WORKBOOKS = ("an Excel workbook", "a spreadsheet")  # what the first bytes of one are called


@dataclass(frozen=True)
class SheetSource(Source):
    """The first sheet of a workbook as CSV in memory: line 7 is its row 7."""

    sheet: bytes = b""
    sheets: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened_sheet, (self.path,)

    @contextmanager
    def unpacked(self) -> Iterator[BinaryIO]:
        yield io.BytesIO(self.sheet)


def sheet_of(source: Source) -> Source:
    """Return the first sheet of a workbook, or another file as it is."""
    kind, _ = foreign(source.head) or ("", "")
    if kind not in WORKBOOKS:
        return source
    text = io.StringIO()
    cells, sheets = _cells(source, kind)
    rows = ([_written(cell) for cell in row] or [""] for row in cells)
    csv.writer(text, lineterminator="\n").writerows(rows)
    encoded = text.getvalue().encode()
    return SheetSource(source.path, True, encoded[:HEAD], encoded, sheets)


def _opened_sheet(path: Path) -> Source:
    return sheet_of(source_of(path))


def _cells(source: Source, kind: str) -> Any:
    try:
        calamine: Any = importlib.import_module("python_calamine")
    except ModuleNotFoundError as error:
        raise refusal(
            source.path,
            expected="a table",
            got=f"{kind}, which needs python-calamine",
            hint="pip install 'submerge[excel]', or save its sheet as CSV in UTF-8",
        ) from error
    try:
        with source.path.open("rb") as stream:
            workbook = calamine.CalamineWorkbook.from_filelike(stream)
            cells = workbook.get_sheet_by_index(0).to_python(skip_empty_area=False)
            return cells, tuple(workbook.sheet_names)
    except (calamine.CalamineError, OSError) as error:
        raise refusal(
            source.path,
            expected=f"{kind} that can be read",
            got=str(error) or "damage",
            hint="save its sheet as CSV in UTF-8",
        ) from error


def _written(cell: Any) -> str:
    """Return a cell as text: numbers in full, times as ISO 8601."""
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    if isinstance(cell, float) and cell.is_integer():
        return f"{cell:.0f}"
    return cell.isoformat() if isinstance(cell, date) else str(cell)


def open_file(
    path: Path, missing: Collection[str] = (), quantity: str = intel_lab.USUAL
) -> TableFile:
    """Open one file, or refuse one that is no table; fields in `missing` are gaps, too."""
    intel_lab.check_quantity(quantity)
    source = sheet_of(source_of(path))
    if arrow_file.recognizes(source):
        return arrow_file.opened(source)
    with source.damage_first():
        matrix, log = npy.recognizes(source), intel_lab.recognizes(source.head)
        if is_remote(path) and (matrix or log):
            raise refusal(
                path,
                expected="Parquet, or a table in text, at a remote place",
                got=f"a file that is read as {'npy' if matrix else 'log'}",
                hint="copy it to a disk, or write it as Parquet",
            )
        if matrix:
            return MatrixFile.of(npy.Matrix.of(source))
        if log:
            return MatrixFile.of_log(source, quantity)
        sheets = source.sheets if isinstance(source, SheetSource) else ()
        said = f"of the sheets {', '.join(sheets)} the first is read: save another one as CSV"
        try:
            file = TextFile.of(source, missing)
        except UsageError as error:
            raise UsageError(f"{error}; {said}" if len(sheets) > 1 else str(error)) from error
        return replace(file, notes=(said, *file.notes)) if len(sheets) > 1 else file
