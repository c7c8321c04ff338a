"""NY-KPCA: kernel PCA in the span of a few landmarks, streamed and pooled (Sterge et al., 2020).

PCA of rows' coordinates on the landmarks' span (`features.Landmarks`) is exact kernel PCA within
that span. Coordinates depend on landmarks and kernel alone, so scatters add up over nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from submerge._linalg import EPS, Array, signs
from submerge.errors import UsageError
from submerge.features import Kernel, Landmarks, sparse

CHUNK = 1024  # rows whose kernel values with the landmarks are held at once


@dataclass(frozen=True, slots=True, eq=False)
class Covariance:
    """Mean (m,) and scatter (m, m) of rows' features in landmarks' coordinates; see `pooled`."""

    count: int
    mean: Array
    scatter: Array
    outside: float  # summed squared distances from the landmarks' span, about zero

    @classmethod
    def of(cls, X: Array, landmarks: Landmarks) -> Covariance:
        """Summarize rows X (n, channels), dense or sparse; UsageError if a kernel overflows."""
        parts = []
        for rows in chunks(X):
            C = landmarks.lift(rows)
            with np.errstate(over="ignore", invalid="ignore"):  # the check below refuses it
                outside = float(outside_span(rows, C, landmarks.kernel).sum())
                mean = C.mean(axis=0)
                C -= mean
                scatter = C.T @ C
            check_finite(landmarks.kernel, scatter, outside)
            parts.append(cls(len(C), mean, scatter, outside))
        return pooled(*parts)

    def about(self, *, center: bool) -> Array:
        """Return the coordinates' scatter (m, m) about their mean, or about zero."""
        if center:
            return self.scatter
        return self.scatter + self.count * np.outer(self.mean, self.mean)


def pooled(*parts: Covariance) -> Covariance:
    """Return the covariance of all rows behind parts of the same landmarks, exactly."""
    if len(parts) == 1:
        return parts[0]
    count = sum(part.count for part in parts)
    mean = np.sum([part.count / count * part.mean for part in parts], axis=0)
    scatter = np.zeros_like(parts[0].scatter)
    for part in parts:
        off = part.mean - mean
        scatter += part.scatter
        scatter += part.count * np.outer(off, off)
    return Covariance(count, mean, scatter, sum(part.outside for part in parts))


@dataclass(frozen=True, eq=False)
class NystromPCA:
    """Kernel PCA in the landmarks' span, of at most `rank` directions."""

    landmarks: Landmarks
    covariance: Covariance
    rank: int
    center: bool = True

    @classmethod
    def of(cls, X: Array, landmarks: Landmarks, *, rank: int, center: bool = True) -> NystromPCA:
        """Learn rows X (n, channels), dense or sparse, n at least 1."""
        return cls(landmarks, Covariance.of(X, landmarks), rank, center)

    def joined(self, *others: Covariance) -> NystromPCA:
        """Return the model with more rows learnt, from covariances with the same landmarks."""
        return replace(self, covariance=pooled(self.covariance, *others))

    def scores(self, X: Array) -> Array:
        """Return rows X (n, channels) on the directions in feature space, (n, r)."""
        axes = self.directions.axes
        found = [(self.landmarks.lift(rows) - self._origin) @ axes for rows in chunks(X)]
        check_finite(self.landmarks.kernel, *found)
        return np.concatenate(found)

    def residual(self, X: Array) -> Array:
        """Return the squared distances of rows X off the directions, in feature space: (n,)."""
        axes, found = self.directions.axes, []
        for rows in chunks(X):
            off = self.landmarks.lift(rows)
            outside = outside_span(rows, off, self.landmarks.kernel)
            off -= self._origin
            off -= (off @ axes) @ axes.T
            found.append(outside + np.einsum("ij,ij->i", off, off))
        check_finite(self.landmarks.kernel, *found)
        return np.concatenate(found)

    @property
    def energy(self) -> float:
        """The features' summed squared distances from their mean's projection, or from zero."""
        # It exceeds their total about their mean by n times the squared distance of the mean from
        # the span, if centered: by at most `covariance.outside`.
        about = self.covariance.about(center=self.center)
        return float(np.trace(about)) + self.covariance.outside

    @cached_property
    def directions(self) -> PrincipalAxes:
        """The leading `rank` directions, or as many as the rows have. O(m^3), once."""
        eigenvalues, V = np.linalg.eigh(self.covariance.about(center=self.center))
        eigenvalues, V = eigenvalues[::-1][: self.rank], V[:, ::-1][:, : self.rank]
        mean, rounded = self.covariance.mean, len(V) * EPS
        # Equal rows leave rounding of their mean, squared, which is not a direction.
        noise = rounded**2 * self.covariance.count * float(mean @ mean)
        solid = eigenvalues > max(rounded * float(eigenvalues[0]), noise)
        V = V[:, solid]
        return PrincipalAxes(V * signs(V.T), eigenvalues[solid])

    @property
    def coefficients(self) -> Array:
        """(r, m): each direction as a linear combination of the landmarks' features."""
        return np.asarray((self.landmarks.whitening @ self.directions.axes).T)

    @property
    def _origin(self) -> Array | float:
        return self.covariance.mean if self.center else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class PrincipalAxes:
    """Orthonormal directions (m, r) in landmarks' coordinates, and eigenvalues (r,), descending."""

    axes: Array
    eigenvalues: Array


def outside_span(X: Array, C: Array, kernel: Kernel) -> Array:
    """Return squared distances of the features of X from a span, with coordinates C there: (n,)."""
    return np.asarray(np.maximum(kernel.diagonal(X) - np.einsum("ij,ij->i", C, C), 0.0))


def check_finite(kernel: Kernel, *values: Array | float) -> None:
    """Refuse results of kernel values that overflow."""
    if not all(np.isfinite(each).all() for each in values):
        raise UsageError(f"the kernel of rows must be finite: {kernel} is too steep for them")


def chunks(X: Any) -> Iterator[Any]:
    """Yield rows X (n, channels), dense or sparse, in chunks of `CHUNK`."""
    X = sparse.checked(X)
    for start in range(0, X.shape[0], CHUNK):
        yield X[start : start + CHUNK]


# The choice of landmarks. Uniform choice is as good where every kind of row is common. Where some
# are rare, the others find them: leverage in one pass over all rows (scores from a uniform sample,
# Alaoui & Mahoney, NeurIPS 2015; the ridge is what rank k misses, over k, Musco & Musco, NeurIPS
# 2017), residual in a pass after the first half is chosen (Deshpande, Rademacher, Vempala & Wang,
# SODA 2006).

HOW = ("uniform", "leverage", "residual")

Rows = npt.NDArray[np.intp]  # row numbers, all different

NONE: Rows = np.empty(0, dtype=np.intp)

PILOTS = 2  # sampled rows for each landmark, from which leverage is estimated


def choose(
    how: str, X: Any, m: int, kernel: Kernel, *, rank: int, rng: np.random.Generator
) -> Rows:
    """Return the numbers (m,) of the rows of X (n, channels), n at least m, to take."""
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
    """Return each row's approximate ridge leverage (n,), for m landmarks and a rank."""
    # It is large for a row that few others resemble, if its kind is part of the leading directions:
    # the ridge is the eigenvalue sum beyond those, over `rank`. Exact where pilots are all rows.
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
        """Return the estimated ridge leverage of rows X (n, channels), dense or sparse: (n,)."""
        # (k(x,x) - k(x,S) (k(S,S) + ridge / share)^-1 k(S,x)) / ridge: with all rows as the sample
        # exactly the diagonal of K (K + ridge I)^-1; with fewer never less, where share is 1.
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
