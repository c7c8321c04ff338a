"""HeldOut: what judges the rows of a history: for each fold, what all others have learnt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from submerge.history.cell_learner import mirrored
from submerge.history.cells import Cell, CellGrid
from submerge.history.layout import LaidOut
from submerge.history.models import model_of, summaries_of
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.messages import Model
from submerge.schema import Schema

if TYPE_CHECKING:
    from submerge.history.folds import Folds
    from submerge.history.settings import FitSettings


@dataclass(frozen=True)
class HeldOut:
    """Judges rows by models that had not learnt them.

    fold_of : Rows of other cells are left out.
    others : For each fold, all that is learnt but it.
    block_s : Length of the blocks whose maxima are counted.
    """

    schema: Schema
    rank: int
    fold_of: Mapping[Cell, int]
    others: tuple[WholeScatter, ...]
    laid: LaidOut
    block_s: float = 0.0
    _models: dict[int, Model] = field(default_factory=dict)

    @classmethod
    def of(cls, folds: Folds, laid: LaidOut) -> HeldOut:
        """Return what judges the rows of some folds."""
        others = tuple(mirrored(folds.without(fold)) for fold in range(folds.count))
        return cls(folds.schema, folds.rank, folds.fold_of, others, laid)

    def of_blocks(self, block_s: float) -> HeldOut:
        """Return the same with blocks of another length."""
        return replace(self, block_s=block_s, _models={})

    @property
    def grid(self) -> CellGrid:
        """How cells are laid out."""
        return self.laid.grid

    @property
    def row_s(self) -> float:
        """Time that a row stands for: without times, a second."""
        return self.laid.period_s or 1.0

    def model(self, fold: int, settings: FitSettings) -> Model:
        """Return the model of all folds but one; it is made once."""
        if fold not in self._models:
            self._models[fold] = model_of(
                self.others[fold],
                self,
                summaries_of(self.rank, settings),
                version=fold + 1,
                block_s=self.block_s,
            )
        return self._models[fold]
