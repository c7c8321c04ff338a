"""Layout: how a history is cut into cells, settled by the times of its rows before any is learnt.

A cell is as short as `most_cells` allows, and has `LEAST_ROWS` rows or more of the usual period.
That follows from the set of times, and not from the order in which they were looked at: parts of a
history may be looked at apart, and merged (`merged`). Memory is that of `most_cells` numbers for
each machine or file. It reads times alone; which rows are learnt in the end is not known here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from submerge.history.cells import CellGrid, most_cells
from submerge.history.periods import Periods
from submerge.history.recorded import Recorded
from submerge.history.settings import FitSettings
from submerge.history.time_spans import LeftOut, TimeSpan

FINEST = -20
"""Cells of rows with times are of 2^FINEST seconds at first: a microsecond."""

LONGEST_S = 1e12
"""Longest cell: the cells before and after 1970 are never one."""

Key = tuple[str, str]
"""A machine, and the file that rows without times are from; "" for those with times."""


class LaidOut(NamedTuple):
    """What the times of a history settle.

    period_s : Time that a row stands for; 0 without times.
    seen : From the first row to the last; open without times.
    machines, files : In the order in which their rows come.
    """

    grid: CellGrid
    period_s: float
    seen: TimeSpan
    machines: tuple[str, ...]
    files: tuple[str, ...]


@dataclass
class Layout:
    """Looks at the times of rows, in order.

    settings : Rows that it leaves out by their times or their state need no cell.

    level : Cells are of 2^level seconds, or rows.
    cells : Numbers of the cells that have rows.
    """

    width: int
    settings: FitSettings
    level: int = FINEST
    seen: TimeSpan = field(default_factory=TimeSpan)
    cells: dict[Key, set[int]] = field(default_factory=dict)
    periods: Periods = field(default_factory=Periods)
    machines: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._most = most_cells(self.width)

    def add(self, recorded: Recorded) -> None:
        """Look at rows; they have channels only where `settings.when` asks for them."""
        if not len(recorded.rows):
            return
        times = recorded.times
        self.machines.setdefault(recorded.machine, len(self.machines))
        self.files.setdefault(recorded.file, len(self.files))
        if times is not None:
            self._see(TimeSpan(float(times[0]), float(times[-1])))
            self.periods.add(recorded.machine, times)
        else:
            self._raise(0)
        for piece in LeftOut(self.settings.without).rest(recorded):
            self._mark(piece)

    def merged(self, later: Layout) -> Layout:
        """Take in what was seen of rows that come after these; return itself."""
        if np.isfinite(later.seen.first):
            self._see(later.seen)
        for names, others in ((self.machines, later.machines), (self.files, later.files)):
            for name in others:
                names.setdefault(name, len(names))
        self.periods.follow(later.periods)
        self._raise(later.level)
        for key, numbers in later.cells.items():
            shift = self.level - later.level
            self.cells.setdefault(key, set()).update(number >> shift for number in numbers)
        self._settle()
        return self

    def laid_out(self) -> LaidOut | None:
        """Return what the times settle; None without rows."""
        if not self.machines:
            return None
        # Times that go back are refused where rows are read.
        period_s = max(0.0, self.periods.typical)
        least = round(math.log2(CellGrid.of(period_s or 1.0).unit))
        self._raise(max(self.level, least))
        grid = self._of_few_cells(CellGrid(2.0**self.level))
        return LaidOut(grid, period_s, self.seen, tuple(self.machines), tuple(self.files))

    def _see(self, span: TimeSpan) -> None:
        known = self.seen if np.isfinite(self.seen.first) else span
        self.seen = TimeSpan(min(known.first, span.first), max(known.last, span.last))

    def _mark(self, recorded: Recorded) -> None:
        """Note the cells of rows."""
        times, key = recorded.times, (recorded.machine, "")
        if times is None:
            first = recorded.first - 1
            times, key = first + np.arange(float(len(recorded.rows))), (key[0], recorded.file)
        if self.settings.when is not None:
            times = times[self.settings.when.holds(recorded.rows)]
        if not len(times):
            return
        numbers = np.floor(times / 2.0**self.level)
        fresh = np.flatnonzero(np.diff(numbers, prepend=np.nan))
        self.cells.setdefault(key, set()).update(map(int, numbers[fresh].tolist()))
        self._settle()

    def _settle(self) -> None:
        """Make cells longer until there are few enough, as far as that makes fewer of them."""
        while (
            sum(map(len, self.cells.values())) > self._most
            and max(map(len, self.cells.values())) > 1
            and 2.0**self.level <= LONGEST_S
        ):
            self._raise(self.level + 1)

    def _raise(self, level: int) -> None:
        shift = level - self.level
        if shift <= 0:
            return
        self.level = level
        for key, numbers in self.cells.items():
            self.cells[key] = {number >> shift for number in numbers}

    def _of_few_cells(self, grid: CellGrid) -> CellGrid:
        """Let files without times share cells, until there are few enough."""
        places = {file: place for place, file in enumerate(self.files)}
        cells = {
            (machine, places[file] if file else 0, number)
            for (machine, file), numbers in self.cells.items()
            for number in numbers
        }
        while len(cells) > self._most:
            each = Counter((machine, run) for machine, run, _ in cells)
            if max(each.values()) > 1 and grid.unit <= LONGEST_S:
                grid = grid.doubled
                cells = {(machine, run, number >> 1) for machine, run, number in cells}
            elif max(run for _, run in each):
                grid = grid.of_more_runs
                cells = {(machine, run >> 1, number) for machine, run, number in cells}
            else:
                break
        return grid


def places_of(names: Sequence[str]) -> dict[str, int]:
    """Return the place of each name."""
    return {name: place for place, name in enumerate(names)}
