"""MatrixFile: `.npy`, mapped into memory; and the Intel Lab log, which is read at once.

A log becomes a row an epoch and a column a mote. The time of an epoch is the earliest of its
lines; a mote's clock may be wrong, so epochs are put in the order of these times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from submerge import Array
from submerge_client.datasets import intel_lab, npy
from submerge_client.datasets.instants import to_seconds
from submerge_client.datasets.source import Source, refusal
from submerge_client.datasets.table import counted
from submerge_files.reader.formats.tables import HEAD_ROWS, ColumnHead, Kind, RawRows, block_rows

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
        """Return a plain `.npy`, of which blocks alone are in memory.

        Raises
        ------
        UsageError
            If it is no matrix of real numbers, or breaks off.
        """
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
