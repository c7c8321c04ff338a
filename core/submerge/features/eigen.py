"""Solid: the eigenvectors of a kernel matrix that are more than rounding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from submerge._linalg import Array

CUT = 1e-10
"""Smallest eigenvalue, over the largest, that is divided by.

A kernel matrix carries rounding of 1e-16 of its size, and results are divided by the eigenvalue's
root: 1e-11 of the size is left."""


class Solid(NamedTuple):
    """Eigenvalues (r,) above the cut, ascending, and their eigenvectors (m, r)."""

    values: Array
    vectors: Array

    @classmethod
    def of(cls, K: Array) -> Solid:
        """Decompose a positive semi-definite matrix (m, m); one of zeros has none. O(m^3)."""
        values, vectors = np.linalg.eigh(K)
        solid = values > CUT * max(values[-1], 0.0)
        return cls(values[solid], vectors[:, solid])

    @property
    def roots(self) -> Array:
        """Return B (m, r) with B B' the pseudo-inverse."""
        return np.asarray(self.vectors / np.sqrt(self.values))
