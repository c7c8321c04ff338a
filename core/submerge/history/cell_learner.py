"""CellLearner: batches of rows become summaries of cells, each from its own rows alone.

Rows are prepared as a client does; gaps are learnt as what they hide on average (`pca.expected`).
Nothing of one cell is known in another: cells may be learnt apart, in any order, on any machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from submerge._linalg import Array
from submerge.errors import UsageError
from submerge.history.batches import Batch
from submerge.history.cells import Cell
from submerge.history.settings import FitSettings
from submerge.judge.prepare import REASONS, Block, prepare
from submerge.pca.budget import MOST_AT_ONCE, MOST_WAITING, gapped_bytes
from submerge.pca.expected import Guesses
from submerge.pca.merging import merge_whole
from submerge.pca.sapca import SAPCA
from submerge.pca.whole_scatter import WholeScatter
from submerge.schema import Channel, Schema


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
class CellLearner:
    """Learns rows cell by cell.

    Parameters
    ----------
    names : sequence of str
        Of the channels.
    settings : FitSettings
    keep : callable
        Takes each cell with its summary, when its rows end. Rows of one cell that do not follow
        one another give several.

    Attributes
    ----------
    rows, gaps : int
        Rows that came, and gaps in those that were learnt.
    left_out : Counter of str
        Rows that cannot be learnt, by reason.
    """

    names: Sequence[str]
    settings: FitSettings
    keep: Callable[[Cell, CellSummary], None]
    rows: int = 0
    gaps: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        width = len(self.names)
        self._schema = Schema(tuple(Channel(name) for name in self.names))
        self._memory = max(
            gapped_bytes(width, MOST_WAITING, MOST_AT_ONCE), gapped_bytes(width, MOST_AT_ONCE)
        )
        self._mean = np.zeros(width)
        self._open: tuple[Cell, SAPCA, float, float] | None = None

    @property
    def cell(self) -> Cell | None:
        """The cell that is open."""
        return None if self._open is None else self._open[0]

    def learn(self, batch: Batch) -> None:
        """Learn rows; those of another cell end the open one."""
        cell, rows, times = batch
        if self.cell != cell:
            self.close()
        span = (np.nan, np.nan) if times is None else (float(times[0]), float(times[-1]))
        block = prepare(rows, self._schema, fill=self._filled, when=self.settings.when)
        self.rows += len(rows)
        self.left_out.update(REASONS[why] for why in block.why.tolist() if why)
        if not len(block):
            return
        self.gaps += 0 if block.gaps is None else int(np.count_nonzero(block.gaps))
        first = span[0]
        if self._open is None:
            engine = SAPCA(1, oversample=0, memory=self._memory, schema=self._schema)
        else:
            _, engine, first, _ = self._open
        engine.partial_fit(block.features, gaps=_guesses(block))
        self._open = cell, engine, first, span[1]

    def close(self) -> None:
        """End the open cell."""
        self._mean = np.zeros(len(self.names))
        if self._open is None:
            return
        cell, engine, first, last = self._open
        self._open = None
        scatter = engine.whole_scatter
        if scatter is None:
            raise UsageError("a history is learnt by its whole scatter")
        self.keep(cell, CellSummary(mirrored(scatter), first, last))

    def _filled(self, rows: Array) -> Array:
        """Return rows with a guess in each gap: what counts is that the gap is marked."""
        known = np.isfinite(rows)
        some = known.any(axis=0)
        means = np.where(known, rows, 0.0).sum(axis=0)[some] / known.sum(axis=0)[some]
        self._mean[some] = means
        return np.where(known, rows, self._mean)


def mirrored(whole: WholeScatter) -> WholeScatter:
    """Return a scatter whose lower triangle is its upper one: as its bytes are read back."""
    upper = np.triu(whole.scatter)
    held = upper + np.triu(upper, 1).T
    held.flags.writeable = False
    return replace(whole, held=held)


def _guesses(block: Block) -> Guesses | None:
    return None if block.gaps is None else Guesses(block.gaps)
