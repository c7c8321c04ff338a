"""Opening: the reader of a file, chosen by its first bytes; matrices, and sheets of workbooks."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from submerge import Array
from submerge_client.datasets import npy
from submerge_client.datasets.source import HEAD, Source, empty, foreign, refusal
from submerge_client.datasets.table import counted
from submerge_files.reader.formats import arrow_file, intel_lab
from submerge_files.reader.formats.remote_path import is_remote, source_of
from submerge_files.reader.formats.tables import (
    HEAD_ROWS,
    ColumnHead,
    Kind,
    RawRows,
    TableFile,
    block_rows,
)
from submerge_files.reader.formats.text_file import TextFile
from submerge_files.reader.time_form import to_seconds


@dataclass(frozen=True, eq=False)
class MatrixFile(TableFile):
    """A matrix of numbers."""

    _n: int
    _some: Callable[[int, int], Array]

    @classmethod
    def of(cls, matrix: npy.Matrix) -> MatrixFile:
        """Return a `.npy`."""
        head = matrix.block(0, HEAD_ROWS)
        columns = tuple(_column(f"x{i}", head[:, i]) for i in range(head.shape[1]))
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
        notes = [f"{counted(lost, 'epoch')} without a time left out"] if lost else []
        rows = np.column_stack([times, log.rows])[order]
        head = rows[:HEAD_ROWS]
        columns = [_column(name, head[:, i + 1]) for i, name in enumerate(log.names)]
        clock = ColumnHead("time", Kind.TIMES, _texts(head[:, 0]), typed=True)
        said = (*log.notes, *notes)

        def some(begin: int, end: int) -> Array:
            return rows[begin:end]

        n, columns = len(rows), [clock, *columns]
        return cls(source.path, tuple(columns), len(head), n <= HEAD_ROWS, said, True, n, some)

    def blocks(
        self, numbers: Sequence[int], texts: Sequence[int], begin: int = 0
    ) -> Iterator[RawRows]:
        """Read columns as numbers and as text, from a row on."""
        most = block_rows(len(self.columns))
        for first in range(begin, self._n, most):
            rows = self._some(first, first + most)
            fields = tuple(list(_texts(rows[:, i])) for i in texts)
            yield RawRows(rows[:, list(numbers)], fields)


def _column(name: str, head: Array) -> ColumnHead:
    kind = Kind.EMPTY if np.isnan(head).all() else Kind.NUMBERS
    return ColumnHead(name, kind, _texts(head))


def _texts(values: Array) -> tuple[str, ...]:
    return tuple("" if value != value else f"{float(value):.17g}" for value in values)


WORKBOOKS = ("an Excel workbook", "a spreadsheet")
"""What the first bytes of one are called."""


@dataclass(frozen=True)
class SheetSource(Source):
    """The first sheet of a workbook as CSV in memory: line 7 is its row 7."""

    sheet: bytes = b""

    @contextmanager
    def unpacked(self) -> Iterator[BinaryIO]:
        """Open the text as bytes."""
        yield io.BytesIO(self.sheet)


def sheet_of(source: Source) -> Source:
    """Return the first sheet of a workbook, or another file as it is."""
    kind, _ = foreign(source.head) or ("", "")
    if kind not in WORKBOOKS:
        return source
    text = io.StringIO()
    rows = ([_written(cell) for cell in row] or [""] for row in _cells(source, kind))
    csv.writer(text, lineterminator="\n").writerows(rows)
    encoded = text.getvalue().encode()
    if not encoded.strip(b',"\n'):
        raise empty(source.path)
    return SheetSource(source.path, True, encoded[:HEAD], encoded)


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
            sheet = calamine.CalamineWorkbook.from_filelike(stream).get_sheet_by_index(0)
            return sheet.to_python(skip_empty_area=False)
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
    """Open one file, or refuse one that is no table.

    Fields in `missing` are gaps, too; of an Intel Lab log, a `quantity` is read.
    """
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
        return MatrixFile.of_log(source, quantity) if log else TextFile.of(source, missing)
