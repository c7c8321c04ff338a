"""CellLearner: blocks of rows become summaries of cells, each from its own rows, in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from submerge.history.layout import Cell, CellBlock
from submerge.history.settings import FitSettings
from submerge.judge.prepare import REASONS, prepare
from submerge.pca.expectation import Estimate, GappedRows, RareRows, complete_rows
from submerge.pca.whole_scatter import WholeScatter
from submerge.schema import Channel, Schema

MOST_RARE = 1 << 15
"""Numbers in the rows with rare gaps that a cell keeps: of more, every second one counts twice."""


@dataclass(frozen=True, slots=True, eq=False)
class CellSummary:
    """Sums of a cell's rows by what they lack, and those with rare gaps; NaN without times."""

    group: GappedRows
    first: float
    last: float
    thinned: bool = False  # some of the rows with rare gaps stand for others

    @property
    def weight(self) -> float:
        return sum(part.weight for part in self.group.sums.values()) + float(
            self.group.rare.weights.sum()
        )

    @property
    def bounded(self) -> CellSummary:
        """The same with at most `MOST_RARE` numbers in rows with rare gaps, and few sums."""
        rare, thinned = self.group.rare, self.thinned
        while rare.values.size > MOST_RARE:
            some = np.arange(len(rare)) % 2 == 0
            weights = rare.weights * (rare.weights.sum() / rare.weights[some].sum())
            rare, thinned = RareRows(rare.values[some], rare.mask[some], weights[some]), True
        return replace(self, group=self.group._replace(rare=rare).bounded, thinned=thinned)

    @property
    def scatter(self) -> WholeScatter:
        """The scatter of rows without gaps: all of them, once gaps are filled (`folds`)."""
        return self.group.sums[complete_rows(self.group.rare.values.shape[1])]

    @property
    def is_whole(self) -> bool:
        """Whether no row has a gap, or all gaps are filled."""
        (dim,) = self.group.rare.values.shape[1:]
        return not len(self.group.rare) and self.group.sums.keys() == {complete_rows(dim)}

    def filled(self, known: Estimate) -> CellSummary:
        """Return it with gaps filled by what is known."""
        return self.of_whole(self.group.filled(known))

    def of_whole(self, whole: WholeScatter) -> CellSummary:
        """Return the same rows with that scatter."""
        group = GappedRows(
            {complete_rows(whole.dim): whole}, RareRows.none(whole.dim), whole.schema
        )
        return CellSummary(group, self.first, self.last)

    def with_next(self, other: CellSummary) -> CellSummary:
        """Return both as one cell; `other` is later."""
        both = self.group.and_rows(other.group)
        first, last = min(self.first, other.first), max(self.last, other.last)
        return CellSummary(both, first, last, self.thinned or other.thinned).bounded


@dataclass
class CellLearner:
    names: Sequence[str]
    settings: FitSettings
    # Takes each cell with its summary when its rows end; rows that do not follow give several.
    keep: Callable[[Cell, CellSummary], None]
    # What fills rare gaps of each machine's rows at once; without it, such rows are kept.
    known: Mapping[int, Estimate] = field(default_factory=dict)
    rows: int = 0
    gaps: int = 0  # in rows that were learnt
    left_out: Counter[str] = field(default_factory=Counter)  # rows, by reason

    def __post_init__(self) -> None:
        self._schema = Schema(tuple(Channel(name) for name in self.names))
        self._open: tuple[Cell, CellSummary] | None = None

    @property
    def cell(self) -> Cell | None:
        return None if self._open is None else self._open[0]

    def learn(self, block: CellBlock) -> None:
        """Learn rows; those of another cell end the open one."""
        cell, rows, times = block
        if self.cell != cell:
            self.close()
        first, last = (np.nan, np.nan) if times is None else (float(times[0]), float(times[-1]))
        prepared = prepare(rows, self._schema, fill=np.nan_to_num, when=self.settings.when)
        self.rows += len(rows)
        self.left_out.update(REASONS[why] for why in prepared.why.tolist() if why)
        if not len(prepared):
            return
        mask = np.zeros(prepared.rows.shape, dtype=bool) if prepared.gaps is None else prepared.gaps
        self.gaps += int(np.count_nonzero(mask))
        if self._open is None:
            none = GappedRows({}, RareRows.none(len(self.names)), self._schema.fingerprint)
            self._open = cell, CellSummary(none, first, last)
        before = self._open[1]
        group = before.group.with_rows(prepared.rows, mask, np.ones(len(prepared)))
        if cell.machine in self.known:
            group = group.without_rare(self.known[cell.machine])
        self._open = cell, replace(before, group=group, last=last).bounded

    def close(self) -> None:
        if self._open is None:
            return
        (cell, summary), self._open = self._open, None
        sums = {key: mirrored(part) for key, part in summary.group.sums.items()}
        self.keep(cell, replace(summary, group=summary.group._replace(sums=sums)))


def mirrored(whole: WholeScatter) -> WholeScatter:
    """Return a scatter whose lower triangle is its upper one: as its bytes are read back."""
    upper = np.triu(whole.scatter)
    held = upper + np.triu(upper, 1).T
    held.flags.writeable = False
    return replace(whole, held=held)
