"""Kernel PCA: what random features and landmarks miss, and what a row costs.

Q is an orthonormal basis of the scores of all rows. Excess is how much more Q misses than exact
centered kernel PCA at the same rank, in percent: [tr(Kc) - tr(Q'Kc Q)] over the sum of Kc's
eigenvalues beyond r, minus 1. The digits are scikit-learn's; NY-KPCA on MNIST's is in the figures
of papers, `ny_kpca.py`. gamma is the width of a kernel, and l the number of directions.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import IncrementalPCA
from sklearn.kernel_approximation import RBFSampler

import measure
from page import page
from report import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from submerge import SAPCA, MergeTree
from submerge._linalg import inner
from submerge.features import Gaussian, RandomFourier
from submerge.kernel.auto_gamma import spread_of
from submerge.sklearn import NystromKPCA, StreamingPCA
from support import kernels

CLIENTS = 8
FLEET = {512: 1.2, 1024: 0.6}
"""Features, and the excess in percent that is allowed a fleet."""

BLOCK, RANK, SPARES, FEATURES = 64, 32, 5, 512
LESS_TIME, LESS_MEMORY = 4.0, 3.0
"""How many times less than scikit-learn's is asked of a row."""


class Exact:
    """Exact centered kernel PCA of some rows: what all are held against."""

    def __init__(self, X: measure.Array, gamma: float, rank: int) -> None:
        self.matrix = kernels.centered(Gaussian(gamma)(X, X))
        self.best = kernels.optimum(self.matrix, rank, center=False)

    def error(self, scores: measure.Array) -> float:
        """Return what scores (n, rank) miss, over what the best miss."""
        return kernels.missed(self.matrix, scores, center=False) / self.best

    def excess(self, scores: measure.Array) -> float:
        """Return the same in percent beyond the best."""
        return 100 * (self.error(scores) - 1)


def on_clusters(quick: bool) -> Table:
    """Measure choices of landmarks where some kinds of rows are rare."""
    rank, m, rows = 20, 80, []
    choices, seeds = ("uniform", "leverage", "residual"), 2 if quick else 10
    for deviation in measure.progress((0.3, 0.5, 0.7, 1.0), "kernel_pca: landmarks"):
        found: dict[str, list[float]] = {how: [] for how in choices}
        for seed in range(seeds):
            X = kernels.unbalanced(seed, deviation=deviation)
            exact = Exact(X, 1 / 16, rank)
            for how, excesses in found.items():
                model = NystromKPCA(
                    rank, gamma=1 / 16, n_landmarks=m, landmarks=how, random_state=seed
                )
                excesses.append(exact.excess(model.fit_transform(X)))
        worst = max(b / a for a, b in zip(found["uniform"], found["leverage"], strict=True))
        # Asked of the clusters that the acceptance names: those of deviation 0.5.
        asked = "at most 0.5" if deviation == 0.5 else "-"
        rows.append((deviation, *(np.mean(found[how]) for how in choices), worst, asked))
    return Table(
        f"Landmarks: 1940 + 6 x 10 points in R^8, gamma 1/16, l = {rank}, m = {m}, excess in %",
        {
            "deviation of clusters": "g",
            "uniform": ".1f",
            "leverage": ".1f",
            "residual": ".1f",
            "worst leverage / uniform": ".2f",
            "asked": "",
        },
        rows,
        f"Mean of {seeds} seeds. Where the large cluster is so wide that it alone"
        " needs all 20 directions (deviation 1), there is nothing rare worth finding.",
    )


def on_fleet(quick: bool) -> Table:
    """Measure a fleet of uneven clients against one engine, and both against exact."""
    X, rank, rows = load_digits().data / 16, 8, []
    gamma = Gaussian().auto(spread_of(X))
    exact = Exact(X, gamma, rank)
    seeds = range(3 if quick else 20)
    for features, allowed in measure.progress(FLEET.items(), "kernel_pca: fleet"):
        fleet, alone, optimum, rivals = [], [], [], []
        for seed in seeds:
            map_ = RandomFourier(Gaussian(gamma), features, "orthogonal", seed)
            parts, lifted = kernels.power_law(X, CLIENTS, np.random.default_rng(seed)), map_.lift(X)
            tree = MergeTree(rank=rank + SPARES)
            for i, part in enumerate(parts):
                tree[f"client {i}"] = engine(rank).partial_fit(map_.lift(part)).subspace
            root = tree.root().truncated(rank)
            fleet.append(exact.excess((lifted - root.mean) @ root.basis))
            one = engine(rank).partial_fit(map_.lift(np.concatenate(parts)))
            alone.append(exact.excess(one.transform(lifted)))
            off = lifted - lifted.mean(axis=0)
            optimum.append(exact.excess(np.linalg.svd(off, full_matrices=False)[0][:, :rank]))
            theirs = RBFSampler(gamma=gamma, n_components=features, random_state=seed)
            pca = IncrementalPCA(rank, batch_size=BLOCK)
            rivals.append(exact.excess(pca.fit_transform(theirs.fit_transform(X))))
        of = (np.mean(fleet), max(fleet), np.mean(alone), max(alone), np.mean(optimum))
        rows.append((features, *of, np.mean(rivals), allowed))
    return Table(
        f"Streaming kernel fleet: {CLIENTS} uneven clients in a MergeTree, digits, r = {rank},"
        " excess in %",
        {
            "features": "d",
            "fleet": ".2f",
            "its worst": ".2f",
            "one engine": ".2f",
            "worst": ".2f",
            "batch PCA of the features": ".2f",
            "RBFSampler + IncrementalPCA": ".2f",
            "asked, at most": "g",
        },
        rows,
        f"Orthogonal features of the Gaussian kernel, gamma {gamma:.4f} = 1 / (2 tr C);"
        f" clients of {' + '.join(str(len(p)) for p in parts)} rows; {len(seeds)} seeds."
        " What batch PCA of the same features misses is the map's own share.",
    )


def engine(rank: int) -> SAPCA:
    """Return what runs on a device, as KERNELS section 1 sets it."""
    return SAPCA(rank, oversample=SPARES, block_size=BLOCK, dtype=np.float32)


def on_cost(quick: bool) -> list[Table]:
    """Measure time and memory of a row, ours and scikit-learn's, in turns."""
    X = load_digits().data / 16
    gamma = Gaussian().auto(spread_of(X))
    rows = X[: 20 * BLOCK]
    blocks = np.split(rows, len(rows) // BLOCK)
    map_ = RandomFourier(Gaussian(gamma), FEATURES)
    sampler = RBFSampler(gamma=gamma, n_components=FEATURES, random_state=0).fit(X)

    def device() -> None:
        learning = engine(RANK)
        for block in blocks:
            learning.partial_fit(map_.lift(block))

    def estimator() -> None:
        learning = StreamingPCA(RANK, kernel="gaussian", gamma=gamma, n_random_features=FEATURES)
        for block in blocks:
            learning.partial_fit(block)

    def in_one_call() -> None:
        StreamingPCA(RANK, kernel="gaussian", gamma=gamma, n_random_features=FEATURES).fit(rows)

    def rival() -> None:
        learning = IncrementalPCA(RANK)
        for block in blocks:
            learning.partial_fit(sampler.transform(block))

    runs = {
        "RandomFourier + SAPCA": device,
        "StreamingPCA(kernel=...)": estimator,
        "the same, all rows in one call": in_one_call,
        "RBFSampler + IncrementalPCA": rival,
    }
    last, turns = list(runs)[-1], 5 if quick else 60
    for run in runs.values():
        run()
    clocked = {name: timed(run) for name, run in runs.items()}
    took = measure.interleaved(clocked, turns, label="kernel_pca: cost")
    peaks = {name: measure.peak_bytes(run) for name, run in runs.items()}
    load = os.getloadavg()[0]
    table = Table(
        f"A row's cost: digits (64 channels), D = {FEATURES}, r = {RANK}, blocks of {BLOCK}",
        {
            "": "",
            "µs/row": ".1f",
            "times less": ".2f",
            "asked": "g",
            "by medians": ".2f",
            "peak, kB": ".0f",
            "times below": ".2f",
            "asked, below": "g",
        },
        [
            (
                name,
                took[name].least / len(rows) * 1e6,
                took[last].least / took[name].least,
                None if name == last else LESS_TIME,
                took[last].median / took[name].median,
                peaks[name] / 1e3,
                peaks[last] / peaks[name],
                None if name == last else LESS_MEMORY,
            )
            for name in runs
        ],
        f"Least of {turns} turns of {len(blocks)} blocks each, load {load:.1f} when they ended; the"
        " maps' weights drawn before. Memory by tracemalloc, state and temporaries, weights left"
        " out. StreamingPCA adds scikit-learn's checks of each call, here of 64 rows.",
    )
    return [table, where_it_goes(map_, blocks[0], took[next(iter(runs))].least / len(rows), quick)]


def where_it_goes(map_: RandomFourier, block: measure.Array, whole: float, quick: bool) -> Table:
    """Measure the largest parts of a block's update, each by itself."""
    m = RANK + SPARES + BLOCK
    stack = np.random.default_rng(0).standard_normal((m, FEATURES)).astype(np.float32)
    gram = inner(stack)
    left = np.ones((RANK + SPARES, m), dtype=np.float32)
    steps = {
        f"eigenvectors of {m} x {m} numbers": lambda: np.linalg.eigh(gram),
        "their Gram matrix, in float64": lambda: inner(stack),
        "the new basis, in float32": lambda: left @ stack,
        "the map": lambda: map_.lift(block),
    }
    clocked = {name: timed(step) for name, step in steps.items()}
    took = measure.interleaved(clocked, 20 if quick else 300, label="kernel_pca: parts")
    spent = [(name, timing.least / BLOCK * 1e6) for name, timing in took.items()]
    rest = whole * 1e6 - sum(microseconds for _, microseconds in spent)
    return Table(
        "Where a row's time goes: RandomFourier + SAPCA",
        {"": "", "µs/row": ".1f"},
        [*spent, ("the rest", rest)],
    )


def timed(run: Callable[[], object]) -> Callable[[], float]:
    """Return what tells the seconds that a run takes."""

    def reported() -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    return reported


def room(quick: bool) -> list[Table]:
    """Measure all; first what takes time, while the machine is as it was found."""
    cost = on_cost(quick)
    return [on_clusters(quick), on_fleet(quick), *cost]


if __name__ == "__main__":
    page(room)
