"""Rows that kernel PCA by a fleet is measured on, and batch kernel PCA of them.

Insurance (CoIL 2000) and MNIST's test digits are read from SUBMERGE_DATA (or ../shared/data beside
the repository) and left out where they are not; the small digits are scikit-learn's.
"""

import gzip
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import eigsh
from sklearn.datasets import load_digits

import measure
from plants.uneven import GAMMA, uneven

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from submerge.features import Gaussian, Kernel, Landmarks, Polynomial
from support.kernels import power_law
from support.mnist import digits

DATA = Path(os.environ.get("SUBMERGE_DATA", Path(__file__).parents[2] / "shared" / "data"))
INSURANCE, MNIST = DATA / "insurance_train.txt.gz", DATA / "mnist"

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


def uniform_errors(batch: Batch, m: int, repeats: int) -> Sequence[tuple[float, float]]:
    """Return errors with disLR and of the points alone, for uniform points of some seeds."""
    found = []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        points = batch.X[rng.choice(len(batch.X), m, replace=False)]
        found.append((batch.pooled(points), batch.alone(points)))
    return found


class Data(NamedTuple):
    """Rows, and the settings of a kernel for them.

    uneven : whether few rows hold most of the kernel
    """

    name: str
    rows: measure.Array
    settings: dict[str, Any]
    uneven: bool

    @property
    def kernel(self) -> Kernel:
        """The kernel that the settings name."""
        gamma = self.settings["gamma"]
        if self.settings["kernel"] == "polynomial":
            return Polynomial(self.settings["degree"], gamma)
        return Gaussian(gamma)


def data() -> Iterator[Data]:
    """Yield generated rows, and what is at hand of real ones."""
    polynomial = {"kernel": "polynomial", "degree": 4}
    yield Data("generated, polynomial 4", uneven(), {**polynomial, "gamma": GAMMA}, True)
    yield Data("generated, gaussian", uneven(), {"kernel": "gaussian", "gamma": GAMMA}, False)
    if INSURANCE.exists():
        with gzip.open(INSURANCE, "rt") as file:
            X = np.loadtxt(file)[:, :-1]
        gamma = Polynomial().auto(float(X.var(axis=0).sum()))
        yield Data("insurance, polynomial 4", X, {**polynomial, "gamma": gamma}, True)
    else:
        measure.say(f"diskpca: no {INSURANCE}: left out (set SUBMERGE_DATA)")
    X = load_digits().data / 16
    yield Data("small digits, gaussian", X, _gaussian(X), False)
    if MNIST.exists():
        X = digits(MNIST, 2, 5)
        yield Data("MNIST 2 and 5, gaussian", X, _gaussian(X), False)
    else:
        measure.say(f"diskpca: no {MNIST}: left out (set SUBMERGE_DATA)")


def _gaussian(X: measure.Array) -> dict[str, Any]:
    return {"kernel": "gaussian", "gamma": Gaussian().auto(float(X.var(axis=0).sum()))}


def dealt(X: measure.Array, servers: int, seed: int) -> dict[str, measure.Array]:
    """Return rows by server, the first of which has most."""
    parts = power_law(X, servers, np.random.default_rng(seed))
    return {f"server-{number:03}": part for number, part in enumerate(parts)}
