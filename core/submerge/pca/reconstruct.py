"""Reconstruction: what each channel should have been, going by all the others.

A subspace stands for a model: x = U z + noise, with z ~ N(0, diag(lambda)) and noise of one
variance in every channel. Its inverse covariance P answers two questions at once. The error of
predicting channel j from all the others is (P x)_j / P_jj: a *virtual sensor*. And that error's
square, times P_jj, is by how much the distance x'P x falls if channel j may be set anew: its
*reconstruction-based contribution*. A share of the residual may be largest at a channel that a
fault merely spreads to; this is largest where one large fault is, for certain.

1. Rows are centered: whoever calls has subtracted the mean, a node's own where there is one.
2. Where rows hold their own past (lags), a channel is all its copies: they are left out, judged
   and named together, for a channel's own past would tell what it is.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from submerge._linalg import EPS, Array
from submerge.errors import UsageError
from submerge.pca.missing import noise_variance
from submerge.pca.subspace import Subspace

Statistic = Literal["spe", "t2", "both"]

SEEN = 1e-6
"""What SPE has to see of a channel to blame it: columns travel as float32, and 1e-7 is nothing."""

SOLID = 1e-9
"""What T2 has to see of a channel's past, of what it sees of it at most: the rest is rounding."""

KNOWN = 1e-12
"""A usual error of less than this share of the expected one is that of a channel not in use."""


class Reconstruction:
    """Predicts and judges channels by one subspace.

    What depends on the subspace alone is worked out once, in O(dim k^2).

    Parameters
    ----------
    subspace : Subspace
        At the rank to score with.
    channels : int, optional
        How many of the leading numbers of a row are channels: what follows are copies of all of
        them, in the same order, from rows before. Left out, all of them are.

    Attributes
    ----------
    expected : (channels,)
        Mean square of `left_out` under the model itself.

    References
    ----------
    Alcala and Qin, Reconstruction-based contribution for process monitoring, Automatica 45
    (2009). Tipping and Bishop, Probabilistic principal component analysis, JRSS B 61 (1999).
    """

    def __init__(self, subspace: Subspace, channels: int | None = None) -> None:
        self.channels = subspace.dim if channels is None else channels
        if not 0 < self.channels <= subspace.dim or subspace.dim % self.channels:
            raise UsageError(
                f"channels must divide the length of a row, {subspace.dim}, got {channels}"
            )
        self._basis = np.asarray(subspace.basis, dtype=np.float64)
        self._variance = subspace.explained_variance
        self._noise = noise_variance(subspace)
        # noise P by Woodbury, with U'U as it is: float32 columns are orthonormal to 1e-7 only.
        inner = self._basis.T @ self._basis + np.diag(self._noise / self._variance)
        back = np.asarray(np.linalg.solve(-inner, self._basis.T), dtype=np.float64)
        self._precision = _Form(1.0, self._basis, back)
        solved = _inverses(self._precision.blocks(self.channels))
        self._first: Array = np.ascontiguousarray(solved[:, 0].T)
        self.expected: Array = self._noise * self._first[0]

    def left_out(self, centered: Array) -> Array:
        """Return by how much each channel differs from what all the others say that it is.

        Parameters
        ----------
        centered : (n, dim)

        Returns
        -------
        (n, channels), in units of the rows; the whole of a channel that no other tells about. What
        the others say is the row less this.

        Notes
        -----
        O(dim k) a row. `missing.fill` says the same, one missing channel at a time.
        """
        off = self._precision.of(centered)
        if self.channels == off.shape[1]:
            return np.asarray(off * self._first[0])
        copies = off.reshape(len(off), -1, self.channels)
        return np.asarray(np.einsum("nlj,lj->nj", copies, self._first))

    def blame(self, centered: Array, usual: Array | None = None) -> Array:
        """Return which channels each row is odd by, whichever statistic found it so.

        Parameters
        ----------
        centered : (n, dim)
        usual : (channels,), optional
            Mean square of `left_out` while all is well (`StuckDetector.usual`): a noisy channel is
            not to blame for being noisy. Where it is NaN or 0, what the model expects stands in.

        Returns
        -------
        (n, channels), shares that sum to 1 along each row; all 0 where a row is the mean itself.
        Over the rows of one event, average them.
        """
        return shares_of(self.left_out(centered), self.expected, usual)

    def contributions(self, centered: Array, by: Statistic) -> Array:
        """Return the reconstruction-based contributions to one statistic.

        Parameters
        ----------
        centered : (n, dim)
        by : {"spe", "t2", "both"}
            "both": the squared Mahalanobis distance x'P x.

        Returns
        -------
        (n, channels): how much of the statistic is gone at best if the channel may be set anew,
        never more than there is. 0 for a channel that the statistic does not see.
        """
        least, share = 0.0, EPS
        if by == "both":
            form = self._precision.times(1 / self._noise)
        elif by == "spe":
            form, least = _Form(1.0, self._basis, -self._basis.T), SEEN
        else:
            solid = self._variance > len(self._basis) * EPS * self._variance[:1]
            weights = np.divide(1.0, self._variance, out=np.zeros(len(solid)), where=solid)
            form, share = _Form(0.0, self._basis, weights[:, None] * self._basis.T), SOLID
        off = form.of(centered).reshape(len(centered), -1, self.channels)
        solved = _inverses(form.blocks(self.channels), least=least, share=share)
        return np.asarray(np.einsum("nlj,jlm,nmj->nj", off, solved, off, optimize=True))


def shares_of(errors: Array, expected: Array | None, usual: Array | None = None) -> Array:
    """Return the share of each channel in what is wrong with each row.

    Parameters
    ----------
    errors : (n, channels)
        As `Reconstruction.left_out` says.
    expected : (channels,) or None
        Mean squares of errors under the model; None weighs all channels alike.
    usual : (channels,), optional
        Mean squares of errors while all is well. Where it is NaN or 0, `expected` stands in.

    Returns
    -------
    (n, channels), shares that sum to 1 along each row; all 0 where there is no error.

    Notes
    -----
    The reconstruction-based contribution of channel j to the squared Mahalanobis distance x'P x
    is e_j^2 P_jj, and 1 / P_jj is the mean square of the error e_j under the model: its square,
    over its mean. What is usual for a channel takes the place of that mean where it is known.

    References
    ----------
    Alcala and Qin, Reconstruction-based contribution for process monitoring, Automatica 45
    (2009).
    """
    squares = errors**2
    if expected is not None:
        measure = expected
        if usual is not None:
            measure = np.where(usual > KNOWN * expected, usual, expected)
        squares = squares / measure
    total = squares.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(squares, total, out=np.zeros_like(squares), where=total != 0))


class _Form:
    """The symmetric matrix own * I + basis back, never made: (dim, k) and (k, dim)."""

    def __init__(self, own: float, basis: Array, back: Array) -> None:
        self._own, self._basis, self._back = own, basis, back

    def of(self, rows: Array) -> Array:
        """Return it times each row, (n, dim)."""
        return np.asarray(self._own * rows + (rows @ self._basis) @ self._back)

    def times(self, factor: float) -> _Form:
        return _Form(factor * self._own, self._basis, factor * self._back)

    def blocks(self, channels: int) -> Array:
        """Return its part for each channel and its copies: (channels, copies, copies)."""
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
