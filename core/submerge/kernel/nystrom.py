"""NY-KPCA: kernel PCA in the span of a few landmarks, streamed and pooled.

PCA of rows' coordinates on the landmarks' span (`features.Landmarks`) is exact kernel PCA within
that span, and cannot miss less than exact kernel PCA at the same rank. Coordinates depend on
landmarks and kernel alone, so scatters of them add up over nodes.

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
"""Rows whose kernel values with the landmarks are held at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Covariance:
    """Mean (m,) and scatter (m, m) of rows' features in the coordinates of landmarks; see `pooled`.

    `outside` is their summed squared distances from the landmarks' span, about zero: landmarks do
    not show the mean of the part outside.
    """

    count: int
    mean: Array
    scatter: Array
    outside: float

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
        """The features' summed squared distances from their mean's projection, or from zero.

        If centered, it is at least their total about their mean, and exceeds it by n times the
        squared distance of the mean from the span: by at most `covariance.outside`.
        """
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
