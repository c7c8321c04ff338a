"""gamma="auto" for rows in one place: their spread, and the gamma that follows from it.

Equal rows are refused: otherwise a stream's single first row would set gamma for ever.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from submerge._linalg import unmasked
from submerge.errors import UsageError
from submerge.features import Kernel, sparse
from submerge.stats.moments import Moments, pooled

LEAST, MOST = 1e-300, 1e300
"""Range of spreads for which gamma and squared distances are finite and positive."""

CHUNK = 1024  # rows whose moments are taken at once


def settled_for(kernel: Kernel, X: Any, *, what: str = "rows") -> Kernel:
    """Return the kernel with the gamma for rows X (n, channels), n > 0, if none is settled yet."""
    if kernel.gamma is not None:
        return kernel
    return kernel.settled_at(kernel.auto(checked_spread(X, what=what)))


def checked_spread(X: Any, *, what: str = "rows") -> float:
    """Return the spread of rows X, or refuse them as `settled_for` does."""
    return _checked(spread_of(X), f"{what}, n_samples={X.shape[0]}")


def auto_gamma(kernel: Kernel, spread: float) -> float:
    """Return the kernel's own gamma for rows of that spread; UsageError if it is out of range."""
    return kernel.auto(_checked(spread, "rows"))


def spread_of(X: Any) -> float:
    """Return tr C of rows X (n, channels), which may overflow: half their mean squared distance."""
    X = unmasked(X)
    with np.errstate(over="ignore", invalid="ignore"):
        moments = _sparse_moments(X) if sparse.is_sparse(X) else _dense_moments(X)
        return float(moments.variance.sum())


def _checked(spread: float, of: str) -> float:
    if not LEAST < spread < MOST:
        raise UsageError(
            'gamma="auto" expects rows that differ, by numbers that can be squared,'
            f" got a variance of {spread:g} ({of}): give gamma, or more rows"
        )
    return spread


def _dense_moments(X: Any) -> Moments:
    chunks = (X[start : start + CHUNK] for start in range(0, len(X), CHUNK))
    return reduce(pooled, (Moments.of(np.asarray(rows, dtype=np.float64)) for rows in chunks))


def _sparse_moments(X: Any) -> Moments:
    """Return the moments of sparse rows; entries that are not stored are zeros."""
    X = sparse.checked(X)
    # `checked` returned a copy, so duplicates may be summed in place before they are squared.
    X.sum_duplicates()
    n, channels = X.shape
    mean = np.bincount(X.indices, X.data, channels) / n
    m2 = np.bincount(X.indices, (X.data - mean[X.indices]) ** 2, channels)
    unstored = n - np.bincount(X.indices, minlength=channels)
    return Moments(n, mean, m2 + unstored * mean**2)
