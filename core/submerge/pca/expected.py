"""complete(): what rows with gaps add to a scatter, on average over what they may hide.

A scatter of rows whose gaps were filled is too small: a filled value has less variance than a
measured one. And a value that an early model filled in stays in the scatter for ever. So rows with
gaps wait in a block, whose gaps are filled together, from the scatter that holds past and block
(expectation maximisation): the conditional mean in the rows, and the conditional covariance, which
is added to their products.

1. Each block starts from the channels' own means, and not from the past's regression: where
   readings reach a range that the past has not seen, that is wrong by any factor.
2. Where few rows are known, channels are taken as nearly independent: `dim` rows without
   correlations are added. Where rows lack a channel altogether, these are the fleet's model's.
3. The result is positive semi-definite, and its diagonal is the channels' energies.
4. The certificates of `Subspace` are about complete rows. With gaps, "exact" becomes "expected".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.errors import ShapeError
from submerge.pca.block import Blend
from submerge.pca.budget import COVARIANCES
from submerge.pca.subspace import Subspace

Mask = npt.NDArray[np.bool_]

ROUNDS = 10
"""Rounds of expectation and maximisation a block: with long outages, ten come within 1 % of 30."""

FEW_ROUNDS = 3
"""Rounds where a block that still waits for rows is looked at, beside a past of more weight."""

LEAST_NOISE = 1e-7
"""Added to each channel's variance, as a share of it: near-copies are no exact copies."""


class Guesses(NamedTuple):
    """Which values of rows were filled.

    mask : (n, dim), True where a value is a guess
    model : what it was guessed by, if it is known; it stands in for channels that never came
    """

    mask: Mask
    model: Subspace | None = None

    def of(self, rows: Storage) -> Guesses:
        """Return these gaps, if they are of rows of that shape."""
        if self.mask.shape != rows.shape:
            raise ShapeError("gaps", expected=f"{rows.shape}", got=self.mask.shape)
        return self


def covariance(model: Subspace) -> Array:
    """Return the covariance (dim, dim) of rows under a model: U diag(lambda) U' and a noise.

    The noise brings each channel to its exact variance where that is known, and is spread evenly
    otherwise.
    """
    rows = np.asarray(model.basis, dtype=np.float64) * np.sqrt(model.explained_variance)
    C = rows @ rows.T
    held = C.diagonal().copy()
    if model.channel_energies is None or not model.weight:
        rest = model.frobenius_bound / (model.weight or 1.0) / model.dim
        np.fill_diagonal(C, held + rest)
    else:
        np.fill_diagonal(C, np.maximum(held, model.channel_energies / model.weight))
    return np.asarray(C)


def complete(
    block: Storage,
    mask: Mask,
    blend: Blend,
    past: Array,
    prior: Array | None,
    rounds: int,
) -> Array:
    """Fill the gaps of a block in place; return the covariance to be added to its products.

    Parameters
    ----------
    block : (n, dim)
        Rows, measured from the running mean, with a guess in each gap. Guesses count only where
        neither block nor past has a value of the channel: there their mean is its mean.
    mask : (n, dim)
        True at gaps.
    blend : Blend
        Weights of past and block.
    past : (dim, dim)
        The past's scatter, not faded yet.
    prior : (dim, dim), optional
        The model's covariance.
    rounds : int
        Of expectation and maximisation.

    Returns
    -------
    (dim, dim)
        sum_i w_i V_i, for V_i the conditional covariance of row i: zero where it has no gap.

    Notes
    -----
    A round costs O(dim^3 + n dim^2 + sum m_i^3) for m_i gaps in row i. With K the inverse of the
    covariance, V = K_mm^-1, and the conditional mean is mean_m - V K_mo (x_o - mean_o).

    References
    ----------
    Dempster, Laird and Rubin, Maximum likelihood from incomplete data, 1977; Little and Rubin,
    Statistical Analysis with Missing Data, chapter 11.
    """
    rows = block.astype(np.float64)
    past, weight = blend.past * past, blend.weight + blend.mass
    added = _start(rows, mask, blend, past, prior)
    holed = np.flatnonzero(mask.any(axis=1))
    weights, shares = blend.ages.weights[holed], blend.ages.shares
    for _ in range(rounds):
        drift = shares @ rows
        moved = (rows - blend.pull * drift) * blend.ages.roots[:, None]
        C = _covariance(past + moved.T @ moved + added, weight, prior)
        mean = blend.follow * drift
        filled, added = _expected(rows[holed] - mean, mask[holed], weights, C)
        rows[holed] = filled + mean
    block[holed] = rows[holed]
    return added


def _start(rows: Array, mask: Mask, blend: Blend, past: Array, prior: Array | None) -> Array:
    """Fill by the means of the block; return what the missing values' variances add.

    Channels that no row of the block has follow from the others, by the prior or by the past.
    """
    weights = np.where(mask, 0.0, blend.ages.weights[:, None])
    seen = weights.sum(axis=0)
    some = np.maximum(seen, np.finfo(float).tiny)
    means = rows[0] + np.einsum("ij,ij->j", weights, rows - rows[0]) / some
    usual = np.zeros(len(seen)) if blend.weight else rows.mean(axis=0)
    means = np.where(seen > 0, means, usual)
    variances = np.einsum("ij,ij->j", weights, (rows - means) ** 2) / some
    rows[mask] = np.broadcast_to(means, rows.shape)[mask]
    added = np.diag(np.where(seen > 0, variances, 0.0) * (blend.mass - seen))
    if (seen > 0).all():
        return added
    # A channel that was constant until now says nothing of what is missing, however far it moves:
    # the block's own variance counts beside the past's, the less the more rows there are.
    unseen = np.broadcast_to(seen == 0, rows.shape)
    moved = (rows - means) * np.sqrt(weights)
    share = min(1.0, len(past) / blend.mass) / blend.mass
    C = _covariance(past, blend.weight, prior) + share * (moved.T @ moved)
    filled, more = _expected(rows - means, unseen, blend.ages.weights, C)
    rows += np.where(unseen, filled, 0.0)
    return added + more


def _covariance(total: Array, weight: float, prior: Array | None) -> Array:
    """Return the covariance that a scatter and `dim` rows of the prior have."""
    extra = len(total)
    if prior is None:
        prior = np.diag(total.diagonal() / (weight or 1.0))
    return np.asarray((total + extra * prior) / (weight + extra))


def _expected(rows: Array, mask: Mask, weights: Array, C: Array) -> tuple[Array, Array]:
    """Return rows (n, dim) about their mean with gaps filled, and sum_i w_i V_i."""
    dim = len(C)
    scale = np.sqrt(C.diagonal())
    unit = np.where(scale > 0, scale, 1.0)
    K = np.linalg.inv(C / np.outer(unit, unit) + LEAST_NOISE * np.eye(dim))
    rows = np.where(mask, 0.0, rows / unit)
    pulls, added, counts = rows @ K, np.zeros(dim * dim), mask.sum(axis=1)
    for count in np.unique(counts):
        alike = np.flatnonzero(counts == count)
        step = max(1, COVARIANCES // int(count) ** 2)
        for which in (alike[i : i + step] for i in range(0, len(alike), step)):
            gaps = np.nonzero(mask[which])[1].reshape(len(which), -1)
            V = np.linalg.inv(K[gaps[:, :, None], gaps[:, None, :]])
            pull = np.take_along_axis(pulls[which], gaps, axis=1)
            rows[which[:, None], gaps] = -np.einsum("nij,nj->ni", V, pull)
            places = gaps[:, :, None] * dim + gaps[:, None, :]
            V *= weights[which, None, None]
            added += np.bincount(places.ravel(), V.ravel(), minlength=dim * dim)
    total = added.reshape(dim, dim) * np.outer(scale, scale)
    return rows * scale, (total + total.T) / 2
