"""Rows that kernel PCA by a fleet is measured on, and batch kernel PCA of them."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import eigsh

import measure
from submerge.features import Gaussian, Kernel, Landmarks, Polynomial

RANK = 10


class Batch:
    """Batch kernel PCA of some rows: what all are held against.

    total, best : what the features have, and what the best directions miss of it
    """

    def __init__(self, X: measure.Array, kernel: Kernel, rank: int = RANK) -> None:
        self.X, self.kernel, self.rank = X, kernel, rank
        K = kernel(X, X)
        self.total = float(np.trace(K))
        self.best = self.total - float(eigsh(K, rank, return_eigenvectors=False).sum())

    def pooled(self, points: measure.Array) -> float:
        """Return the error of the best directions in the span of points: disLR without a fleet."""
        map_ = Landmarks(self.kernel, points)
        coordinates = map_.lift(self.X)
        return self.error(map_, np.linalg.eigh(coordinates.T @ coordinates)[1][:, -self.rank :])

    def error(self, map_: Landmarks, axes: measure.Array) -> float:
        """Return what directions (m, k), in the coordinates of points, miss over the best."""
        return (self.total - float(np.square(map_.lift(self.X) @ axes).sum())) / self.best


class Data(NamedTuple):
    """Rows, and the settings of a kernel for them."""

    name: str
    rows: measure.Array
    settings: dict[str, Any]

    @property
    def kernel(self) -> Kernel:
        """The kernel that the settings name."""
        gamma = self.settings["gamma"]
        if self.settings["kernel"] == "polynomial":
            return Polynomial(self.settings["degree"], gamma)
        return Gaussian(gamma)
