"""Precision: the inverse of a covariance L L' + diag(Psi), by a k x k solution (Woodbury).

It is held in units of the noise: with y = Psi^-1/2 x, M = Psi^-1/2 L and z = (I + M'M)^-1 M'y,
the conditional mean of the factors,

    x' (L L' + Psi)^-1 x = |y - M z|^2 + |z|^2
    (L L' + Psi)^-1 x = Psi^-1/2 (y - M z)

The first is the squared Mahalanobis distance of a centered row x. As a sum of squares it does not
cancel, and is never negative.
"""

from __future__ import annotations

import numpy as np

from submerge._linalg import Array
from submerge.pca.factor import Factors, uniform
from submerge.pca.subspace import Subspace


class Precision:
    """The inverse of L L' + diag(Psi). O(dim k^2) to make.

    Attributes
    ----------
    loadings : (dim, k)
        M, in units of the noise.
    roots : (dim,)
        The standard deviations of the noise.
    back : (k, dim)
        (I + M'M)^-1 M', which gives z of y.
    """

    def __init__(self, loadings: Array, noise: Array) -> None:
        self.roots = np.sqrt(noise)
        self.loadings: Array = np.ascontiguousarray(loadings / self.roots[:, None])
        inner = np.eye(loadings.shape[1]) + self.loadings.T @ self.loadings
        self.back: Array = np.asarray(np.linalg.solve(inner, self.loadings.T), dtype=np.float64)
        # As rows are multiplied with them.
        self._weights = 1 / self.roots
        self._back = np.ascontiguousarray(self.back.T)
        self._loadings = np.ascontiguousarray(self.loadings.T)

    @classmethod
    def of(cls, subspace: Subspace, factors: Factors | None = None) -> Precision:
        """Return that of factors, or of a subspace with one noise variance for all channels."""
        known = uniform(subspace) if factors is None else factors
        return cls(known.loadings_of(subspace), known.noise)

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
