"""Reconstruction: each channel as predicted from all the others.

The model of normal rows (`factor`, or one noise for all) has an inverse covariance P. The error of
predicting channel j from all the others is (P x)_j / P_jj: a *virtual sensor*. Its square, times
P_jj, is by how much x'P x falls if channel j may be replaced: its *reconstruction-based
contribution*, which is certain to be largest at one large fault, as a residual's is not.

1. Rows are centered: the caller has subtracted the mean, a node's own where there is one.
2. Where rows hold their own past (lags), a channel is all its copies, for its past would give it
   away.
3. What is usual at a node replaces what the model expects, as far as the certainty allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import EPS, Array
from submerge.errors import UsageError
from submerge.pca.expectation import TINY
from submerge.pca.factor import Precision
from submerge.pca.subspace import Subspace

Statistic = Literal["spe", "t2", "distance"]

SEEN = 1e-6  # least part of a channel that SPE sees to blame it: float32 columns are good to 1e-7
SOLID = 1e-9  # least eigenvalue of a channel's block in T2, over the largest: less is rounding
KNOWN = 1e-12  # least typical square error, over the expected: less is that of an unused channel

RELATED = 0.3  # least partial correlation by which a fault of one channel shows in another's error
TOLD = 0.5  # least square of one by which two channels tell each other: half of what is left
PAIRED = 256  # channels that are compared with all others at once

# Half of the difference of two falls is the logarithm of the odds between the two faults.
SURE = 2 * math.log(0.95 / 0.05)  # least by which the larger fall is the right one, of 95 % of rows


class Pairs(NamedTuple):
    """Channels whose errors vary together: (pairs,) each; every pair comes both ways round."""

    one: npt.NDArray[np.intp]
    other: npt.NDArray[np.intp]
    alike: Array  # the partial correlation without its sign, given all other channels

    def told(self, one: int, other: int) -> bool:
        """Return whether each of two channels is told by the other."""
        found = self.alike[(self.one == one) & (self.other == other)]
        return bool((found**2 >= TOLD).any())


NO_PAIRS = Pairs(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0))


class Reconstruction:
    """Predicts and scores channels with one model.

    What depends on the model alone is computed once, in O(dim k^2).

    Parameters
    ----------
    subspace : Subspace
        At the rank to score with.
    channels : int, optional
        Number of leading columns that are channels. The others are copies of all channels, in
        the same order, from earlier rows. By default every column is a channel.
    precision : Precision, optional
        By default that of the subspace alone.

    Attributes
    ----------
    precision : Precision
    expected : (channels,)
        Mean square of `left_out` under the model itself.

    References
    ----------
    Alcala and Qin, Reconstruction-based contribution for process monitoring, Automatica 45
    (2009).
    """

    def __init__(
        self, subspace: Subspace, channels: int | None = None, precision: Precision | None = None
    ) -> None:
        self.channels = subspace.dim if channels is None else channels
        if not 0 < self.channels <= subspace.dim or subspace.dim % self.channels:
            raise UsageError(
                f"channels must divide the length of a row, {subspace.dim}, got {channels}"
            )
        self.precision = Precision.of(subspace) if precision is None else precision
        self._basis = np.asarray(subspace.basis, dtype=np.float64)
        self._variance = subspace.explained_variance
        roots, M = self.precision.roots, self.precision.loadings
        # P in units of the noise, where copies of a channel have one size.
        self._form = _Form(1.0, M, -self.precision.back)
        solved = _inverses(self._form.blocks(self.channels))[:, 0].T
        self.expected: Array = roots[: self.channels] ** 2 * solved[0]
        self._first: Array = np.ascontiguousarray(solved * roots[: self.channels])

    @cached_property
    def pairs(self) -> Pairs:
        """The channels whose errors vary together, by the numbers of their own time."""
        n, M = self.channels, self.precision.loadings[: self.channels]
        back, found = self.precision.back[:, :n], []
        sizes = np.sqrt(np.maximum(1 - np.einsum("jk,kj->j", M, back), EPS))
        for first in range(0, n, PAIRED):
            some = slice(first, first + PAIRED)
            alike = np.abs(M[some] @ back) / np.outer(sizes[some], sizes)
            np.fill_diagonal(alike[:, first:], 0.0)
            one, other = np.nonzero(alike >= RELATED)
            found.append((one + first, other, np.minimum(alike[one, other], 1.0)))
        return Pairs(*map(np.concatenate, zip(*found, strict=True)))

    def left_out(self, centered: Array) -> Array:
        """Return the difference of each channel from its prediction by all the others.

        Parameters
        ----------
        centered : (n, dim)

        Returns
        -------
        (n, channels), in units of the rows; the whole reading where no other channel predicts it.
        The prediction is the row less this.

        Notes
        -----
        O(dim k) a row. `missing.fill` gives the same prediction, one missing channel at a time.
        """
        return self.left_out_of(self.precision.residual(centered)[0])

    def left_out_of(self, off: Array) -> Array:
        """Return `left_out` of rows whose residual (`Precision.residual`) is known, (n, dim)."""
        if self.channels == off.shape[1]:
            return np.asarray(off * self._first[0])
        copies = off.reshape(len(off), -1, self.channels)
        return np.asarray(np.einsum("nlj,lj->nj", copies, self._first))

    def expected_by(self, present: npt.NDArray[np.bool_]) -> Array:
        """Return the mean square of predicting each channel from others present: (channels,).

        present : (dim,). For a channel that is absent itself it is that from all the others.
        """
        M = np.where(present[:, None], self.precision.loadings, 0.0)
        back = np.linalg.solve(np.eye(M.shape[1]) + M.T @ M, M.T)
        solved = _inverses(_Form(1.0, M, -back).blocks(self.channels))[:, 0, 0]
        found = self.precision.roots[: self.channels] ** 2 * solved
        return np.where(present[: self.channels], found, self.expected)

    def blame(self, centered: Array, typical: Array | None = None) -> Array:
        """Return each channel's share in what is anomalous about each row, by any statistic.

        Parameters
        ----------
        centered : (n, dim)
        typical : (channels,), optional
            Mean square of `left_out` on normal rows (`StuckDetector.typical_squares`): a noisy
            channel is not to blame for its noise. Where it is NaN or 0, `expected` replaces it.

        Returns
        -------
        (n, channels), shares that sum to 1 along each row; all 0 where a row is the mean itself.
        Average them over the rows of one event.
        """
        usual = usual_squares(self.expected, typical, self.pairs)
        return shares_of(self.left_out(centered), usual)

    def falls(self, errors: Array, together: Iterable[Sequence[int]]) -> Array:
        """Return by how much squared distances fall without each channel, (n, channels).

        By x'P[:, s] (P[s, s])^-1 P[s, :]x for channels that go `together`, each list at once;
        errors (n, channels) are those of `left_out`, of rows without copies.
        """
        weighed = errors / np.maximum(self.expected, TINY)
        falls, precision = weighed * errors, self.precision
        for some in map(list, together):
            block = np.eye(len(some)) - precision.loadings[some] @ precision.back[:, some]
            off = weighed[:, some] * precision.roots[some]
            fall = np.einsum("nj,jk,nk->n", off, _inverses(block[None])[0], off)
            falls[:, some] = fall[:, None]
        return np.asarray(falls)

    def contributions(self, centered: Array, by: Statistic) -> Array:
        """Return the reconstruction-based contributions to one statistic.

        Parameters
        ----------
        centered : (n, dim)
        by : {"spe", "t2", "distance"}
            "distance": the squared Mahalanobis distance x'P x.

        Returns
        -------
        (n, channels): the most that the statistic can fall if the channel may be replaced, never
        more than the statistic. 0 for a channel that the statistic does not see.
        """
        least, share = 0.0, EPS
        if by == "distance":
            form, centered = self._form, centered / self.precision.roots
        elif by == "spe":
            form, least = _Form(1.0, self._basis, -self._basis.T), SEEN
        else:
            solid = self._variance > len(self._basis) * EPS * self._variance[:1]
            weights = np.divide(1.0, self._variance, out=np.zeros(len(solid)), where=solid)
            form, share = _Form(0.0, self._basis, weights[:, None] * self._basis.T), SOLID
        off = form.of(centered).reshape(len(centered), -1, self.channels)
        solved = _inverses(form.blocks(self.channels), least=least, share=share)
        return np.asarray(np.einsum("nlj,jlm,nmj->nj", off, solved, off, optimize=True))


def shares_of(errors: Array, usual: Array | None) -> Array:
    """Return each channel's share (n, channels) of `left_out` errors over `usual_squares`."""
    squares = errors**2 if usual is None else errors**2 / usual
    total = squares.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(squares, total, out=np.zeros_like(squares), where=total != 0))


def usual_squares(expected: Array, typical: Array | None, pairs: Pairs = NO_PAIRS) -> Array:
    """Return by what squared errors are divided to be compared, (channels,)."""
    # Where known, their mean squares on normal rows replace the expected (Alcala and Qin 2009).
    if typical is None:
        return expected
    # A fault of one channel shows in the error of its pair, its square smaller by that of their
    # correlation: a pair far less noisy than expected would be blamed. So no weight exceeds
    # another by more than half (in logarithms) of what sets their faults apart.
    weights = expected / np.where(typical > KNOWN * expected, typical, expected)
    for _ in range(len(weights) if len(pairs.one) else 0):
        bounded = weights.copy()
        np.minimum.at(bounded, pairs.other, weights[pairs.one] / pairs.alike)
        if (bounded == weights).all():
            break
        weights = bounded
    return np.asarray(expected / weights)


class _Form:
    """The symmetric matrix own * I + basis back, never formed: (dim, k) and (k, dim)."""

    def __init__(self, own: float, basis: Array, back: Array) -> None:
        self._own, self._basis, self._back = own, basis, back

    def of(self, rows: Array) -> Array:
        """Return the matrix times each row, (n, dim)."""
        return np.asarray(self._own * rows + (rows @ self._basis) @ self._back)

    def blocks(self, channels: int) -> Array:
        """Return the blocks of each channel and its copies: (channels, copies, copies)."""
        dim, rank = self._basis.shape
        copies = dim // channels
        left = self._basis.reshape(copies, channels, rank)
        right = self._back.reshape(rank, copies, channels)
        return np.asarray(np.einsum("ljk,kmj->jlm", left, right) + self._own * np.eye(copies))


def _inverses(blocks: Array, *, least: float = 0.0, share: float = EPS) -> Array:
    """Invert positive blocks (n, m, m) where above `least` and a share of their largest value."""
    values, vectors = np.linalg.eigh(blocks)
    solid = values > np.maximum(least, share * values[:, -1:])
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=solid)
    return np.asarray((vectors * inverse[:, None]) @ vectors.swapaxes(1, 2))
