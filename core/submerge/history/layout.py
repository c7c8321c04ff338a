"""Layout: how a history is cut into cells, settled by the times of its rows before any is learnt.

A cell is as short as `most_cells` allows, and has `LEAST_ROWS` rows or more of the usual period.
That follows from the set of times: parts may be looked at apart, in any order, and `merged`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.history.recording import LeftOut, Recorded, TimeSpan
from submerge.history.settings import FitSettings

MOST_COUNTED = 4096  # different distances that are counted; more are rounded to three digits
OUTAGE = 100.0  # times the median from which a distance is an outage, and says nothing of a row


@dataclass
class Periods:
    """Counts the distances, seconds, of rows that follow one another, however they are cut."""

    counts: Counter[float] = field(default_factory=Counter)
    rounded: bool = False  # too many differ
    first: dict[str, float] = field(default_factory=dict)  # time of each machine, as `last`
    last: dict[str, float] = field(default_factory=dict)

    def add(self, machine: str, times: Array) -> None:
        """Take the times of more rows of a machine, (n,)."""
        if not len(times):
            return
        before = self.last.get(machine)
        self.first.setdefault(machine, float(times[0]))
        self.last[machine] = float(times[-1])
        apart = np.diff(times) if before is None else np.diff(times, prepend=before)
        # Times are to the microsecond.
        values, counts = np.unique(np.round(apart, 6), return_counts=True)
        self._count(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def follow(self, later: Periods) -> None:
        """Take in the distances of rows that come after these."""
        self._count(later.counts, rounded=later.rounded)
        for machine, first in later.first.items():
            before = self.last.get(machine)
            if before is not None:
                self._count({float(np.round(first - before, 6)): 1})
            self.first.setdefault(machine, first)
        self.last |= later.last

    def _count(self, counts: Mapping[float, int], *, rounded: bool = False) -> None:
        for value, n in counts.items():
            self.counts[_three_digits(value) if self.rounded else value] += n
        if not self.rounded and (rounded or len(self.counts) > MOST_COUNTED):
            exact, self.counts, self.rounded = self.counts, Counter(), True
            for value, n in exact.items():
                self.counts[_three_digits(value)] += n

    @property
    def typical(self) -> float:
        """The median distance, or the mean one of a coarse clock; 0 if no two rows are apart."""
        if not self.counts:
            return 0.0
        values = np.array(sorted(self.counts))
        counts = np.array([self.counts[value] for value in values.tolist()])
        median = float(values[np.searchsorted(counts.cumsum(), counts.sum() / 2)])
        if values[0] > 0:
            return median
        positive = values[values > 0]
        if not len(positive):
            return 0.0
        usual = values <= OUTAGE * max(median, float(positive[0]))
        return float(values[usual] @ counts[usual]) / float(counts[usual].sum())


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


# A cell is a whole number of units from 1970, and a unit is 2^k seconds; so where a history is
# cut into files makes no difference to its cells.

FEWEST, MOST, ROOM = 64, 128, 64_000_000
"""Cells that are held: as many as have room in so many bytes, within these bounds."""

LEAST_ROWS = 64  # rows of a cell at first, where they come in equal distances


class Cell(NamedTuple):
    """A span of time of a machine; its cells sort by time."""

    machine: int  # in the order in which they came
    run: int  # 0 where rows have times
    number: int  # from 1970, or from the run's first row

    @property
    def when(self) -> tuple[int, int]:
        """The span of time, the same for all machines."""
        return self.run, self.number

    def larger(self, *, longer: bool) -> Cell:
        """Return the cell of twice the length that it is in, or that two runs share."""
        if longer:
            return Cell(self.machine, self.run, self.number >> 1)
        return Cell(self.machine, self.run >> 1, self.number)


class CellGrid(NamedTuple):
    """Cells of `unit` seconds, or rows without times; 2^runs runs share theirs."""

    unit: float
    runs: int = 0

    @classmethod
    def of(cls, period_s: float) -> CellGrid:
        """Return the first grid for rows of that period."""
        return cls(2.0 ** math.ceil(math.log2(LEAST_ROWS * period_s)))

    def larger(self, *, longer: bool) -> CellGrid:
        """Return that of cells of twice the length, or that twice as many runs share."""
        return CellGrid(2 * self.unit, self.runs) if longer else CellGrid(self.unit, self.runs + 1)

    def fewer(self, cells: Iterable[Cell]) -> bool | None:
        """Return whether longer cells are fewer, or else shared ones; None if neither are."""
        if self.unit > LONGEST_S:
            return None
        runs = Counter((cell.machine, cell.run) for cell in cells)
        longer = max(runs.values()) > 1
        # Else that would leave as many: each is of a machine of its own.
        return longer if longer or max(run for _, run in runs) else None

    def first_cell(
        self, recorded: Recorded, start: int, machine: int, run: int
    ) -> tuple[Cell, int]:
        """Return the cell of a row of a machine and run, and where the rows in it end."""
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


FINEST = -20  # cells of rows with times are of 2^FINEST seconds at first: a microsecond
LONGEST_S = 1e12  # longest cell: the cells before and after 1970 are never one

Key = tuple[str, str]
"""A machine, and the file that rows without times are from; "" for those with times."""


class LaidOut(NamedTuple):
    """What the times of a history settle; machines and files as their rows come."""

    grid: CellGrid
    period_s: float  # that a row stands for, 0 without times
    seen: TimeSpan
    machines: tuple[str, ...]
    files: tuple[str, ...]

    @classmethod
    def as_they_come(cls) -> LaidOut:
        """Return what rows begin with whose times were not looked at: their cells will grow."""
        return cls(CellGrid.of(1.0), 0.0, TimeSpan(), (), ())


@dataclass
class Layout:
    """Looks at the times of rows that settings do not leave out, in order."""

    width: int
    settings: FitSettings
    level: int = FINEST  # cells are of 2^level seconds, or rows
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
        for part in LeftOut(self.settings.without).rest(recorded):
            self._mark(part)

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
        cells = {
            Cell(self.machines[machine], self.files[file] if file else 0, number)
            for (machine, file), numbers in self.cells.items()
            for number in numbers
        }
        while len(cells) > self._most and (longer := grid.fewer(cells)) is not None:
            grid = grid.larger(longer=longer)
            cells = {cell.larger(longer=longer) for cell in cells}
        return grid


# Both passes take their rows so; the same rows give the same bytes, in one file or in seven
# hundred.

AT_ONCE = 2048  # rows of a block


class CellBlock(NamedTuple):
    """Rows (n, channels) of one cell, in their units; times (n,) are since 1970, or None."""

    cell: Cell
    rows: Array
    times: Array | None


class CellBlocks:
    """Cuts rows into blocks, but of the spans `without`, which `left_out` counts.

    Machines and files are numbered as they are laid out; others as they come.
    """

    def __init__(self, laid: LaidOut, without: Sequence[TimeSpan] = ()) -> None:
        self.grid, self.left_out = laid.grid, LeftOut(without)
        self._machines = {name: place for place, name in enumerate(laid.machines)}
        self._runs = {name: place for place, name in enumerate(laid.files)}
        self._cell: Cell | None = None
        self._rows: list[Array] = []
        self._times: list[Array | None] = []
        self._held = 0

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines so far, in the order in which they came."""
        return tuple(self._machines)

    def double(self, *, longer: bool) -> None:
        """Go over to cells of twice the length, or of twice as many runs, with what waits."""
        self.grid = self.grid.larger(longer=longer)
        self._cell = self._cell and self._cell.larger(longer=longer)

    def add(self, recorded: Recorded) -> Iterator[CellBlock]:
        """Take rows; yield the blocks that are complete. The grid may double in between."""
        for part in self.left_out.rest(recorded):
            yield from self._add(part)

    def _add(self, recorded: Recorded) -> Iterator[CellBlock]:
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

    def end(self) -> Iterator[CellBlock]:
        """Yield what waits."""
        if self._held:
            yield from self._whole()
        self._cell = None

    def _whole(self) -> Iterator[CellBlock]:
        cell, rows, times = self._cell, self._rows, self._times
        self._rows, self._times, self._held = [], [], 0
        if cell is None:
            return
        known = [each for each in times if each is not None]
        yield CellBlock(cell, np.concatenate(rows), np.concatenate(known) if known else None)
