"""What the rooms measure with: clocks, memory, streams, the optimum, angles.

Rules: nothing here or in a room asserts a time; the work that is not compared
(copies of the stream, fresh arguments) stays outside the clock; contenders take
turns, so that a busy second hits them all.
"""

import os
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from scipy import fft

import blas  # noqa: F401 (before numpy: it sets one thread)

Array = np.ndarray

DATA = Path(os.environ.get("SUBMERGE_DATA", Path(__file__).parents[2] / "shared" / "data"))
LIGHT = DATA / "motes" / "light.dat.gz"


class Timing(NamedTuple):
    """Seconds: the least, which other programs disturb least, and the median."""

    least: float
    median: float


def interleaved(
    runs: dict[str, Callable[[], float]], repeats: int, *, label: str = ""
) -> dict[str, Timing]:
    """Let each run tell its own seconds, `repeats` times, all of them in turn."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    turns = [(name, run) for _ in range(repeats) for name, run in runs.items()]
    for name, run in progress(turns, label) if label else turns:
        taken[name].append(run())
    return {name: Timing(min(s), statistics.median(s)) for name, s in taken.items()}


def seconds() -> float:
    """Return the processor time of this process, to take differences of.

    All contenders run on one thread, where that is the time on an idle machine; unlike the time
    on the wall, it does not count what other programs take.
    """
    return time.process_time()


def repeated(run: Callable[[], float], *, budget_s: float) -> Timing:
    """Let a run tell its own seconds, over and over, until it spent about `budget_s`."""
    taken = [run()]
    while sum(taken) < budget_s:
        taken.append(run())
    return Timing(min(taken), statistics.median(taken))


def clocked(call: Callable[..., object], fresh: Callable[[], tuple]) -> float:
    """Return the processor seconds that `call(*fresh())` takes, those of `fresh` left out."""
    arguments = fresh()
    start = seconds()
    call(*arguments)
    return seconds() - start


def peak_bytes(run: Callable[[], object]) -> int:
    """Return the most memory that `run` held at once; LAPACK's own is not seen."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        run()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def progress(steps: Iterable, label: str) -> Iterator:
    """Pass the steps on, drawing a bar on stderr between them; no thread of its own."""
    with click.progressbar(list(steps), label=f"{label:<32}", file=sys.stderr) as bar:
        yield from bar


def say(line: str) -> None:
    """Tell whoever watches; stdout is for tables."""
    click.echo(line, err=True)


def synth(n: int, dim: int, *, alpha: float, seed: int) -> Array:
    """Return n centered rows with covariance S diag(i^-alpha) S' (the paper's Synth).

    S is signs, a cosine transform and signs again: orthogonal, and O(dim log dim) a row
    where a random one is O(dim^2). No method here can tell: all are blind to rotations.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim))
    X *= np.arange(1, dim + 1) ** (-alpha / 2) * rng.choice([-1.0, 1.0], dim)
    X = fft.dct(X, norm="ortho", axis=1, overwrite_x=True)
    X *= rng.choice([-1.0, 1.0], dim)
    X -= X.mean(axis=0)
    return X


def residual(X: Array, basis: Array) -> float:
    """||X - X U U'||_F^2, for the error that is reported."""
    return float(sum(np.sum((part - part @ basis @ basis.T) ** 2) for part in _chunks(X)))


def tails(X: Array) -> Array:
    """Return what the best rank r misses, for r = 0, 1, ...: sums of squared singular values."""
    n, dim = X.shape
    values = np.linalg.eigvalsh(X @ X.T if n < dim else X.T @ X)
    return np.cumsum(np.maximum(values, 0.0))[::-1]


def degrees(first: Array, second: Array) -> float:
    """Largest principal angle between two orthonormal bases of the same rank."""
    # By its sine: the cosine of a small angle has no digits left.
    sine = np.linalg.norm(second - first @ (first.T @ second), 2)
    return float(np.degrees(np.arcsin(min(1.0, sine))))


def _chunks(X: Array) -> Iterator[Array]:
    for start in range(0, len(X), 1000):
        yield X[start : start + 1000]
