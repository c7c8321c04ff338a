"""Scores: how far a row is from what was learnt, inside the subspace and off it.

This module sets no limits: textbook limits assume data that sensors do not send.
"""

from __future__ import annotations

import numpy as np

from submerge._linalg import EPS, Array, unmasked
from submerge.errors import ShapeError
from submerge.features import FeatureMap
from submerge.pca.subspace import LARGEST, Subspace


def spe(X: Array, subspace: Subspace) -> Array:
    """Return each row's squared distance to the subspace (SPE, Q).

    Parameters
    ----------
    X : (n, dim)
    subspace : Subspace

    Returns
    -------
    (n,), in squared units of X, never negative: the residual's squares are summed, because
    a difference of two sums of squares would cancel.
    """
    residual = _residual(X, subspace)
    return np.asarray(np.einsum("ij,ij->i", residual, residual))


def hotelling(X: Array, subspace: Subspace) -> Array:
    """Return each row's distance to the mean inside the subspace, in variances (T2).

    Parameters
    ----------
    X : (n, dim)
    subspace : Subspace

    Returns
    -------
    (n,), dimensionless: sum(z^2 / lambda), lambda = sigma^2 / weight. Directions that
    hold next to nothing, lambda <= dim eps lambda_1, are left out.
    """
    subspace = subspace.shown
    variance = subspace.explained_variance
    solid = variance > subspace.dim * EPS * variance[:1]
    z = _centered(X, subspace) @ subspace.basis[:, solid]
    return np.asarray((z**2) @ (1 / variance[solid]))


class Scorer:
    """SPE and T2 against one subspace, for rows that come a few at a time."""

    def __init__(self, subspace: Subspace) -> None:
        subspace = subspace.shown
        variance = subspace.explained_variance
        solid = variance > subspace.dim * EPS * variance[:1]
        self._mean = subspace.mean
        self._basis = subspace.basis.astype(np.float64)
        self._basis_t = np.ascontiguousarray(self._basis.T)
        self._weights = np.divide(1.0, variance, out=np.zeros_like(variance), where=solid)
        self._complete = subspace.rank == subspace.dim

    def scores(self, X: Array, mean: Array | None = None) -> tuple[Array, Array]:
        """Return `spe` and `hotelling` of rows X (n, dim), (n,) each, about a mean (dim,)."""
        return self.of(X - (self._mean if mean is None else mean))

    def of(self, centered: Array) -> tuple[Array, Array]:
        """As `scores`, of centered rows."""
        z = centered @ self._basis
        within = np.square(z) @ self._weights
        if self._complete:
            return np.zeros(len(z)), within
        off = z @ self._basis_t
        np.subtract(centered, off, out=off)
        return np.einsum("ij,ij->i", off, off), within


def contributions(X: Array, subspace: Subspace, features: FeatureMap | None = None) -> Array:
    """Return which channels each row's SPE comes from.

    Parameters
    ----------
    X : (n, channels)
        Scaled readings. Without features, channels = dim.
    subspace : Subspace
    features : FeatureMap, optional
        The map from X to the space of the subspace.

    Returns
    -------
    (n, channels), shares that sum to 1 along each row; all 0 for a row with no residual, all
    NaN for one with a gap.

    Notes
    -----
    Shares are those of the squared gradient of SPE with respect to the readings. Without
    features that gradient is twice the residual, and SPE is the sum of the residual's squares.
    With them it is 2 J'(I - UU')(phi(x) - mean), J the map's derivative: no pre-image is needed.
    """
    if features is None:
        gradient = _residual(X, subspace)
    else:
        gradient = features.pullback(X, _residual(features.lift(X), subspace))
    squares = gradient**2
    total = squares.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(squares, total, out=np.zeros_like(squares), where=total != 0))


def _centered(X: Array, subspace: Subspace) -> Array:
    X = np.asarray(unmasked(X), dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != subspace.dim:
        raise ShapeError("rows", expected=f"(n, {subspace.dim})", got=X.shape)
    # Squares of larger numbers are none, and a score that is NaN compares as normal.
    return np.asarray(np.clip(X, -LARGEST, LARGEST) - subspace.mean)


def _residual(X: Array, subspace: Subspace) -> Array:
    centered, basis = _centered(X, subspace), subspace.shown.basis
    return np.asarray(centered - (centered @ basis) @ basis.T)


def log_likelihood(X: Array, shown: Subspace, variance: Array, noise: float) -> Array:
    """Return the log-likelihood of each row of X (n, dim), (n,), in nats.

    variance, noise : (rank,), along the directions shown, largest first; average of the others.
    """
    dim = shown.dim
    noise = max(noise, dim * EPS * float(variance[0]))
    # What truncation lost counts as noise, so noise may exceed the last component.
    variance = np.maximum(variance, noise)
    hidden = dim - len(variance)
    log_det = np.log(variance).sum() + hidden * np.log(noise)
    distance = ((X - shown.mean) @ shown.basis) ** 2 @ (1 / variance)
    if hidden:
        distance += spe(X, shown) / noise
    return np.asarray(-0.5 * (dim * np.log(2 * np.pi) + log_det + distance))
