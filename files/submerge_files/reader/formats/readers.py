"""Opening: the reader of a file, chosen by its first bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from submerge import Array
from submerge_client.datasets import intel_lab, npy, text
from submerge_client.datasets.instants import is_time, to_seconds
from submerge_client.datasets.reading import format_of
from submerge_client.datasets.source import Place, Source, refusal, shown
from submerge_client.datasets.table import check_distinct, counted
from submerge_client.datasets.text import cure, is_missing, is_number, unit
from submerge_files.reader.formats import arrow_file
from submerge_files.reader.formats.remote_path import is_remote, source_of
from submerge_files.reader.formats.tables import (
    HEAD_ROWS,
    ColumnHead,
    Kind,
    RawRows,
    TableFile,
    block_rows,
)


@dataclass(frozen=True, eq=False)
class TextFile:
    """A table in text. Its fields are those of `TableFile`."""

    path: Path
    columns: tuple[ColumnHead, ...]
    head: int
    whole: bool
    notes: tuple[str, ...]
    _source: Source
    _form: text.TextForm
    unit: str = "line"

    @classmethod
    def of(cls, source: Source) -> TextFile:
        """Look at the first rows of a file; raises UsageError if they are no table."""
        with source.damage_first():
            form = text.form_of(source)
            check_distinct(source.path, form.columns)
            rows = text.sample(source, form, HEAD_ROWS + 1)
        whole, rows = len(rows) <= HEAD_ROWS, rows[:HEAD_ROWS]
        headings = form.names or ("",) * form.width
        columns = tuple(
            _text_file_column(name, [row[i].strip() for row in rows], bool(headings[i]))
            for i, name in enumerate(form.columns)
        )
        _check_first(source.path, form.skip + 1, columns)
        notes = tuple(text.remarks(source, form))
        return cls(source.path, columns, len(rows), whole, notes, source, form)

    @property
    def named(self) -> bool:
        """Whether the file has headings."""
        return bool(self._form.names)

    def blocks(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[RawRows]:
        """Read columns as numbers and as text."""
        with self._source.damage_first():
            most = block_rows(len(self.columns))
            for piece in text.pieces(self._source, self._form, numbers, texts, most=most):
                yield RawRows(*piece)


def _check_first(path: Path, line: int, columns: Sequence[ColumnHead]) -> None:
    """Refuse a row of units below the headings."""
    first = [c.values[0] for c in columns if c.kind == Kind.NUMBERS and len(c.full) > 2]
    units = [value for value in first if value and not is_number(value) and not cure(value)]
    if len(units) > 1 and len(units) == len(first) - first.count(""):
        raise refusal(
            Place(path, line),
            expected="numbers below the headings",
            got=f"a row of text ({shown(units[0])}, ...)",
            hint="if it holds units, write them into the headings and remove it",
        )


def _text_file_column(name: str, fields: Sequence[str], heading: bool) -> ColumnHead:
    values = tuple("" if is_missing(field) else field for field in fields)
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


# The time of an epoch is the earliest of its lines; a mote's clock may be wrong, so epochs are
# put in the order of these times.


QUANTITY = "temperature"
"""What is read of a log."""


@dataclass(frozen=True, eq=False)
class MatrixFile:
    """A matrix of numbers. Its fields are those of `TableFile`."""

    path: Path
    columns: tuple[ColumnHead, ...]
    named: bool
    notes: tuple[str, ...]
    _n: int
    _some: Callable[[int, int], Array]
    unit: str = "row"

    @classmethod
    def mapped(cls, source: Source) -> MatrixFile:
        """Return a plain `.npy`, of which blocks alone are in memory."""
        (n, _), _ = npy.header(source)

        def some(begin: int, end: int) -> Array:
            # Mapped for each block: pages of a mapping that stays count as resident.
            try:
                mapped = np.load(source.path, mmap_mode="r", allow_pickle=False)
            except (ValueError, OSError) as error:
                raise refusal(
                    source.path,
                    expected="a whole .npy file",
                    got="one that breaks off or has no rows",
                    hint="copy or write it again",
                ) from error
            with np.errstate(over="ignore"):  # a longdouble may be infinite: refused later
                return np.array(mapped[begin:end], dtype=np.float64)

        return cls._nameless(source.path, n, some)

    @classmethod
    def of_rows(cls, path: Path, rows: Array) -> MatrixFile:
        """Return a matrix without headings."""
        return cls._nameless(path, len(rows), lambda begin, end: rows[begin:end])

    @classmethod
    def _nameless(cls, path: Path, n: int, some: Callable[[int, int], Array]) -> MatrixFile:
        if n == 0:
            raise refusal(path, expected="rows", got="none", hint="check how it was written")
        head = some(0, HEAD_ROWS)
        columns = tuple(_column(f"x{i}", head[:, i]) for i in range(head.shape[1]))
        return cls(path, columns, False, (), n, some)

    @classmethod
    def of_log(cls, source: Source) -> MatrixFile:
        """Read the temperatures of an Intel Lab log."""
        table, epochs = intel_lab.read_epochs(source, QUANTITY)
        stamps = intel_lab.first_stamps(source)
        times = to_seconds([stamps.get(int(epoch), "") for epoch in epochs])
        order = np.argsort(times, kind="stable")
        # NaN is last: an epoch whose lines all begin wrongly.
        order, lost = order[: np.isfinite(times).sum()], int(np.isnan(times).sum())
        notes = [f"{counted(lost, 'epoch')} without a time left out"] if lost else []
        rows = np.column_stack([times, table.rows])[order]
        head = rows[:HEAD_ROWS]
        columns = [_column(name, head[:, i + 1]) for i, name in enumerate(table.names)]
        clock = ColumnHead("time", Kind.TIMES, _texts(head[:, 0]), typed=True)
        said = (*table.notes, *notes)

        def some(begin: int, end: int) -> Array:
            return rows[begin:end]

        return cls(source.path, (clock, *columns), True, said, len(rows), some)

    @property
    def head(self) -> int:
        """How many rows the columns' first values are."""
        return min(self._n, HEAD_ROWS)

    @property
    def whole(self) -> bool:
        """Whether these are all rows."""
        return self._n <= HEAD_ROWS

    def blocks(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[RawRows]:
        """Read columns as numbers and as text."""
        most = block_rows(len(self.columns))
        for begin in range(0, self._n, most):
            rows = self._some(begin, begin + most)
            fields = tuple(list(_texts(rows[:, i])) for i in texts)
            places = range(begin + 1, begin + 1 + len(rows))
            yield RawRows(rows[:, list(numbers)], fields, places)


def _column(name: str, head: Array) -> ColumnHead:
    kind = Kind.EMPTY if np.isnan(head).all() else Kind.NUMBERS
    return ColumnHead(name, kind, _texts(head))


def _texts(values: Array) -> tuple[str, ...]:
    return tuple("" if value != value else f"{float(value):.17g}" for value in values)


def open_file(path: Path) -> TableFile:
    """Open one file, or refuse one that is no table."""
    source = source_of(path)
    if arrow_file.recognizes(source):
        return arrow_file.opened(source)
    with source.damage_first():
        kind = format_of(source)
        if is_remote(path) and (kind == "npy" or (kind == "log" and is_log(source.head))):
            raise refusal(
                path,
                expected="Parquet, or a table in text, at a remote place",
                got=f"a file that is read as {kind}",
                hint="copy it to a disk, or write it as Parquet",
            )
        match kind:
            case "npy" if source.packed:
                return MatrixFile.of_rows(path, npy.read(source).rows)
            case "npy":
                return MatrixFile.mapped(source)
            case "log" if is_log(source.head):
                return MatrixFile.of_log(source)
            case _:
                return TextFile.of(source)


def is_log(head: bytes) -> bool:
    """Return whether most first lines have a log's number of fields, separated by blanks."""
    # Lines of other tables may also begin with a date, a time and two numbers.
    lines = [line for line in head.splitlines()[:20] if line.strip()]
    widths = [len(line.split()) for line in lines]
    return b"\t" not in lines[0] and 2 * widths.count(intel_lab.FIELDS) > len(widths)
