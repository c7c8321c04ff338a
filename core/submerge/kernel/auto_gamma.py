"""gamma="auto" where rows are at hand: their spread, and the gamma that follows from it.

A fleet settles gamma from what its nodes report (`moments.spread`); here the rows, or a
summary of them, are in one place. Two rules, for all that ask:

1. The spread is tr C in float64, about the mean, whatever the rows are stored in.
2. Rows that do not differ, or by numbers whose squares are none, have no gamma: that is
   refused, since what a stream's first, lonely row said would hold for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np

from submerge.errors import UsageError
from submerge.features import Kernel, sparse
from submerge.stats.moments import Moments, pooled

LEAST, MOST = 1e-300, 1e300
"""Spreads between which gamma, and squares of what it is multiplied with, are numbers."""

CHUNK = 1024
"""Rows that are squared at once."""


def settled_for(kernel: Kernel, X: Any, *, what: str = "rows") -> Kernel:
    """Return the kernel as it is if its gamma is settled, or with the one for these rows.

    Parameters
    ----------
    X : (n, channels), n at least 1
        Dense, of any float, or sparse.
    what : str
        The rows' name in the error.

    Raises
    ------
    UsageError
        If their spread is no size.
    """
    if kernel.gamma is not None:
        return kernel
    return kernel.settled_at(kernel.auto(sized(X, what=what)))


def sized(X: Any, *, what: str = "rows") -> float:
    """Return the spread of rows X, or refuse them, see `settled_for`."""
    return _checked(spread_of(X), f"{what}, n_samples={X.shape[0]}")


def auto_gamma(kernel: Kernel, spread: float) -> float:
    """Return the kernel's own gamma for rows of that spread: positive and finite.

    Raises
    ------
    UsageError
        If the spread is no size.
    """
    return kernel.auto(_checked(spread, "rows"))


def spread_of(X: Any) -> float:
    """Return tr C of rows X (n, channels): half the mean squared distance of two of them.

    0 where they are equal, to rounding; inf or NaN where squares overflow. O(n channels), or
    of sparse rows O(entries + channels).
    """
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
    return reduce(pooled, (Moments.of(rows) for rows in _wide_chunks(X)))


def _wide_chunks(X: Any) -> Iterator[Any]:
    for start in range(0, len(X), CHUNK):
        yield np.asarray(X[start : start + CHUNK], dtype=np.float64)


def _sparse_moments(X: Any) -> Moments:
    """Those of dense rows: entries that are not stored lie a mean away from it."""
    X = sparse.checked(X)
    # A copy, so that entries of one place may be summed: squares are of sums.
    X.sum_duplicates()
    n, channels = X.shape
    mean = np.bincount(X.indices, X.data, channels) / n
    m2 = np.bincount(X.indices, (X.data - mean[X.indices]) ** 2, channels)
    unstored = n - np.bincount(X.indices, minlength=channels)
    return Moments(n, mean, m2 + unstored * mean**2)
