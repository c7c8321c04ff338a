"""disKPCA: kernel PCA by a fleet, from points that the fleet chooses.

The error is what k = 10 directions miss of the rows' features, about zero, over what the best k
miss: those of batch kernel PCA. "Uniform" takes points without regard to the rows. disLR then finds
the directions of all rows in the points' span; "batch" takes kernel PCA of the points alone.

Generated rows are those of `plants/uneven.py`. It was fixed before disKPCA ran on it, by the errors
of uniform points alone: each of them is within a factor of two of that on CASP.
"""

from collections.abc import Sequence

import numpy as np
from scipy.sparse.linalg import eigsh

import measure
from page import page
from plants.uneven import GAMMA, uneven
from report import Table
from submerge.features import Gaussian, Kernel, Landmarks, Polynomial

RANK = 10
POINTS = (50, 100, 200, 400)

CASP = {
    "polynomial 4": (31.0, 20.0, 5.4, 2.9),
    "gaussian": (1.138, 1.035, 1.005, 1.002),
}
"""What uniform points with disLR miss on CASP, over batch kernel PCA, by number of points."""


class Batch:
    """Batch kernel PCA of some rows: what all are held against.

    total, best : what the features have, and what the best directions miss of it
    """

    def __init__(self, X: measure.Array, kernel: Kernel, rank: int = RANK) -> None:
        self.X, self.kernel, self.rank = X, kernel, rank
        K = kernel(X, X)
        self.total = float(np.trace(K))
        self.best = self.total - float(eigsh(K, rank, return_eigenvectors=False).sum())

    def error(self, map_: Landmarks, axes: measure.Array) -> float:
        """Return what directions (m, k), in the coordinates of points, miss over the best."""
        return (self.total - float(np.square(map_.lift(self.X) @ axes).sum())) / self.best

    def pooled(self, points: measure.Array) -> float:
        """Return the error of the best directions in the span of points: disLR without a fleet."""
        map_ = Landmarks(self.kernel, points)
        coordinates = map_.lift(self.X)
        return self.error(map_, np.linalg.eigh(coordinates.T @ coordinates)[1][:, -self.rank :])

    def alone(self, points: measure.Array) -> float:
        """Return the error of kernel PCA of the points themselves."""
        map_ = Landmarks(self.kernel, points)
        coordinates = map_.lift(points)
        return self.error(map_, np.linalg.eigh(coordinates.T @ coordinates)[1][:, -self.rank :])


def kernels() -> dict[str, Kernel]:
    """Return the kernels that are tried on generated rows."""
    return {"polynomial 4": Polynomial(4, GAMMA), "gaussian": Gaussian(GAMMA)}


def uniform_errors(batch: Batch, m: int, repeats: int) -> Sequence[tuple[float, float]]:
    """Return errors with disLR and of the points alone, for uniform points of some seeds."""
    found = []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        points = batch.X[rng.choice(len(batch.X), m, replace=False)]
        found.append((batch.pooled(points), batch.alone(points)))
    return found


def on_uniform(quick: bool) -> Table:
    """Measure uniform points on generated rows, beside CASP."""
    rows, repeats = [], 3 if quick else 10
    X = uneven()
    for name, kernel in measure.progress(kernels().items(), "diskpca: uniform points"):
        batch = Batch(X, kernel)
        for m, theirs in zip(POINTS, CASP[name], strict=True):
            pooled, alone = np.mean(uniform_errors(batch, m, repeats), axis=0)
            rows.append((name, m, theirs, pooled, (pooled - 1) / (theirs - 1), alone))
    return Table(
        f"Uniform points: {len(X)} generated rows, k = {RANK}, error over batch kernel PCA",
        {
            "kernel": "",
            "points": "d",
            "CASP": ".3f",
            "here": ".3f",
            "excess here / CASP": ".2f",
            "of the points alone": ".2f",
        },
        rows,
        f"Mean of {repeats} repeats. The figures on CASP are given, not measured here.",
    )


def room(quick: bool) -> list[Table]:
    """Measure all."""
    return [on_uniform(quick)]


if __name__ == "__main__":
    page(room)
