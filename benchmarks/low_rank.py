"""The low-rank path: steps with a certificate against the eigenproblem of k + 30 rows, and rivals.

`block_size=45` solves the full eigenproblem of each block: what the low-rank path did before
`pca.ritz`. Without a block size, blocks are larger, and steps from the block before replace the
eigenproblem. Both run in turn in one process, as does scikit-learn's IncrementalPCA at blocks of
500 and 2000. Times are the process's own, so that other programs disturb them less. Excess is
||X - XUU'||^2 over the optimum at that rank, minus 1; the bound is `spectral_bound` over the first
eigenvalue that k directions cannot hold. Both are means over streams.

`python benchmarks/low_rank.py` prints both tables; `--quick` takes fewer rows, and at
most 1,000 columns in the second.
"""

import blas  # noqa: F401, I001 (before numpy: it sets one thread)

import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np
from sklearn.decomposition import IncrementalPCA

import measure
from report import Table, command
from submerge import SAPCA

RANK, KEPT = 10, 15
DIMS = (200, 400, 1000, 3000)
CALLS = {1: 1_000, 50: 4_000, 500: 4_000}
"""Rows of a call, and of a stream."""
SEEDS = {200: 12, 400: 12, 1000: 6, 3000: 3}
RIVAL_DIMS = {400: 8_000, 1000: 8_000, 10_000: 4_000}
WAYS: dict[str, dict[str, object]] = {
    "eigenproblem of 60": {"block_size": 45},
    "steps": {},
    "steps, float32": {"dtype": "float32"},
}


class Learner(Protocol):
    """What learns rows, and has a basis (dim, r)."""

    def partial_fit(self, X: measure.Array) -> object:
        """Learn rows (n, dim), which it may overwrite."""

    def basis(self) -> measure.Array:
        """Return orthonormal columns."""


class Ours:
    """An engine of the low-rank path."""

    def __init__(self, **options: object) -> None:
        self.engine = SAPCA(RANK, exact="never", **options)
        self.partial_fit = self.engine.partial_fit

    def basis(self) -> measure.Array:
        """Return the shown directions."""
        return self.engine.shown.basis.astype(np.float64)


class ScikitLearn:
    """IncrementalPCA, without the checks that a caller may skip."""

    def __init__(self) -> None:
        self._engine = IncrementalPCA(n_components=RANK)
        self.partial_fit = partial(self._engine.partial_fit, check_input=False)

    def basis(self) -> measure.Array:
        """Return the components as columns."""
        return self._engine.components_.T


def fed(learner: Learner, X: measure.Array, call: int) -> Learner:
    """Let a learner have a stream in calls of so many rows."""
    for first in range(0, len(X), call):
        learner.partial_fit(X[first : first + call])
    return learner


def seconds(make: Callable[[], Learner], X: measure.Array, call: int) -> float:
    """Return the process's own seconds a row of learning a stream, and of one reading."""
    rows = X.copy()
    start = time.process_time()
    fed(make(), rows, call).basis()
    return (time.process_time() - start) / len(X)


def errors(options: dict[str, object], dim: int, seeds: int) -> tuple[float, float]:
    """Return excess and bound, means over streams of 5,000 rows."""
    found = []
    for seed in range(seeds):
        X = measure.synth(5_000, dim, alpha=1.0, seed=seed)
        optimum, ours = measure.tails(X), Ours(**options)
        fed(ours, X, 500)
        left = optimum[KEPT] - optimum[KEPT + 1]
        excess = measure.residual(X, ours.basis()) / optimum[RANK] - 1
        found.append((excess, ours.engine.subspace.spectral_bound / left))
    excess, bound = np.mean(found, axis=0)
    return float(excess), float(bound)


def ways(quick: bool) -> Table:
    """Compare the ways to learn a block."""
    rows = []
    for dim in measure.progress(DIMS, "low rank: ways"):
        accuracy = {
            name: errors(options, dim, 1 if quick else SEEDS[dim]) for name, options in WAYS.items()
        }
        times: dict[str, list[float]] = {name: [] for name in WAYS}
        for call, n in CALLS.items():
            X = measure.synth(n // 4 if quick else n, dim, alpha=1.0, seed=dim)
            runs = {name: partial(seconds, partial(Ours, **o), X, call) for name, o in WAYS.items()}
            for name, timing in measure.interleaved(runs, 3 if quick else 9).items():
                times[name].append(timing.least)
        first = times["eigenproblem of 60"]
        for name, least in times.items():
            ratios = [old / new for old, new in zip(first, least, strict=True)]
            rows.append((dim, name, *(1e6 * t for t in least), *ratios, *accuracy[name]))
    return Table(
        "Ways to learn a block, r = 10, k = 15, calls of 1, 50 and 500 rows",
        {
            "d": "d",
            "way": "",
            **{f"µs/row, {call}": ".2f" for call in CALLS},
            **{f"times faster, {call}": ".2f" for call in CALLS},
            "excess": ".2e",
            "bound": ".2f",
        },
        rows,
    )


def against_rivals(quick: bool) -> Table:
    """Compare with IncrementalPCA, ours in calls of 500."""
    rows = []
    for dim, n in measure.progress(RIVAL_DIMS.items(), "low rank: rivals"):
        if quick and dim > 1000:
            continue
        X = measure.synth(n // 2 if quick else n, dim, alpha=1.0, seed=dim)
        optimum = measure.tails(X)[RANK]
        contenders: dict[str, tuple[Callable[[], Learner], int]] = {
            "submerge": (Ours, 500),
            "IncrementalPCA, 500": (ScikitLearn, 500),
            "IncrementalPCA, 2000": (ScikitLearn, 2000),
        }
        runs = {name: partial(seconds, make, X, call) for name, (make, call) in contenders.items()}
        times = measure.interleaved(runs, 2 if quick or dim > 1000 else 4)
        for name, (make, call) in contenders.items():
            basis = fed(make(), X.copy(), call).basis()
            excess = measure.residual(X, basis) / optimum - 1
            least = times[name].least
            rows.append((dim, name, least * 1e6, least / times["submerge"].least, excess))
    return Table(
        "Against scikit-learn, r = 10",
        {"d": "d", "learner": "", "µs/row": ".2f", "times submerge's": ".2f", "excess": ".2e"},
        rows,
    )


def room(quick: bool) -> list[Table]:
    """Measure both."""
    return [ways(quick), against_rivals(quick)]


if __name__ == "__main__":
    command(room)
