"""FirstPass: rows of a history become summaries of cells, in the channels' own units.

Each cell has the whole scatter of its rows: that scales exactly once center and scale are known,
merges exactly, and answers for any rank. Rows are prepared as a client does; gaps are learnt as
what they hide on average (`pca.expected`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from submerge._linalg import Array
from submerge.errors import UsageError
from submerge.history.batches import Batch, Batches
from submerge.history.cells import Cell, CellGrid, most_cells
from submerge.history.periods import Periods
from submerge.history.recorded import Recorded
from submerge.history.settings import MOST_CHANNELS, FitSettings
from submerge.history.time_spans import TimeSpan, check_used
from submerge.judge.prepare import REASONS, Block, prepare
from submerge.pca.budget import MOST_AT_ONCE, MOST_WAITING, gapped_bytes
from submerge.pca.expected import Guesses
from submerge.pca.merging import merge_whole
from submerge.pca.sapca import SAPCA
from submerge.pca.whole_scatter import WholeScatter
from submerge.schema import Channel, Schema

EXCLUDED, LABELLED = "excluded", "labelled as faults"
"""Why rows of some spans are not learnt, beside `judge.prepare.REASONS`."""

LONGEST_S = 1e12
"""Longest cell: the cells before and after 1970 are never one."""

LOOK = 256
"""Rows with times that the first grid is laid out by."""


@dataclass(frozen=True, slots=True, eq=False)
class CellSummary:
    """The rows of a cell.

    Attributes
    ----------
    scatter : WholeScatter
    first, last : float
        Times of its first and last row; NaN without times.
    """

    scatter: WholeScatter
    first: float
    last: float

    def with_next(self, other: CellSummary) -> CellSummary:
        """Return both as one; `other` is later."""
        both = merge_whole(self.scatter, other.scatter)
        return CellSummary(both, min(self.first, other.first), max(self.last, other.last))


@dataclass
class FirstPass:
    """Takes the rows of a history, in order.

    Parameters
    ----------
    names : sequence of str
        Of the channels.
    settings : FitSettings

    Attributes
    ----------
    cells : dict of Cell to CellSummary
    period_s : float
        Time that a row stands for; 0 without times.
    seen : TimeSpan
        From the first row to the last; open without times.
    rows : int
    left_out : Counter of str
        Rows that cannot be learnt, by reason.
    fault_rows : tuple of int
        Rows of each known fault of the settings, once all rows are in.
    """

    names: Sequence[str]
    settings: FitSettings
    cells: dict[Cell, CellSummary] = field(default_factory=dict)
    period_s: float = 0.0
    seen: TimeSpan = field(default_factory=TimeSpan)
    rows: int = 0
    gaps: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    fault_rows: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        width = len(self.names)
        if width > MOST_CHANNELS:
            raise UsageError(
                f"a history has at most {MOST_CHANNELS} channels, got {width}:"
                " name those to learn with --columns"
            )
        self._schema = Schema(tuple(Channel(name) for name in self.names))
        self._memory = max(
            gapped_bytes(width, MOST_WAITING, MOST_AT_ONCE), gapped_bytes(width, MOST_AT_ONCE)
        )
        self._most = most_cells(width)
        self._periods = Periods()
        self._waiting: list[Recorded] = []
        self._batches: Batches | None = None
        self._mean = np.zeros(width)
        self._open: tuple[Cell, SAPCA, float, float] | None = None

    @property
    def grid(self) -> CellGrid | None:
        """How cells are laid out; None before the first rows."""
        return None if self._batches is None else self._batches.grid

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines that rows came of, in that order."""
        return () if self._batches is None else self._batches.machines

    def add(self, recorded: Recorded) -> None:
        """Take in rows that follow those before."""
        if recorded.times is not None and len(recorded.times):
            first, last = float(recorded.times[0]), float(recorded.times[-1])
            if np.isfinite(self.seen.first):
                first, last = min(first, self.seen.first), max(last, self.seen.last)
            self.seen = TimeSpan(first, last)
            self._periods.add(recorded.machine, recorded.times)
        if self._batches is not None:
            self._learn(recorded)
            return
        self._waiting.append(recorded)
        if recorded.times is None or sum(len(each.rows) for each in self._waiting) >= LOOK:
            self._lay_out()

    def end(self) -> None:
        """Take in what waits."""
        if self._batches is None and self._waiting:
            self._lay_out()
        if self._batches is not None:
            for batch in self._batches.end():
                self._learn_batch(batch)
            self._count_left_out(self._batches.left_out.counts)
        self._close()
        self.period_s = self._periods.typical

    def _count_left_out(self, counts: Sequence[int]) -> None:
        """Count the rows of spans that are not learnt, and refuse useless ones."""
        self.rows += sum(counts)
        excluded = counts[: len(self.settings.exclude)]
        self.fault_rows = tuple(counts[len(excluded) :])
        check_used(excluded, self.settings.exclude, self.rows, self.seen)
        for why, count in ((EXCLUDED, sum(excluded)), (LABELLED, sum(self.fault_rows))):
            if count:
                self.left_out[why] += count

    def _lay_out(self) -> None:
        self._batches = Batches(CellGrid.of(self._periods.typical or 1.0), self.settings.without)
        for each in self._waiting:
            self._learn(each)
        self._waiting.clear()

    def _learn(self, recorded: Recorded) -> None:
        if self._batches is not None:
            for batch in self._batches.add(recorded):
                self._learn_batch(batch)

    def _learn_batch(self, batch: Batch) -> None:
        cell, rows, times = batch
        if self._open is not None and self._open[0] != cell:
            self._close()
            while len(self.cells) > self._most:
                larger = self._doubled(cell)
                if larger is None:
                    break
                cell = larger
        span = (np.nan, np.nan) if times is None else (float(times[0]), float(times[-1]))
        block = prepare(rows, self._schema, fill=self._filled, when=self.settings.when)
        self.rows += len(rows)
        self.left_out.update(REASONS[why] for why in block.why.tolist() if why)
        if not len(block):
            return
        gaps = 0 if block.gaps is None else int(np.count_nonzero(block.gaps))
        self.gaps += gaps
        first = span[0]
        if self._open is None:
            engine = SAPCA(1, oversample=0, memory=self._memory, schema=self._schema)
        else:
            _, engine, first, _ = self._open
        engine.partial_fit(block.features, gaps=_guesses(block))
        self._open = cell, engine, first, span[1]

    def _filled(self, rows: Array) -> Array:
        """Return rows with a guess in each gap: what counts is that the gap is marked."""
        known = np.isfinite(rows)
        some = known.any(axis=0)
        means = np.where(known, rows, 0.0).sum(axis=0)[some] / known.sum(axis=0)[some]
        self._mean[some] = means
        return np.where(known, rows, self._mean)

    def _close(self) -> None:
        """Put the summary of the open cell beside the others."""
        if self._open is None:
            return
        cell, engine, first, last = self._open
        self._open = None
        scatter = engine.whole_scatter
        if scatter is None:
            raise UsageError("a history is learnt by its whole scatter")
        self._keep(cell, CellSummary(scatter, first, last))

    def _keep(self, cell: Cell, summary: CellSummary) -> None:
        before = self.cells.get(cell)
        self.cells[cell] = summary if before is None else before.with_next(summary)

    def _doubled(self, cell: Cell) -> Cell | None:
        """Let cells be longer, or runs share them; return the larger one that a cell is in.

        None if that would leave as many: each is of a machine of its own.
        """
        if self._batches is None or self._batches.grid.unit > LONGEST_S:
            return None
        runs = Counter((each.machine, each.run) for each in self.cells)
        longer = max(runs.values()) > 1
        if not longer and max(run for _, run in runs) == 0:
            return None
        cells, self.cells = sorted(self.cells.items()), {}
        for each, summary in cells:
            self._keep(each.parent if longer else each.with_next_run, summary)
        self._batches.double(longer=longer)
        return cell.parent if longer else cell.with_next_run


def _guesses(block: Block) -> Guesses | None:
    return None if block.gaps is None else Guesses(block.gaps)
