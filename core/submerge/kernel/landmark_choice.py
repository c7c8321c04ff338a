"""Which rows to take as landmarks: any, by leverage, or by what those before them miss.

Uniform choice costs nothing, and is as good where
every kind of row is common. Where some kinds are rare, the other two find them: by leverage
in one look at all rows, by residual for whoever can look at them after the first half.

References
----------
Alaoui & Mahoney, Fast Randomized Kernel Ridge Regression with Statistical Guarantees,
NeurIPS 2015 (two levels: scores from a uniform sample). Musco & Musco, Recursive Sampling
for the Nystrom Method, NeurIPS 2017 (the ridge: what rank k misses, over k). Deshpande,
Rademacher, Vempala & Wang, Matrix Approximation and Projective Clustering via Volume
Sampling, SODA 2006 (adaptive sampling by residual).
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
"""Rows of the sample that leverage is judged from, for each landmark."""


def choose(
    how: str, X: Any, m: int, kernel: Kernel, *, rank: int, rng: np.random.Generator
) -> Rows:
    """Return the numbers (m,) of the rows of X (n, channels), n at least m, to take.

    Parameters
    ----------
    how : {"uniform", "leverage", "residual"}
    X : (n, channels), dense or sparse
    kernel : Kernel
        Settled. Uniform choice does not ask it.
    rank : int
        Directions that the landmarks are for. Only leverage asks it.

    Raises
    ------
    UsageError
        If `how` is none of these, or a kernel value that was asked for overflows.
    """
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
    return _drawn(leverage(X, m, kernel, rank=rank, rng=rng), m, rng)


def by_residual(X: Any, m: int, kernel: Kernel, *, rng: np.random.Generator) -> Rows:
    """Choose half of `m` rows of X (n, channels) at will, half by what those leave out.

    A row's chance is its feature's squared distance from the span of the first half.
    O(n m^2).
    """
    first = rng.choice(X.shape[0], (m + 1) // 2, replace=False)
    span = Landmarks(kernel, X[first])
    with np.errstate(over="ignore", invalid="ignore"):
        missed = np.concatenate([outside_span(rows, span.lift(rows), kernel) for rows in chunks(X)])
    check_finite(kernel, missed)
    missed[first] = 0.0
    return np.concatenate([first, _drawn(missed, m - len(first), rng, without=first)])


def leverage(X: Any, m: int, kernel: Kernel, *, rank: int, rng: np.random.Generator) -> Array:
    """Return each row's approximate ridge leverage (n,), for m landmarks and a rank.

    It is large where few others are like the row, if what it stands for counts among the
    `rank` leading directions: the ridge is what all directions beyond those hold, over `rank`.
    From `PILOTS` times m of the rows X (n, channels), and exact where those are all.
    """
    n, s = X.shape[0], min(PILOTS * m, X.shape[0])
    pilots = Pilots.of(X[rng.choice(n, s, replace=False)], kernel, share=n / s)
    return pilots.leverage(X, ridge=pilots.ridge(rank))


@dataclass(frozen=True, slots=True, eq=False)
class Pilots:
    """A sample of rows, and the eigenvectors of its kernel: what leverage is judged from.

    Attributes
    ----------
    rows : (s, channels)
    kernel : Kernel
    share : float
        Rows that each of the sample stands for: eigenvalues times that are those of all rows.
    eigenvalues : (s,), ascending, none negative
    vectors : (s, s)
    """

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
        """Return what directions beyond the leading `rank` hold of all rows, over `rank`."""
        missed = float(self.eigenvalues[: max(len(self.rows) - rank, 1)].sum())
        # Where nothing is missed, any ridge says the same of rows that are known.
        return self.share * missed / rank or 1.0

    def leverage(self, X: Any, *, ridge: float) -> Array:
        """Return the ridge leverage of rows X (n, channels), dense or sparse, as far as seen.

        Parameters
        ----------
        X : (n, channels)
        ridge : float, positive
            Directions of smaller eigenvalues count for less than half.

        Returns
        -------
        (n,), not negative: (k(x,x) - k(x,S) (k(S,S) + ridge / share)^-1 k(S,x)) / ridge. With
        all rows as the sample, the diagonal of K (K + ridge I)^-1, exactly; with fewer, never
        less than that where share is 1.
        """
        # Not by Cholesky: rounding may leave a kernel matrix more negative than a small ridge.
        whitened = self.vectors / np.sqrt(self.eigenvalues + ridge / self.share)
        found = []
        with np.errstate(over="ignore", invalid="ignore"):
            for rows in chunks(X):
                explained = np.square(self.kernel(rows, self.rows) @ whitened).sum(axis=1)
                found.append(np.maximum(self.kernel.diagonal(rows) - explained, 0.0) / ridge)
        leverages = np.concatenate(found)
        check_finite(self.kernel, leverages)
        return leverages


def _drawn(chances: Array, m: int, rng: np.random.Generator, *, without: Rows = NONE) -> Rows:
    """Draw `m` different rows by their chances; where fewer have any, the others fill up."""
    likely = np.flatnonzero(chances)
    if len(likely) > m:
        return rng.choice(len(chances), m, replace=False, p=chances / chances.sum())
    others = np.setdiff1d(np.arange(len(chances)), np.concatenate([likely, without]))
    return np.concatenate([likely, rng.choice(others, m - len(likely), replace=False)])
