"""HeldFile: a file that is read at once, because its first row needs all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from submerge import Array
from submerge_client.datasets.table import Table
from submerge_fleet.files.tables import BLOCK_ROWS, HEAD_ROWS, ColumnHead, Kind, RawRows


@dataclass(frozen=True, eq=False)
class HeldFile:
    """A matrix in memory. Its fields are those of `TableFile`."""

    path: Path
    columns: tuple[ColumnHead, ...]
    named: bool
    notes: tuple[str, ...]
    _rows: Array
    unit: str = "row"

    @classmethod
    def of(cls, path: Path, table: Table, *, named: bool) -> HeldFile:
        """Return a table as a file of columns."""
        columns = tuple(
            ColumnHead(name, *_head(table.rows[:, i]), heading=named)
            for i, name in enumerate(table.names)
        )
        return cls(path, columns, named, table.notes, table.rows)

    @property
    def head(self) -> int:
        """How many rows the columns' first values are."""
        return min(len(self._rows), HEAD_ROWS)

    @property
    def whole(self) -> bool:
        """Whether these are all rows."""
        return len(self._rows) <= HEAD_ROWS

    def blocks(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[RawRows]:
        """Read columns as numbers and as text."""
        for begin in range(0, len(self._rows), BLOCK_ROWS):
            rows = self._rows[begin : begin + BLOCK_ROWS]
            fields = tuple([_text(value) for value in rows[:, i]] for i in texts)
            yield RawRows(rows[:, list(numbers)], fields, range(begin + 1, begin + 1 + len(rows)))


def _head(column: Array) -> tuple[Kind, tuple[str, ...]]:
    kind = Kind.EMPTY if np.isnan(column).all() else Kind.NUMBERS
    return kind, tuple(_text(value) for value in column[:HEAD_ROWS])


def _text(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.17g}"
