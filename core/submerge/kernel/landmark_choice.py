"""Choice of landmarks among rows: uniform, by leverage, or by the residual of the first half.

Uniform choice is as good where every kind of row is common. Where some are rare, the others find
them: leverage in one pass over all rows (scores from a uniform sample, Alaoui & Mahoney, NeurIPS
2015; the ridge is what rank k misses, over k, Musco & Musco, NeurIPS 2017), residual in a pass
after the first half is chosen (Deshpande, Rademacher, Vempala & Wang, SODA 2006).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import UsageError
from submerge.features import Kernel, Landmarks, sparse
from submerge.kernel.nystrom import check_finite, chunks, outside_span

HOW = ("uniform", "leverage", "residual")

Rows = npt.NDArray[np.intp]
"""Row numbers, all different."""

NONE: Rows = np.empty(0, dtype=np.intp)

PILOTS = 2
"""Sampled rows for each landmark, from which leverage is estimated."""


def choose(
    how: str, X: Any, m: int, kernel: Kernel, *, rank: int, rng: np.random.Generator
) -> Rows:
    """Return the numbers (m,) of the rows of X (n, channels), n at least m, to take.

    Only leverage uses `rank`, the directions that landmarks are for; uniform choice needs no
    settled gamma. UsageError if `how` is none of these, or a kernel value overflows.
    """
    X = sparse.checked(X)
    if how == "leverage":
        return by_leverage(X, m, kernel, rank=rank, rng=rng)
    if how == "residual":
        return by_residual(X, m, kernel, rng=rng)
    if how == "uniform":
        return rng.choice(X.shape[0], m, replace=False)
    names = ", ".join(f'"{name}"' for name in HOW)
    raise UsageError(f"landmarks must be one of {names}, or rows, got {how!r}")


def by_leverage(X: Any, m: int, kernel: Kernel, *, rank: int, rng: np.random.Generator) -> Rows:
    """Choose `m` rows of X (n, channels) by their approximate leverage for that rank. O(n m^2)."""
    return _draw(leverage(X, m, kernel, rank=rank, rng=rng), m, rng)


def by_residual(X: Any, m: int, kernel: Kernel, *, rng: np.random.Generator) -> Rows:
    """Choose half of `m` rows of X at random, half by their distance from its span. O(n m^2)."""
    first = rng.choice(X.shape[0], (m + 1) // 2, replace=False)
    span = Landmarks(kernel, X[first])
    with np.errstate(over="ignore", invalid="ignore"):
        missed = np.concatenate([outside_span(rows, span.lift(rows), kernel) for rows in chunks(X)])
    check_finite(kernel, missed)
    missed[first] = 0.0
    return np.concatenate([first, _draw(missed, m - len(first), rng, without=first)])


def leverage(X: Any, m: int, kernel: Kernel, *, rank: int, rng: np.random.Generator) -> Array:
    """Return each row's approximate ridge leverage (n,), for m landmarks and a rank.

    It is large for a row that few others resemble, if its kind is part of the `rank` leading
    directions: the ridge is the eigenvalue sum beyond those, over `rank`. It is estimated from
    `PILOTS` times m of the rows X (n, channels), and exact where those are all.
    """
    n, s = X.shape[0], min(PILOTS * m, X.shape[0])
    pilots = Pilots.of(X[rng.choice(n, s, replace=False)], kernel, share=n / s)
    return pilots.leverage(X, ridge=pilots.ridge(rank))


@dataclass(frozen=True, slots=True, eq=False)
class Pilots:
    """A sample of rows (s, channels), and eigenpairs of its kernel: times `share`, of all rows'."""

    rows: Array
    kernel: Kernel
    share: float
    eigenvalues: Array
    vectors: Array

    @classmethod
    def of(cls, X: Any, kernel: Kernel, *, share: float) -> Pilots:
        """Decompose the kernel of rows X (s, channels), dense or sparse. O(s^3)."""
        rows: Array = X.toarray() if sparse.is_sparse(X) else X
        with np.errstate(over="ignore", invalid="ignore"):
            K = kernel(rows, rows)
        check_finite(kernel, K)
        eigenvalues, vectors = np.linalg.eigh(K)
        return cls(rows, kernel, share, np.maximum(eigenvalues, 0.0), vectors)

    def ridge(self, rank: int) -> float:
        """Return the eigenvalue sum of all rows beyond the leading `rank`, over `rank`."""
        missed = float(self.eigenvalues[: max(len(self.rows) - rank, 1)].sum())
        # Where the sum is 0, any ridge gives the same for sampled rows.
        return self.share * missed / rank or 1.0

    def leverage(self, X: Any, *, ridge: float) -> Array:
        """Return the estimated ridge leverage of rows X (n, channels), dense or sparse: (n,).

        (k(x,x) - k(x,S) (k(S,S) + ridge / share)^-1 k(S,x)) / ridge: with all rows as the sample
        exactly the diagonal of K (K + ridge I)^-1; with fewer never less, where share is 1.
        """
        # Cholesky could fail: rounding may leave a kernel matrix more negative than a small ridge.
        whitened = self.vectors / np.sqrt(self.eigenvalues + ridge / self.share)
        found = []
        with np.errstate(over="ignore", invalid="ignore"):
            for rows in chunks(X):
                explained = np.square(self.kernel(rows, self.rows) @ whitened).sum(axis=1)
                found.append(np.maximum(self.kernel.diagonal(rows) - explained, 0.0) / ridge)
        leverages = np.concatenate(found)
        check_finite(self.kernel, leverages)
        return leverages


def _draw(chances: Array, m: int, rng: np.random.Generator, *, without: Rows = NONE) -> Rows:
    """Draw `m` different rows by their chances; rows without any fill up."""
    likely = np.flatnonzero(chances)
    if len(likely) > m:
        return rng.choice(len(chances), m, replace=False, p=chances / chances.sum())
    others = np.setdiff1d(np.arange(len(chances)), np.concatenate([likely, without]))
    return np.concatenate([likely, rng.choice(others, m - len(likely), replace=False)])
