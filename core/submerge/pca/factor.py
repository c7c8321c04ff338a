"""Factors: a variance of its own for each channel, beside the directions that channels share.

x = mean + L z + noise, the factor-analysis model of normal rows (Lawley and Maxwell 1971, chapter
4; Harman 1976, chapter 8); how L and Psi follow from a summary: docs/mathematics.md, "Factors".

No channel's noise is less than `LEAST` of its variance. A fit may leave a channel next to none
(a Heywood case); how small it truly is cannot be known from finite rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from submerge._linalg import Array
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter

LEAST = 1e-4
"""Least noise of a channel, over its variance. A channel with operating states varies a thousand
times as much as its noise: with 0.005 faults drown in it, and 1e-5 gains nothing (decision 33)."""

FLAT = 1e-12  # least noise of a channel, over the mean variance of all: a channel that never varied

ROUNDS = 4
"""Rounds of a fit, each with one decomposition of a (dim, dim) matrix. From where it starts, more
find no more faults."""

ROOM = 4096  # bytes in a report that a model does not need: those of a client's alarms

LEAST_NOISE = 1e-10
"""Least noise of a subspace, over its largest variance: less is lost in rounding to float32."""


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """The noise of each channel, and the loadings of the common factors."""

    noise: Array  # (dim,), variances Psi, all positive
    loadings: Array | None = None  # L (dim, k); None: U S / sqrt(weight) of its summary

    def loadings_of(self, subspace: Subspace) -> Array:
        """Return L (dim, k), which may be that of the subspace that it goes with."""
        return _scaled(subspace) if self.loadings is None else self.loadings

    def beside(self, subspace: Subspace) -> Factors:
        """Return it for a subspace of more rows: with a noise that is not lost beside these."""
        held = np.square(self.loadings_of(subspace)).sum(axis=1)
        return replace(self, noise=np.maximum(self.noise, LEAST * held))


def factors_of(piece: Subspace | WholeScatter, directions: Subspace) -> Factors | None:
    """Return a summary's factors, perhaps with `directions` for L; None without energies."""
    energies = piece.channel_energies
    if energies is None or not directions.rank or not piece.weight > 0:
        return None
    if isinstance(piece, WholeScatter):
        columns = columns_apart(piece.dim, directions.rank)
        if columns > directions.rank:
            covariance = piece.scatter / piece.weight
            held, whole = np.diag(covariance), energies / piece.weight
            # What came as directions alone lacks a part; else they differ by rounding.
            np.fill_diagonal(covariance, np.where(whole > 1.001 * held, whole, held))
            return fitted(covariance, columns)
    variance = energies / piece.weight
    held = np.square(directions.basis, dtype=np.float64) @ directions.explained_variance
    return Factors(floored(variance - held, variance))


def columns_apart(dim: int, k: int) -> int:
    """Return how many columns of loadings a model may have beside its k directions."""
    # Half of dim are enough for a distance, and a link has room for no more (`size_of_report`).
    report = max(4 * dim * k, 2 * dim * (dim + 1)) + ROOM
    return max(0, min(dim // 2, report // (4 * dim) - k))


def fitted(covariance: Array, columns: int) -> Factors:
    """Return the factors of a covariance (dim, dim), fitted to it by maximum likelihood."""
    # In units of the noise, L follows from the leading eigenpairs t, V of Psi^-1/2 C Psi^-1/2: L =
    # Psi^1/2 V (t - 1)^1/2. Psi is then what L leaves of the variances, and both are repeated, from
    # half of 1 / (C^-1)_jj on (Joreskog, Psychometrika 32, 1967).
    variance = np.maximum(np.diag(covariance), 0.0)
    least = floored(np.zeros(len(variance)), variance)
    roots = np.sqrt(least)
    unit = covariance / np.outer(roots, roots) + np.eye(len(roots))
    noise = np.maximum(least / (2 * np.diag(np.linalg.inv(unit))), least)
    for _ in range(ROUNDS):
        roots = np.sqrt(noise)
        values, vectors = np.linalg.eigh(covariance / np.outer(roots, roots))
        shared = np.sqrt(np.maximum(values[: -columns - 1 : -1] - 1, 0.0))
        loadings = roots[:, None] * vectors[:, : -columns - 1 : -1] * shared
        noise = np.maximum(variance - np.square(loadings).sum(axis=1), least)
    return Factors(noise, loadings)


def floored(noise: Array, variance: Array) -> Array:
    """Return noise (dim,) that is nowhere less than a share of the variance of the channel."""
    least = np.maximum(LEAST * variance, FLAT * float(variance.mean()))
    return np.maximum(noise, np.maximum(least, float(np.finfo(np.float32).tiny)))


def noise_variance(subspace: Subspace) -> float:
    """Return the variance of the noise in each channel, by a subspace alone.

    It is the energy that the subspace does not hold, spread over the dim - k directions that it
    lacks: probabilistic PCA (Tipping and Bishop, JRSS B 61, 1999).
    """
    noise = 0.0
    if subspace.weight > 0:
        lacking = max(1, subspace.dim - subspace.rank)
        noise = subspace.frobenius_bound / (subspace.weight * lacking)
    # With so much noise, a row that shows too little to separate the directions still has an
    # answer. `tiny` keeps it from vanishing where it is divided by.
    least = LEAST_NOISE * float(subspace.explained_variance[0]) if subspace.rank else 0.0
    return max(noise, least, float(np.finfo(float).tiny))


def uniform(subspace: Subspace) -> Factors:
    """Return the factors of a subspace with one noise variance for all channels."""
    return Factors(np.full(subspace.dim, noise_variance(subspace)), _scaled(subspace))


def _scaled(subspace: Subspace) -> Array:
    """Return U S / sqrt(weight), (dim, k)."""
    return np.asarray(subspace.basis * np.sqrt(subspace.explained_variance), dtype=np.float64)


# As a sum of squares it does not cancel, and is never negative.


class Precision:
    """The inverse of L L' + diag(Psi), O(dim k^2) to make.

    loadings, roots : M (dim, k) in units of the noise; its standard deviations (dim,).
    back : (k, dim), (I + M'M)^-1 M', which gives z of y.
    flat : (dim,), channels that never varied.
    """

    def __init__(self, loadings: Array, noise: Array) -> None:
        self.noise, self._given = noise, loadings
        self.roots = np.sqrt(noise)
        self.loadings: Array = np.ascontiguousarray(loadings / self.roots[:, None])
        inner = np.eye(loadings.shape[1]) + self.loadings.T @ self.loadings
        self.back: Array = np.asarray(np.linalg.solve(inner, self.loadings.T), dtype=np.float64)
        variance = noise + np.square(loadings).sum(axis=1)
        self.flat = variance <= 2 * FLAT * variance.mean()
        # As rows are multiplied with them.
        self._weights = 1 / self.roots
        self._back = np.ascontiguousarray(self.back.T)
        self._loadings = np.ascontiguousarray(self.loadings.T)

    @classmethod
    def of(cls, subspace: Subspace, factors: Factors | None = None) -> Precision:
        """Return that of factors, or of a subspace with one noise variance for all channels."""
        known = uniform(subspace) if factors is None else factors
        return cls(known.loadings_of(subspace), known.noise)

    def with_noise(self, noise: Array) -> Precision:
        """Return that of the same loadings."""
        return Precision(self._given, noise)

    def residual(self, centered: Array) -> tuple[Array, Array]:
        """Return y - M z, (n, dim), and z, (n, k), of centered rows (n, dim)."""
        y = centered * self._weights
        z = y @ self._back
        y -= z @ self._loadings
        return y, z

    def measure(self, centered: Array) -> tuple[Array, Array]:
        """Return y - M z, (n, dim), of centered rows, and their squared distances, (n,)."""
        y, z = self.residual(centered)
        return y, np.einsum("ij,ij->i", y, y) + np.einsum("ij,ij->i", z, z)
