"""What the rooms measure with: clocks, memory, streams, the optimum, angles.

Rules: nothing here or in a room asserts a time; the work that is not compared
(copies of the stream, fresh arguments) stays outside the clock; contenders take
turns, so that a busy second hits them all.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np

import blas  # noqa: F401 (before numpy: it sets one thread)
from contest.streams import synth as synth
from contest.trial import peak_bytes as peak_bytes
from contest.trial import residual as residual
from contest.trial import tails as tails

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


def progress(steps: Iterable, label: str) -> Iterator:
    """Pass the steps on, drawing a bar on stderr between them; no thread of its own."""
    with click.progressbar(list(steps), label=f"{label:<32}", file=sys.stderr) as bar:
        yield from bar


def say(line: str) -> None:
    """Tell whoever watches; stdout is for tables."""
    click.echo(line, err=True)


def degrees(first: Array, second: Array) -> float:
    """Largest principal angle between two orthonormal bases of the same rank."""
    # By its sine: the cosine of a small angle has no digits left.
    sine = np.linalg.norm(second - first @ (first.T @ second), 2)
    return float(np.degrees(np.arcsin(min(1.0, sine))))
