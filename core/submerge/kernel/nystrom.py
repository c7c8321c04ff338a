"""NY-KPCA: kernel PCA in the span of a few landmarks, streamed and pooled.

`features.Landmarks` lifts a row to the coordinates of its feature's projection on the
landmarks' span. PCA of the coordinates is then exact kernel PCA within that span, and cannot
miss less than exact kernel PCA at the same rank. Coordinates depend on landmarks and kernel
alone, so scatters of them add up over nodes.

References
----------
Sterge, Sriperumbudur, Rosasco & Rudi, Gain with no Pain: Efficiency of Kernel-PCA by
Nystrom Sampling, AISTATS 2020.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from submerge._linalg import EPS, Array, signs
from submerge.errors import UsageError
from submerge.features import Kernel, Landmarks, sparse

CHUNK = 1024
"""Rows whose kernel with the landmarks is held at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Covariance:
    """What rows say of their features, seen from some landmarks. It adds up (`pooled`).

    Attributes
    ----------
    count : int
        Rows.
    mean : (m,), of their coordinates
    scatter : (m, m), of their coordinates, about that mean
    outside : float
        Summed squared distances of their features from the landmarks' span. About zero: where
        the mean of what lies outside is, landmarks cannot tell.
    """

    count: int
    mean: Array
    scatter: Array
    outside: float

    @classmethod
    def of(cls, X: Array, landmarks: Landmarks) -> Covariance:
        """Summarize rows X (n, channels), dense or sparse, n at least 1. O(n m^2).

        Raises
        ------
        UsageError
            If a kernel value overflows.
        """
        parts = []
        for rows in chunks(X):
            C = landmarks.lift(rows)
            with np.errstate(over="ignore", invalid="ignore"):  # the check below says it in words
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
    """Return what all rows behind the parts, one or more, say: exactly.

    All parts are seen from the same landmarks: that is the caller's to know.
    """
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
    """Kernel PCA in the landmarks' span: a value; what learns more is a new one.

    Attributes
    ----------
    landmarks : Landmarks
    covariance : Covariance
    rank : int
        Most directions to show.
    center : bool
        Whether the features' mean is subtracted.
    """

    landmarks: Landmarks
    covariance: Covariance
    rank: int
    center: bool = True

    @classmethod
    def of(cls, X: Array, landmarks: Landmarks, *, rank: int, center: bool = True) -> NystromPCA:
        """Learn rows X (n, channels), dense or sparse, n at least 1."""
        return cls(landmarks, Covariance.of(X, landmarks), rank, center)

    def joined(self, *others: Covariance) -> NystromPCA:
        """Return this with more rows learnt, as summaries seen from the same landmarks."""
        return replace(self, covariance=pooled(self.covariance, *others))

    def scores(self, X: Array) -> Array:
        """Return (n, r): rows X (n, channels) on the directions, in feature space."""
        axes = self.directions.axes
        return np.concatenate(
            [(self.landmarks.lift(rows) - self._origin) @ axes for rows in chunks(X)]
        )

    def residual(self, X: Array) -> Array:
        """Return (n,): the squared distances of rows X from what was learnt, in feature space.

        From the mean's projection on the landmarks' span, off the directions. Never negative.
        """
        axes, found = self.directions.axes, []
        for rows in chunks(X):
            off = self.landmarks.lift(rows)
            outside = outside_span(rows, off, self.landmarks.kernel)
            off -= self._origin
            off -= (off @ axes) @ axes.T
            found.append(outside + np.einsum("ij,ij->i", off, off))
        return np.concatenate(found)

    @property
    def energy(self) -> float:
        """The features' summed squared distances from their mean's projection, or from zero.

        Centered, that is at least their total about their mean, and above it by n times the
        squared distance of the mean from the span: by `covariance.outside` at most.
        """
        about = self.covariance.about(center=self.center)
        return float(np.trace(about)) + self.covariance.outside

    @cached_property
    def directions(self) -> PrincipalAxes:
        """The leading `rank` directions, or as many as the rows have. O(m^3), once."""
        eigenvalues, V = np.linalg.eigh(self.covariance.about(center=self.center))
        eigenvalues, V = eigenvalues[::-1][: self.rank], V[:, ::-1][:, : self.rank]
        mean, rounded = self.covariance.mean, len(V) * EPS
        # Equal rows leave rounding of their mean, squared: that is no direction.
        noise = rounded**2 * self.covariance.count * float(mean @ mean)
        solid = eigenvalues > max(rounded * float(eigenvalues[0]), noise)
        V = V[:, solid]
        return PrincipalAxes(V * signs(V.T), eigenvalues[solid])

    @property
    def coefficients(self) -> Array:
        """(r, m): each direction as a sum of the landmarks' features, so many times each."""
        return np.asarray((self.landmarks.whitening @ self.directions.axes).T)

    @property
    def _origin(self) -> Array | float:
        return self.covariance.mean if self.center else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class PrincipalAxes:
    """Principal directions of features.

    Attributes
    ----------
    axes : (m, r)
        Orthonormal columns in the landmarks' coordinates; the largest entry is positive.
    eigenvalues : (r,)
        Of the scatter, largest first: with all rows as landmarks, those of the rows' Gram
        matrix, centered if they are.
    """

    axes: Array
    eigenvalues: Array


def outside_span(X: Array, C: Array, kernel: Kernel) -> Array:
    """Return (n,): squared distances of the features of X from a span, of coordinates C there."""
    return np.asarray(np.maximum(kernel.diagonal(X) - np.einsum("ij,ij->i", C, C), 0.0))


def check_finite(kernel: Kernel, *values: Array | float) -> None:
    """Refuse what came of kernel values that overflow."""
    if not all(np.isfinite(each).all() for each in values):
        raise UsageError(f"the kernel of rows must be finite: {kernel} is too steep for them")


def chunks(X: Any) -> Iterator[Any]:
    """Cut rows X (n, channels), dense or sparse, into as many as are held at once."""
    X = sparse.checked(X)
    for start in range(0, X.shape[0], CHUNK):
        yield X[start : start + CHUNK]
