"""Sparse rows: what an entry costs, what the width of the features costs, and how many are enough.

*Time.* Rows of 20,000 channels with 2 to 200 entries are lifted by each map. The time of a row is
fitted as a s + b D, with s its entries and D the features, by least squares of relative errors;
*worst residual* is the largest relative error of the fit. Time is processor time, the median of
some turns in which all sizes take part. Before each, the same rows are lifted untimed, because the
allocator returns a larger run's memory to the system and the next one would pay for its pages. Then
64 MiB of other memory are written: rows with few entries read few weights, and would find those of
the turn before in the cache, which rows with many cannot. A dense row is of the same channels, none
of them zero.

*Features.* K is the Gaussian kernel matrix of rows with gamma 1 / (2 tr C), lambda a share of the
number of rows, and the error is the largest |eigenvalue| of (K + lambda I)^-1/2 (Z - K)
(K + lambda I)^-1/2, the mean of a few seeds. *By the bound* is `features_for(share, eps)`. *Enough*
is the least power of two with a mean error of at most eps. Digits are images 2 and 5 of MNIST's
test set; without it (SUBMERGE_DATA), scikit-learn's.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits

import measure
from page import page
from report import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from submerge import UsageError
from submerge.features import (
    CountSketch,
    Gaussian,
    Landmarks,
    Polynomial,
    RandomFourier,
    TensorSketch,
    features_for,
)
from submerge.kernel.auto_gamma import spread_of
from support.mnist import digits

WIDE, GAMMA = 20_000, 0.01
ENTRIES = (2, 5, 10, 20, 50, 100, 200)
EPS = (0.5, 0.25)
MOST_LOG2 = 14
OTHER = np.zeros(64 << 17)
"""Twice the cache of the machine that the page is from."""


def csr(n: int, entries: int, *, dim: int = WIDE, seed: int = 0) -> sparse.csr_array:
    """Return n rows with so many normal entries each, at random places."""
    rng = np.random.default_rng([seed, entries])
    places = np.sort(np.array([rng.choice(dim, entries, replace=False) for _ in range(n)]), axis=1)
    values = rng.standard_normal(n * entries)
    return sparse.csr_array((values, places.ravel(), np.arange(n + 1) * entries), (n, dim))


def maps() -> dict[str, tuple[object, int]]:
    """Return each map, and its number of features."""
    points = csr(300, 20, seed=1).toarray()
    return {
        "orthogonal Fourier, D = 512": (RandomFourier(Gaussian(GAMMA), 512), 512),
        "CountSketch to 4096, then Fourier, D = 512": (CountSketch(Gaussian(GAMMA), 512), 512),
        "TensorSketch, degree 2, D = 512": (TensorSketch(Polynomial(2, GAMMA), 512), 512),
        "300 landmarks": (Landmarks(Gaussian(GAMMA), points), 300),
    }


def times(quick: bool) -> Table:
    """Fit the time of a row by its entries and the features."""
    n = 500 if quick else 2000
    rows = {entries: csr(n, entries) for entries in ENTRIES}
    dense = np.random.default_rng(0).standard_normal((20 if quick else 100, WIDE))
    table: list[tuple[object, ...]] = []
    for name, (map_, features) in measure.progress(maps().items(), "sparse rows: time"):
        lift: Callable = map_.lift
        runs = {
            str(entries): lambda X=X, lift=lift: measure.clocked(lift, lambda: _cold(lift, X)) / n
            for entries, X in rows.items()
        }
        lift(rows[2][:10])
        taken = measure.interleaved(runs, 3 if quick else 15)
        seconds = np.array([taken[str(entries)].median for entries in ENTRIES])
        design = np.column_stack([ENTRIES, np.full(len(ENTRIES), features)])
        (a, b), *_ = np.linalg.lstsq(design / seconds[:, None], np.ones(len(ENTRIES)), rcond=None)
        worst = np.abs(design @ (a, b) / seconds - 1).max()
        lift(dense[:2])
        wide = partial(_cold, lift, dense)
        whole = min(measure.clocked(lift, wide) for _ in range(2)) / len(dense)
        by_entries = [seconds[ENTRIES.index(s)] * 1e6 for s in (2, 20, 200)]
        table.append((name, a * 1e9, b * 1e9, 100 * worst, *by_entries, whole * 1e6))
    columns = {"map": "", "a, ns an entry": ".0f", "b, ns a feature": ".2f"}
    columns |= {"worst residual, %": ".1f"}
    columns |= {f"µs a row, {s} entries": ".1f" for s in (2, 20, 200)}
    columns |= {"dense row": ".0f"}
    return Table(f"Time of a row of {WIDE:,} channels, as a s + b D", columns, table)


def _cold(lift: Callable, X: object) -> tuple[object]:
    """Return the argument, after the allocator has its memory and other numbers the cache."""
    lift(X)
    np.add(OTHER, 1.0, out=OTHER)
    return (X,)


def enough(quick: bool) -> Table:
    """Compare the bound on features with what rows need."""
    n = 300 if quick else 1000
    name, rows = images()
    data = {name: rows[:n], f"sparse rows, {WIDE:,} channels, 20 entries": csr(n, 20)}
    table: list[tuple[object, ...]] = []
    for name, X in measure.progress(data.items(), "sparse rows: features"):
        gamma = Gaussian().auto(spread_of(X))
        K = Gaussian(gamma)(X, X)
        for share in (0.1, 0.01):
            root = whitening(K, share * len(K))
            found = [
                _errors(X, K, root, partial(RandomFourier, Gaussian(gamma), kind=kind), quick)
                for kind in ("fourier-pair", "orthogonal")
            ]
            for eps in EPS:
                needed = [next((D for D, e in each if e <= eps), None) for each in found]
                table.append((name, share, eps, features_for(share, eps), *needed))
    columns = {"rows": "", "lambda / n": "g", "eps": "g", "by the bound": "d"}
    return Table(
        "Features for an error of at most eps, relative to K + lambda I",
        columns | {"enough, independent": "d", "enough, orthogonal": "d"},
        table,
        f"A dash: more than {_sizes(quick)[-1]:,}, or than weights have room for.",
    )


def _sizes(quick: bool) -> list[int]:
    return [2**i for i in range(5, 11 if quick else MOST_LOG2 + 1)]


def whitening(K: np.ndarray, ridge: float) -> np.ndarray:
    """Return (K + ridge I)^-1/2."""
    values, V = np.linalg.eigh(K)
    return (V / np.sqrt(np.maximum(values, 0.0) + ridge)) @ V.T


def images() -> tuple[str, np.ndarray]:
    """Return MNIST's images of 2 and 5, or scikit-learn's digits, and what they are."""
    folder = measure.DATA / "mnist"
    if folder.exists():
        return "MNIST, 784 channels", digits(folder, 2, 5)
    return "scikit-learn's digits, 64 channels", load_digits().data / 16


def _errors(X: object, K: np.ndarray, root: np.ndarray, make: Callable, quick: bool) -> list:
    """Return numbers of features and their mean errors, until one is below the least eps."""
    found: list[tuple[int, float]] = []
    for D in _sizes(quick):
        errors = []
        for seed in range(2 if quick else 5):
            try:
                phi = make(D, seed=seed).lift(X).astype(np.float64)
            except UsageError:  # its weights are too many
                return found
            off = root @ (phi @ phi.T - K) @ root
            errors.append(np.abs(np.linalg.eigvalsh(off)).max())
        found.append((D, float(np.mean(errors))))
        if found[-1][1] <= min(EPS):
            break
    return found


def room(quick: bool) -> list[Table]:
    """Measure both."""
    return [times(quick), enough(quick)]


if __name__ == "__main__":
    page(room)
