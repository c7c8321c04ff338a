"""best_rank(): the rank by held-out likelihood, from summaries of different rows.

The factor-analysis model (`factor`) that follows from all summaries but one is held against that
one (Bishop, Pattern Recognition and Machine Learning, 2006, sections 1.3 and 12.2.4), by

    -1/2 (dim log 2 pi + log det Sigma + tr(Sigma^-1 S) / n),    Sigma = L L' + Psi,

S the scatter of the held-out rows about the mean of the others, and n their weight. No row is
needed: models are merges of the others, and one of rank k answers for all ranks below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from submerge._linalg import Array
from submerge.pca.factor import Factors, Precision, factors_of
from submerge.pca.merging import merge, merge_whole
from submerge.pca.scatter_sum import Center
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter

LEAST_FOLDS = 4  # fewest summaries that are held against each other
MOST_FOLDS = 32  # of more summaries neighbours are merged: each costs 3 merges and a decomposition
MOST_GAIN = 3.0  # most that a fold may gain by a rank, in units of the folds' median

Summarised = Subspace | WholeScatter


def best_rank(
    folds: Sequence[Summarised], *, most: int, center: Center = "fleet", spare: int = 5
) -> int | None:
    """Return the rank whose models describe best what they were not learnt from, by 3 n merges.

    spare : Directions that merges keep beyond `most`.
    center : With "own" each fold is about its own mean.
    """
    folds = [fold for fold in folds if fold.weight > 0 and fold.channel_energies is not None]
    kept = most + spare
    if len(folds) > MOST_FOLDS:
        cuts = [len(folds) * i // MOST_FOLDS for i in range(MOST_FOLDS + 1)]
        folds = [_merged(folds[a:b], kept, center) for a, b in pairwise(cuts)]
    if len(folds) < LEAST_FOLDS:
        return None
    curves, highest = np.zeros((len(folds), most)), min(most, folds[0].dim - 1)
    for i, model in enumerate(_models_without(folds, kept, center)):
        highest = min(highest, model.rank)
        for rank in range(1, highest + 1):
            shown = model.truncated(rank)
            factors = factors_of(shown, shown)
            if factors is not None:
                curves[i, rank - 1] = held_out(shown, factors, folds[i], center=center)
    return int(_summed(curves[:, :highest]).argmax()) + 1 if highest > 0 else None


def _summed(curves: Array) -> Array:
    """Return what folds (folds, ranks) gain by each rank over the first, added up."""
    # A fold's likelihood has no lower bound, and one that nothing explains would choose alone: so
    # none counts for more than `MOST_GAIN` times what a typical one gains or loses.
    gains = curves - curves[:, :1]
    most = MOST_GAIN * np.median(np.abs(gains), axis=0)
    return np.asarray(np.clip(gains, -most, most).sum(axis=0))


def held_out(
    model: Subspace, factors: Factors, held: Summarised, *, center: Center = "fleet"
) -> float:
    """Return the mean log density of a summary's rows; energy it lacks counts as uncorrelated."""
    precision = Precision.of(model, factors)
    inner = np.eye(precision.loadings.shape[1]) + precision.loadings.T @ precision.loadings
    determinant = 2 * float(np.log(precision.roots).sum()) + float(np.linalg.slogdet(inner)[1])
    # S = F F' + diag(rest): the columns of F count as rows.
    roots, rest = _roots(held), np.zeros(held.dim)
    if held.channel_energies is not None:
        rest = np.maximum(held.channel_energies - np.square(roots).sum(axis=1), 0.0)
    if center == "fleet":
        off = math.sqrt(held.weight) * (held.mean - model.mean)
        roots = np.column_stack((roots, off))
    unexplained = 1 - np.einsum("jk,kj->j", precision.loadings, precision.back)
    squares = float(precision.measure(roots.T)[1].sum())
    squares += float(rest @ (unexplained / factors.noise))
    constant = held.dim * math.log(2 * math.pi)
    return -(constant + determinant + squares / held.weight) / 2


def _models_without(folds: Sequence[Summarised], kept: int, center: Center) -> list[Subspace]:
    """Return the merge of all folds but each in turn."""
    before, after = [folds[0]], [folds[-1]]
    for first, last in zip(folds[1:-1], folds[-2:0:-1], strict=True):
        before.append(_merged((before[-1], first), kept, center))
        after.append(_merged((last, after[-1]), kept, center))
    after.reverse()
    middle = [
        _merged((first, last), kept, center)
        for first, last in zip(before[:-1], after[1:], strict=True)
    ]
    return [_directions(each, kept) for each in (after[0], *middle, before[-1])]


def _merged(parts: Sequence[Summarised], kept: int, center: Center) -> Summarised:
    if any(isinstance(part, WholeScatter) for part in parts):
        return merge_whole(*parts, center=center)
    return merge(*(part for each in parts for part in each.parts), rank=kept, center=center)


def _directions(piece: Summarised, kept: int) -> Subspace:
    return piece.directions(kept) if isinstance(piece, WholeScatter) else piece


def _roots(piece: Summarised) -> Array:
    """Return F (dim, m) with F F' the scatter that a summary holds."""
    if isinstance(piece, WholeScatter):
        return np.asarray(piece.factor.T)
    return np.asarray(piece.basis * piece.sigma, dtype=np.float64)
