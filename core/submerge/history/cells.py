"""Cells: the spans of time that a history is cut into.

Rows are summarised cell by cell. A cell is a whole number of units from 1970, and a unit is 2^k
seconds; so where a history is cut into files makes no difference to its cells. When there are too
many of them (`most_cells`), neighbours are merged and the unit doubles: memory does not grow with
the number of rows. Rows without times are counted, and a cell is 2^k rows of one file.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from submerge.history.recorded import Recorded

FEWEST, MOST, ROOM = 64, 128, 64_000_000
"""Cells that are held: as many as have room in so many bytes, within these bounds."""

LEAST_ROWS = 64
"""Rows of a cell at first, where they come in equal distances."""


class Cell(NamedTuple):
    """A span of time of one machine; cells of a machine sort in the order of time.

    machine : in the order in which machines came
    run : of rows that follow one another; 0 where rows have times
    number : from 1970, or from the run's first row
    """

    machine: int
    run: int
    number: int

    @property
    def when(self) -> tuple[int, int]:
        """The span of time, the same for all machines."""
        return self.run, self.number

    @property
    def parent(self) -> Cell:
        """The cell of twice the length that it is in."""
        return Cell(self.machine, self.run, self.number >> 1)

    @property
    def with_next_run(self) -> Cell:
        """The cell that two neighbouring runs share."""
        return Cell(self.machine, self.run >> 1, self.number)


class CellGrid(NamedTuple):
    """How cells are laid out.

    unit : length of a cell, seconds; rows without times count as a second each
    runs : 2^runs runs share their cells
    """

    unit: float
    runs: int = 0

    @classmethod
    def of(cls, period_s: float) -> CellGrid:
        """Return the first grid for rows of that period."""
        return cls(2.0 ** math.ceil(math.log2(LEAST_ROWS * period_s)))

    @property
    def doubled(self) -> CellGrid:
        """Cells of twice the length."""
        return CellGrid(2 * self.unit, self.runs)

    @property
    def of_more_runs(self) -> CellGrid:
        """Cells that twice as many runs share."""
        return CellGrid(self.unit, self.runs + 1)

    def first_cell(
        self, recorded: Recorded, start: int, machine: int, run: int
    ) -> tuple[Cell, int]:
        """Return the cell of a row, and where the rows that follow it there end.

        machine : as in `Cell`
        run : of the file that they are from, if they have no times
        """
        times, n = recorded.times, len(recorded.rows)
        if times is None:
            number = (recorded.first - 1 + start) // int(self.unit)
            return Cell(machine, run >> self.runs, number), min(
                n, (number + 1) * int(self.unit) - recorded.first + 1
            )
        number = math.floor(times[start] / self.unit)
        return Cell(machine, 0, number), int(times.searchsorted((number + 1) * self.unit))


def most_cells(width: int) -> int:
    """Return how many cells are held of rows of that width."""
    return min(MOST, max(FEWEST, ROOM // (8 * width * width)))
