"""Folds: the cells of a history as a few spans of time, and a model of all but each.

Limits, rank and what is left out follow from rows that the model had not learnt: each span is
scored by the merge of the others. Only summaries are needed for that, so it costs no pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.errors import NothingLearnt
from submerge.history.cells import Cell
from submerge.history.first_pass import CellSummary
from submerge.history.settings import FitSettings
from submerge.pca.choice import LEAST_FOLDS, best_rank, held_out
from submerge.pca.factor import factors_of
from submerge.pca.merging import merge_whole
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.summaries import below
from submerge.schema import Channel, Schema
from submerge.stats.moments import Moments

MOST_FOLDS = 8
"""Spans of time that are scored by the others."""

APART = 12.0
"""Robust standard deviations by which a cell has to be less likely than others to be left out."""

LEAST_DROP = 2.0
"""And by how much, in nats a row, at least: where all cells are alike, small differences are many
deviations."""

MOST_LEFT_OUT = 0.1
"""Share of the cells that may be left out."""


class Deviant(NamedTuple):
    """A span of time that is left out.

    first, last : times of its first and last row; NaN without times
    rows : that could have been learnt
    drop : how much less likely they are than those of a typical cell, in nats a row
    """

    first: float
    last: float
    rows: int
    drop: float


@dataclass(frozen=True, slots=True, eq=False)
class Folds:
    """What the first pass has come to.

    Attributes
    ----------
    schema : Schema
        With center and scale.
    moments : Moments
        Of the channels in their units.
    cells : dict of Cell to CellSummary
        Those that are learnt, scaled.
    deviant : dict of Cell to Deviant
        Those that are left out.
    fold_of : dict of Cell to int
    rank : int
    """

    schema: Schema
    moments: Moments
    cells: Mapping[Cell, CellSummary]
    deviant: Mapping[Cell, Deviant]
    fold_of: Mapping[Cell, int]
    rank: int

    @property
    def count(self) -> int:
        """Number of folds."""
        return max(self.fold_of.values()) + 1

    @property
    def whole(self) -> WholeScatter:
        """All that is learnt."""
        return merge_whole(*(self.cells[cell].scatter for cell in sorted(self.cells)))

    def without(self, fold: int) -> WholeScatter:
        """Return all that is learnt but one fold; all, if there is only one."""
        others = [cell for cell in sorted(self.cells) if self.fold_of[cell] != fold]
        return merge_whole(*(self.cells[cell].scatter for cell in others or sorted(self.cells)))


def folds_of(
    cells: Mapping[Cell, CellSummary], names: Sequence[str], settings: FitSettings
) -> Folds:
    """Return the folds of a history.

    Raises
    ------
    NothingLearnt
        If no row could be learnt, or nothing varies.
    """
    if not cells:
        raise NothingLearnt("expected rows that can be learnt, got none")
    deviant: dict[Cell, Deviant] = {}
    moments, schema, scaled = _scaled(cells, names)
    if settings.leaves_out:
        deviant = _deviant(scaled, settings)
    if deviant:
        # What is left out must not settle the scale either.
        kept = {cell: summary for cell, summary in cells.items() if cell not in deviant}
        moments, schema, scaled = _scaled(kept, names)
    if not moments.varying:
        raise NothingLearnt("expected channels that vary, got only constant ones")
    fold_of = _spread(scaled)
    rank = settings.rank or _best_rank(scaled, fold_of, settings)
    return Folds(schema, moments, scaled, deviant, fold_of, below(rank, schema.dim))


def _scaled(
    cells: Mapping[Cell, CellSummary], names: Sequence[str]
) -> tuple[Moments, Schema, dict[Cell, CellSummary]]:
    """Return moments, the schema that follows from them, and the cells under it."""
    whole = merge_whole(*(cells[cell].scatter for cell in sorted(cells)))
    energies = (
        whole.scatter.diagonal() if whole.channel_energies is None else whole.channel_energies
    )
    moments = Moments(round(whole.weight), whole.mean, np.array(energies))
    schema = Schema(tuple(Channel(name) for name in names), scaling=moments.scaling)
    offset, scale = np.array(moments.scaling.offset), np.array(moments.scaling.scale)
    scaled = {}
    for cell, summary in cells.items():
        scatter = summary.scatter.scaled(offset, scale)
        scatter = WholeScatter(schema.fingerprint, *_rest(scatter))
        scaled[cell] = CellSummary(scatter, summary.first, summary.last)
    return moments, schema, scaled


def _rest(scatter: WholeScatter) -> tuple[Array, Array, float, float, float, Array | None]:
    s = scatter
    return np.asarray(s.held), s.mean, s.weight, s.energy, s.spectral_bound, s.channel_energies


def _spread(cells: Mapping[Cell, CellSummary]) -> dict[Cell, int]:
    """Return the fold of each cell: neighbours together, and folds of about as many rows."""
    ordered = sorted(cells)
    weights = np.array([cells[cell].scatter.weight for cell in ordered])
    middle = (np.cumsum(weights) - weights / 2) / weights.sum()
    count = min(MOST_FOLDS, len(ordered))
    folds = np.minimum((middle * count).astype(int), count - 1)
    # Without those that no cell has.
    _, folds = np.unique(folds, return_inverse=True)
    return dict(zip(ordered, folds.tolist(), strict=True))


def _best_rank(
    cells: Mapping[Cell, CellSummary], fold_of: Mapping[Cell, int], settings: FitSettings
) -> int:
    """Return the rank by held-out likelihood."""
    count = max(fold_of.values()) + 1
    folds = [
        merge_whole(*(cells[cell].scatter for cell in sorted(cells) if fold_of[cell] == fold))
        for fold in range(count)
    ]
    if count < LEAST_FOLDS:
        folds = [cells[cell].scatter for cell in sorted(cells)]
    found = best_rank(folds, most=settings.rank_max, spare=settings.oversample)
    return found or min(settings.rank_max, max(1, folds[0].dim // 2))


def _deviant(cells: Mapping[Cell, CellSummary], settings: FitSettings) -> dict[Cell, Deviant]:
    """Return the cells whose rows are much less likely by the others than those of other cells."""
    ordered = sorted(cells)
    most = int(MOST_LEFT_OUT * len(ordered))
    if not most:
        return {}
    likely = np.array([_likelihood(cells, cell, settings) for cell in ordered])
    typical = float(np.median(likely))
    spread = 1.4826 * float(np.median(np.abs(likely - typical)))
    drop = typical - likely
    far = np.flatnonzero(drop > max(APART * spread, LEAST_DROP))
    far = far[np.argsort(-drop[far], kind="stable")][:most]
    left_out = {ordered[i]: cells[ordered[i]] for i in sorted(far.tolist())}
    return {
        cell: Deviant(each.first, each.last, round(each.scatter.weight), drop[ordered.index(cell)])
        for cell, each in left_out.items()
    }


def _likelihood(cells: Mapping[Cell, CellSummary], cell: Cell, settings: FitSettings) -> float:
    """Return the mean log density of a cell's rows by the model of all others."""
    others = merge_whole(*(cells[each].scatter for each in sorted(cells) if each != cell))
    directions = others.directions(settings.rank or settings.rank_max)
    factors = factors_of(directions, directions)
    held = cells[cell].scatter
    return -np.inf if factors is None else held_out(directions, factors, held)
