"""FirstPass: rows of a history become summaries of cells, in the channels' own units.

Each has the whole scatter of its rows: it scales exactly once center and scale are known, merges
exactly, and answers for any rank. Where no times settled how cells are laid out (`history.layout`),
cells grow as there are too many, and what they hold depends on the order by rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from submerge.errors import UsageError
from submerge.history.folds import CellSummary, known_of, mirrored
from submerge.history.layout import (
    Cell,
    CellBlock,
    CellBlocks,
    CellGrid,
    LaidOut,
    most_cells,
)
from submerge.history.recording import Recorded, TimeSpan, check_used
from submerge.history.settings import MOST_CHANNELS, FitSettings
from submerge.judge.prepare import REASONS, prepare
from submerge.pca.expectation import Estimate, GappedRows, RareRows
from submerge.schema import Channel, Schema

EXCLUDED, LABELLED = "excluded", "labelled as faults"
"""Why rows of some spans are not learnt, beside `judge.prepare.REASONS`."""


class LearntCells(NamedTuple):
    cells: Mapping[Cell, CellSummary]  # in the order of rows
    rows: int
    gaps: int  # in rows that were learnt
    left_out: Counter[str]  # rows, by reason
    spans: Sequence[int]  # rows in each span of time that is not learnt


@dataclass
class FirstPass:
    names: Sequence[str]
    settings: FitSettings
    laid: LaidOut = field(default_factory=LaidOut.as_they_come)
    known: Mapping[int, Estimate] = field(default_factory=dict)  # fills rare gaps of each
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
        self._schema = Schema(tuple(map(Channel, self.names)))
        self._open: tuple[Cell, CellSummary] | None = None

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
        self._close_cell()
        return LearntCells(self.cells, self.rows, self.gaps, self.left_out, self._spans)

    def end(self) -> None:
        """Take in what waits, once all rows are in; refuse spans to leave out that have none."""
        self.close()
        self._count_left_out(self._spans)

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

    def _learn(self, blocks: Iterable[CellBlock]) -> None:
        for block in blocks:
            cell = block.cell
            if self._open is not None and self._open[0] != cell:
                self._close_cell()
                while len(self.cells) > self._most and (larger := self._doubled(cell)):
                    cell = larger
            self._learn_block(block._replace(cell=cell))

    def _learn_block(self, block: CellBlock) -> None:
        cell, rows, times = block
        prepared = prepare(rows, self._schema, fill=np.nan_to_num, when=self.settings.when)
        self.rows += len(rows)
        self.left_out.update(REASONS[why] for why in prepared.why.tolist() if why)
        if not len(prepared):
            return
        mask = np.zeros(prepared.rows.shape, dtype=bool) if prepared.gaps is None else prepared.gaps
        self.gaps += int(np.count_nonzero(mask))
        first, last = (np.nan, np.nan) if times is None else (float(times[0]), float(times[-1]))
        if self._open is None:
            none = GappedRows({}, RareRows.none(len(self.names)), self._schema.fingerprint)
            self._open = cell, CellSummary(none, first, last)
        before = self._open[1]
        group = before.group.with_rows(prepared.rows, mask, np.ones(len(prepared)))
        if cell.machine in self.known:
            group = group.without_rare(self.known[cell.machine])
        self._open = cell, replace(before, group=group, last=last).bounded

    def _close_cell(self) -> None:
        """Keep the cell whose rows have ended; rows that do not follow give several of it."""
        if self._open is None:
            return
        (cell, summary), self._open = self._open, None
        sums = {key: mirrored(part) for key, part in summary.group.sums.items()}
        self._keep(cell, replace(summary, group=summary.group._replace(sums=sums)))

    def _keep(self, cell: Cell, summary: CellSummary) -> None:
        before = self.cells.get(cell)
        self.cells[cell] = summary if before is None else before.with_next(summary)

    def _doubled(self, cell: Cell) -> Cell | None:
        """Let cells be longer, or runs share them; return the larger one that a cell is in."""
        longer = self.grid.fewer(self.cells)
        if longer is None:
            return None
        cells, self.cells = sorted(self.cells.items()), {}
        for each, summary in cells:
            self._keep(each.larger(longer=longer), summary)
        self._blocks.double(longer=longer)
        return cell.larger(longer=longer)
