"""FirstPass: rows of a history become summaries of cells, in the channels' own units.

Each has the whole scatter of its rows: it scales exactly once center and scale are known, merges
exactly, and answers for any rank. Where no times settled how cells are laid out (`history.layout`),
cells grow as there are too many, and what they hold depends on the order by rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from submerge.errors import UsageError
from submerge.history.cell_learner import CellLearner, CellSummary
from submerge.history.folds import known_of
from submerge.history.layout import (
    LONGEST_S,
    Cell,
    CellBlock,
    CellBlocks,
    CellGrid,
    LaidOut,
    most_cells,
)
from submerge.history.recording import Recorded, TimeSpan, check_used
from submerge.history.settings import MOST_CHANNELS, FitSettings
from submerge.pca.expectation import Estimate

EXCLUDED, LABELLED = "excluded", "labelled as faults"
"""Why rows of some spans are not learnt, beside `judge.prepare.REASONS`."""


class LearntCells(NamedTuple):
    cells: Mapping[Cell, CellSummary]  # in the order of rows
    # as in `CellLearner`
    rows: int
    gaps: int
    left_out: Counter[str]
    spans: Sequence[int]  # rows in each span of time that is not learnt


@dataclass
class FirstPass:
    names: Sequence[str]
    settings: FitSettings
    laid: LaidOut = field(default_factory=LaidOut.as_they_come)
    known: Mapping[int, Estimate] = field(default_factory=dict)  # fills rare gaps of each at once
    cells: dict[Cell, CellSummary] = field(default_factory=dict)
    rows: int = 0
    gaps: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    fault_rows: tuple[int, ...] = ()  # of each known fault, once all rows are in

    def __post_init__(self) -> None:
        width = len(self.names)
        if width > MOST_CHANNELS:
            raise UsageError(
                f"a history has at most {MOST_CHANNELS} channels, got {width}:"
                " name those to learn with --columns"
            )
        self._most = most_cells(width)
        self._blocks = CellBlocks(self.laid, self.settings.without)
        self._spans = [0 for _ in self.settings.without]
        self._learner = CellLearner(self.names, self.settings, self._keep, self.known)

    @property
    def grid(self) -> CellGrid:
        return self._blocks.grid

    @property
    def period_s(self) -> float:
        """Time that a row stands for; 0 without times."""
        return self.laid.period_s

    @property
    def seen(self) -> TimeSpan:
        """From the first row to the last."""
        return self.laid.seen

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines that rows came of, in that order."""
        return self._blocks.machines

    def add(self, recorded: Recorded) -> None:
        self._learn(self._blocks.add(recorded))

    def take(self, part: LearntCells) -> None:
        """Take in what came of rows that follow those before."""
        for cell, summary in part.cells.items():
            self._keep(cell, summary)
        self.rows += part.rows
        self.gaps += part.gaps
        self.left_out.update(part.left_out)
        self._count_spans(part.spans)

    def close(self) -> LearntCells:
        """Take in what waits; return what came of these rows, which may be a part of all."""
        self._learn(self._blocks.end())
        self._count_spans(self._blocks.left_out.counts)
        self._learner.close()
        self._take_counts()
        return LearntCells(self.cells, self.rows, self.gaps, self.left_out, self._spans)

    def end(self) -> None:
        """Take in what waits, once all rows are in; refuse spans to leave out that have none."""
        self.close()
        self._count_left_out(self._spans)

    def fill_by(self, known: Mapping[int, Estimate]) -> None:
        """Fill rare gaps of the rows that come by what is known."""
        self.known = self._learner.known = known

    def known_once_more(self) -> dict[int, Estimate]:
        """Return what fills rare gaps, if rows have to come again for it; else nothing."""
        if self.known or not any(each.thinned for each in self.cells.values()):
            return {}
        # Cells cannot keep all rows with rare gaps. Those kept say what fills the gaps of all.
        machines = len({cell.machine for cell in self.cells})
        return known_of(self.cells, self.settings.center(machines))

    def _count_spans(self, counts: Sequence[int]) -> None:
        self._spans = [sum(both) for both in zip(self._spans, counts, strict=True)]

    def _count_left_out(self, counts: Sequence[int]) -> None:
        """Count the rows of spans that are not learnt, and refuse useless ones."""
        self.rows += sum(counts)
        excluded = counts[: len(self.settings.exclude)]
        self.fault_rows = tuple(counts[len(excluded) :])
        check_used(excluded, self.settings.exclude, self.rows, self.seen)
        for why, count in ((EXCLUDED, sum(excluded)), (LABELLED, sum(self.fault_rows))):
            if count:
                self.left_out[why] += count

    def _take_counts(self) -> None:
        """Take over what the learner has counted since it was last asked."""
        learner = self._learner
        self.rows += learner.rows
        self.gaps += learner.gaps
        self.left_out.update(learner.left_out)
        learner.rows, learner.gaps, learner.left_out = 0, 0, Counter()

    def _learn(self, blocks: Iterable[CellBlock]) -> None:
        for block in blocks:
            self._learn_block(block)
            self._take_counts()

    def _learn_block(self, block: CellBlock) -> None:
        cell = block.cell
        if self._learner.cell not in (None, cell):
            self._learner.close()
            while len(self.cells) > self._most:
                larger = self._doubled(cell)
                if larger is None:
                    break
                cell = larger
        self._learner.learn(block._replace(cell=cell))

    def _keep(self, cell: Cell, summary: CellSummary) -> None:
        before = self.cells.get(cell)
        self.cells[cell] = summary if before is None else before.with_next(summary)

    def _doubled(self, cell: Cell) -> Cell | None:
        """Let cells be longer, or runs share them; return the larger one that a cell is in."""
        if self.grid.unit > LONGEST_S:
            return None
        runs = Counter((each.machine, each.run) for each in self.cells)
        longer = max(runs.values()) > 1
        if not longer and max(run for _, run in runs) == 0:
            # That would leave as many: each is of a machine of its own.
            return None
        cells, self.cells = sorted(self.cells.items()), {}
        for each, summary in cells:
            self._keep(each.parent if longer else each.with_next_run, summary)
        self._blocks.double(longer=longer)
        return cell.parent if longer else cell.with_next_run
