"""Feature maps: what a row costs, what a sparse row's entry costs, what is lost.

- Time of lift and pullback, one block of 64 rows at a time, D = 512.
- Sparse rows of 20,000 channels, from sparse to eight times as dense: time for each entry.
- CountSketch, then orthogonal Fourier features, for very sparse rows: bias and error beside
  the map without the sketch.
- TensorSketch: how its error grows with the kernel's degree.
- Hadamard transforms, by the size of the small ones that they are products with.
- Projection-cost sketch: the rank-8 scores of the features, held against exact kernel PCA.

Weights are the same on every machine: `python tests/support/feature_hashes.py` tells.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler

import measure
from report import Table, command

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from submerge.features import (
    CountSketch,
    FeatureMap,
    Gaussian,
    Landmarks,
    Laplace,
    Matern,
    Polynomial,
    RandomFourier,
    TensorSketch,
    hadamard,
)
from support.kernels import centered, missed, optimum
from support.off_manifold import sound

D, BLOCK, RANK = 512, 64, 8
WIDE = 20_000


def room(quick: bool) -> list[Table]:
    """Measure all six."""
    budget_s = 0.05 if quick else 0.5
    return [
        dense(budget_s),
        entries(budget_s, 500 if quick else 2000),
        folded(4 if quick else 20),
        powers(10 if quick else 100),
        transforms(budget_s),
        projected(2 if quick else 10),
    ]


def dense(budget_s: float) -> Table:
    rng, rows = np.random.default_rng(0), []
    for name, channels, make in [
        ("orthogonal", 54, RandomFourier),
        ("orthogonal", 64, RandomFourier),
        ("orthogonal, far rows", 64, RandomFourier),
        ("orthogonal, Matern 3/2", 64, lambda k: RandomFourier(Matern(k.gamma))),
        ("orthogonal, Laplace", 64, lambda k: RandomFourier(Laplace(k.gamma))),
        ("fourier-pair", 64, lambda k: RandomFourier(k, kind="fourier-pair")),
        ("fourier-cos", 64, lambda k: RandomFourier(k, kind="fourier-cos")),
        ("quasi", 8, lambda k: RandomFourier(k, kind="quasi")),
        ("tensorsketch, degree 2", 64, lambda k: TensorSketch(Polynomial(2, k.gamma))),
        ("nystrom, 128 landmarks", 64, lambda k: Landmarks(k, rng.standard_normal((128, 64)))),
        ("orthogonal, matrix", 2047, RandomFourier),
        ("orthogonal, signs", 2048, RandomFourier),
        ("orthogonal, signs", WIDE, RandomFourier),
    ]:
        map_: FeatureMap = make(Gaussian(0.5 / channels))
        X = rng.standard_normal((BLOCK, channels)) * (100 if "far" in name else 1)
        V = rng.standard_normal((BLOCK, map_.dim(channels)))
        lift = _per(BLOCK, lambda map_=map_, X=X: map_.lift(X), budget_s)
        pullback = _per(BLOCK, lambda map_=map_, X=X, V=V: map_.pullback(X, V), budget_s)
        peak = measure.peak_bytes(lambda map_=map_, X=X: map_.lift(X)) / 1e3
        rows.append((name, channels, map_.dim(channels), 1e6 * lift, 1e6 * pullback, peak))
    X = rng.standard_normal((BLOCK, 64))
    sampler = RBFSampler(gamma=0.5 / 64, n_components=D, random_state=0).fit(X)
    peak = measure.peak_bytes(lambda: sampler.transform(X)) / 1e3
    lift = _per(BLOCK, lambda: sampler.transform(X), budget_s)
    rows.append(("scikit-learn's RBFSampler", 64, D, 1e6 * lift, None, peak))
    return Table(
        "A row's features",
        {
            "map": "",
            "channels": "d",
            "features": "d",
            "lift, us a row": ".2f",
            "pullback, us a row": ".2f",
            "peak of a block, kB": ".0f",
        },
        rows,
        f"Blocks of {BLOCK} rows, one thread, the least of many turns; the peak is what lifting"
        " allocates, its result included, weights not.",
    )


def entries(budget_s: float, n: int) -> Table:
    rng, rows = np.random.default_rng(0), []
    maps = [
        RandomFourier(Gaussian(0.5), D),
        CountSketch(Gaussian(0.5), D),
        TensorSketch(Polynomial(2, 0.5), D),
    ]
    for times in (1, 2, 4, 8):
        X = sparse.random_array((n, WIDE), density=times * 1e-3, rng=rng, format="csr")
        ns = [1e9 * _per(X.nnz, lambda map_=map_, X=X: map_.lift(X), budget_s) for map_ in maps]
        rows.append((times * 1e-3, times * WIDE // 1000, *ns))
    return Table(
        "An entry of a sparse row",
        {
            "density": ".3f",
            "entries a row": "d",
            "orthogonal, ns an entry": ".0f",
            "countsketch, ns an entry": ".0f",
            "tensorsketch, ns an entry": ".0f",
        },
        rows,
        f"{n} rows of {WIDE} channels, D = {D}. What a row costs whatever it holds, its cosines or"
        " transforms, is shared by its entries.",
    )


def folded(seeds: int) -> Table:
    rng, rows = np.random.default_rng(0), []
    kernel, pairs = Gaussian(0.5), np.triu_indices(60, 1)
    for filled in (4, 8, 20, 80):
        X = sparse.random_array((60, WIDE), density=filled / WIDE, rng=rng, format="csr")
        X = X / sparse.linalg.norm(X, axis=1).clip(1e-9)[:, None]
        K = kernel(X.toarray(), X.toarray())

        def errors(make: Callable[[int], FeatureMap], X=X, K=K) -> np.ndarray:
            lifted = (make(seed).lift(X) for seed in range(seeds))
            return np.array([(phi @ phi.T - K)[pairs] for phi in lifted])

        plain = errors(lambda seed: RandomFourier(kernel, D, seed=seed))
        sketched = errors(lambda seed: CountSketch(kernel, D, seed=seed))
        deviations = sketched.mean(axis=0) / (sketched.std(axis=0, ddof=1) / seeds**0.5)
        ratio = float(np.sqrt((sketched**2).mean() / (plain**2).mean()))
        bias = abs(float(sketched.mean())) / float(sketched.std())
        rows.append((filled, float(plain.std()), ratio, float((deviations**2).mean() ** 0.5), bias))
    return Table(
        "CountSketch, then Fourier features, for very sparse rows",
        {
            "entries a row": "d",
            "error without": ".4f",
            "error over that": ".2f",
            "mean, in its standard errors": ".2f",
            "bias, in errors": ".3f",
        },
        rows,
        f"Rows of length 1 in {WIDE} channels, 4096 buckets, D = {D}, {seeds} seeds; errors of the"
        " kernel between different rows. A mean of no bias is about 1 of its standard errors (a"
        " little more with few seeds). Asked: unbiased, and 1.5 times the error at most.",
    )


def powers(seeds: int) -> Table:
    rng, rows = np.random.default_rng(0), []
    X = rng.standard_normal((40, 64))
    X /= np.linalg.norm(X, axis=1)[:, None]
    pairs = np.triu_indices(len(X), 1)
    for degree in range(1, 7):
        kernel = Polynomial(degree, 1.0)
        K = kernel(X, X)
        lifted = (TensorSketch(kernel, D, seed).lift(X) for seed in range(seeds))
        off = np.array([phi @ phi.T - K for phi in lifted])
        apart = float(np.square(off[:, *pairs]).mean() ** 0.5)
        lengths = float(np.square(np.diagonal(off, axis1=1, axis2=2)).mean() ** 0.5)
        rows.append((degree, apart, lengths))
    return Table(
        "TensorSketch, by degree",
        {"degree": "d", "error between rows": ".4f", "error of a row's length, squared": ".4f"},
        rows,
        f"Rows of length 1 in 64 channels, K = <x, y>^degree, D = {D}, {seeds} seeds.",
    )


def transforms(budget_s: float) -> Table:
    rng, rows, usual = np.random.default_rng(0), [], hadamard.RADIX
    for p in (64, 1024, 1 << 15):
        X = rng.standard_normal(((1 << 18) // p, p))
        found = []
        for radix in (4, 8, 16, 32, 64):
            hadamard.RADIX = radix
            found.append(1e9 * _per(X.size, lambda X=X: hadamard.transform(X), budget_s))
        hadamard.RADIX = usual
        sums = 1e9 * _per(X.size, lambda X=X: hadamard.butterflies(X), budget_s)
        rows.append((p, *found, sums))
    return Table(
        "Hadamard transforms, ns a number",
        {
            "p": "d",
            **{f"products of {radix}": ".2f" for radix in (4, 8, 16, 32, 64)},
            "sums": ".2f",
        },
        rows,
        f"2 MiB of rows of p numbers. Features use products of {usual}; weights, which must be the"
        " same everywhere, sums.",
    )


def projected(seeds: int) -> Table:
    rows = []
    data = {
        "digits": load_digits().data,
        "room": sound(("light", "temperature"), seed=0, days=10)[::8],
    }
    for name, X in data.items():
        kernel = Gaussian(Gaussian().auto(float(X.var(axis=0).sum())))
        K = centered(kernel(X, X))
        best = optimum(K, RANK, center=False)
        for kind, features in [
            ("orthogonal", 512),
            ("orthogonal", 1024),
            ("fourier-pair", 1024),
            ("fourier-cos", 1024),
        ]:
            found = []
            for seed in range(seeds):
                phi = RandomFourier(kernel, features, kind, seed).lift(X)
                phi -= phi.mean(axis=0)
                U, sigma, _ = np.linalg.svd(phi, full_matrices=False)
                scores = U[:, :RANK] * sigma[:RANK]
                found.append(100 * (missed(K, scores, center=False) / best - 1))
            rows.append((name, len(X), kind, features, np.mean(found), max(found)))
    return Table(
        "Projection-cost sketch",
        {
            "data": "",
            "rows": "d",
            "map": "",
            "features": "d",
            "excess, %": ".2f",
            "its most, %": ".2f",
        },
        rows,
        f"Rank {RANK}, {seeds} seeds. What the scores' span misses of the exact centered kernel,"
        " over the optimum. Asked: 1.5 % at most with 1024 features.",
    )


def _per(count: int, run: Callable[[], object], budget_s: float) -> float:
    """Return the least seconds of a run, over `count`."""
    run()
    return measure.repeated(lambda: measure.clocked(run, tuple), budget_s=budget_s).least / count


if __name__ == "__main__":
    command(room)
