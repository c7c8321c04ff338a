"""Batches: the rows of a history in batches that do not depend on how it was cut into files.

A batch has `AT_ONCE` rows of one cell, or what is left of the cell. Both passes take their rows so;
the same rows give the same bytes, in one file or in seven hundred.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.history.cells import Cell, CellGrid
from submerge.history.layout import LaidOut, places_of
from submerge.history.recorded import Recorded
from submerge.history.time_spans import LeftOut, TimeSpan

AT_ONCE = 2048
"""Rows of a batch."""


class Batch(NamedTuple):
    """Rows of one cell, in the order of time.

    rows : (n, channels), in their units
    times : (n,), seconds since 1970, or None
    """

    cell: Cell
    rows: Array
    times: Array | None


class Batches:
    """Cuts rows into batches.

    grid : How cells are laid out.
    without : Rows in these are in no batch.
    laid : Which number each machine and each file has; by default, in the order in which they come.

    left_out : Counts the rows that are in no batch.
    """

    def __init__(
        self, grid: CellGrid, without: Sequence[TimeSpan] = (), laid: LaidOut | None = None
    ) -> None:
        self.grid, self.left_out = grid, LeftOut(without)
        self._machines = {} if laid is None else places_of(laid.machines)
        self._runs = {} if laid is None else places_of(laid.files)
        self._cell: Cell | None = None
        self._rows: list[Array] = []
        self._times: list[Array | None] = []
        self._held = 0

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines so far, in the order in which they came."""
        return tuple(self._machines)

    def double(self, *, longer: bool) -> None:
        """Go over to cells of twice the length, or of twice as many runs.

        What waits belongs to the larger cell.
        """
        self.grid = self.grid.doubled if longer else self.grid.of_more_runs
        if self._cell is not None:
            self._cell = self._cell.parent if longer else self._cell.with_next_run

    def add(self, recorded: Recorded) -> Iterator[Batch]:
        """Take rows; yield the batches that are complete. The grid may double in between."""
        for piece in self.left_out.rest(recorded):
            yield from self._add(piece)

    def _add(self, recorded: Recorded) -> Iterator[Batch]:
        machine = self._machines.setdefault(recorded.machine, len(self._machines))
        run = self._runs.setdefault(recorded.file, len(self._runs))
        start, n = 0, len(recorded.rows)
        while start < n:
            cell, stop = self.grid.first_cell(recorded, start, machine, run)
            if cell != self._cell:
                yield from self.end()
                self._cell = self.grid.first_cell(recorded, start, machine, run)[0]
                continue
            stop = min(stop, start + AT_ONCE - self._held)
            times = None if recorded.times is None else recorded.times[start:stop]
            self._rows.append(recorded.rows[start:stop])
            self._times.append(times)
            self._held += stop - start
            start = stop
            if self._held == AT_ONCE:
                yield from self._whole()

    def end(self) -> Iterator[Batch]:
        """Yield what waits."""
        if self._held:
            yield from self._whole()
        self._cell = None

    def _whole(self) -> Iterator[Batch]:
        cell, rows, times = self._cell, self._rows, self._times
        self._rows, self._times, self._held = [], [], 0
        if cell is None:
            return
        known = [each for each in times if each is not None]
        yield Batch(cell, np.concatenate(rows), np.concatenate(known) if known else None)
