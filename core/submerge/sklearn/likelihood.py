"""What probabilistic PCA thinks of a row."""

from __future__ import annotations

import numpy as np

from submerge._linalg import EPS, Array
from submerge.pca.score import spe
from submerge.pca.subspace import Subspace


def log_likelihood(X: Array, shown: Subspace, variance: Array, noise: float) -> Array:
    """Return each row's log-likelihood.

    Parameters
    ----------
    X : (n, dim)
    shown : Subspace
    variance : (rank,), along the directions shown, largest first; not all of it zero
    noise : float
        Average variance of the others.

    Returns
    -------
    (n,), in nats.
    """
    dim = shown.dim
    noise = max(noise, dim * EPS * float(variance[0]))
    # What truncation lost is counted as noise, which may so exceed the last component.
    variance = np.maximum(variance, noise)
    hidden = dim - len(variance)
    log_det = np.log(variance).sum() + hidden * np.log(noise)
    distance = ((X - shown.mean) @ shown.basis) ** 2 @ (1 / variance)
    if hidden:
        distance += spe(X, shown) / noise
    return np.asarray(-0.5 * (dim * np.log(2 * np.pi) + log_det + distance))
