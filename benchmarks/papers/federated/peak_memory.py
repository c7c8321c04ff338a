"""Federated PCA, Table 1: memory of each method on the four sets of motes, over ten runs.

Grammenos, Mendoza-Smith, Mascolo & Crowcroft, *Federated PCA with Adaptive Rank Estimation*,
arXiv:1907.08059v1. Rank 10 (SAPCA and SPIRIT begin there), calls of 50 rows, mean removed first,
kB of 1000 bytes. All are measured above what was there before the method was made; rows are there
before. "Traced" is what NumPy and Python hold (tracemalloc): the most during each call and the
last reading of the basis, over all calls of all runs. "Resident" is by how much the peak of a
process of its own grows (VmHWM, Linux) in each run, after a warm-up: it sees LAPACK's work space
and the heap's slack, too, and counts pages of 4 kB. "Held" is what is left between calls.

Runs differ by the seed of a method that has one; of others the traced figures agree, and are of one
run. The paper's figures are of MATLAB's profiler, in which copies of arguments count. Its GROUSE
copies the whole set into a sparse matrix (C.3): 48 x 7,712 numbers are 2,892 kB of 1,024 bytes, and
2,897 is what it prints; 46 and 56 columns make 2,771 (2,773) and 3,374 (3,377). Its PM holds a
block of rows. Here all rivals change their d x r numbers in place, and the rows of a call are the
caller's. So they take less than SAPCA, which needs a block beside its directions for the QR and the
SVD. SAPCA itself takes 94 to 98 kB in the mean, where the paper prints 104 to 205.
"""

import gc
import multiprocessing
import os
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import measure
import memory
from as_printed import Algorithm3
from contest.contender import Contender, Submerge
from contest.trackers.frequent_directions import FrequentDirections
from contest.trackers.grouse import Grouse
from contest.trackers.power_method import PowerMethod
from contest.trackers.spirit import Spirit
from papers.federated.streams import SETS, Motes, described, motes
from papers.frame import Curve, Figure, Panel, command
from report import Table
from submerge import SapcaRank

RANK, BLOCK, RUNS = 10, 50, 10
PAPERS = {"block_size": BLOCK, "oversample": 0, "center": False, "exact": "never"}

ADAPTIVE = "SAPCA: submerge, the paper's settings"
FD, SPIRIT = "Frequent Directions, l = 2 r", "SPIRIT, lambda .9"
PRINTED_SETS = ("Humidity", "Light", "Volt", "Temperature")
PRINTED = {
    ADAPTIVE: ((138.11, 58.99), (104.00, 76.03), (204.58, 23.47), (187.74, 113.28)),
    "Power Method": ((905.45, 666.11), (685.48, 685.44), (649.12, 644.35), (657.57, 668.27)),
    "GROUSE": ((2896.61, 2896.62), (2896.84, 2896.62), (2772.86, 2772.62), (3379.62, 3376.62)),
    FD: ((162.70, 117.92), (170.48, 127.91), (114.46, 112.66), (196.11, 118.59)),
    SPIRIT: ((476.68, 405.01), (1009.03, 508.11), (348.84, 351.98), (541.56, 437.61)),
}
"""Mean and median of the paper's Table 1, kB."""


class Method(NamedTuple):
    """How a method is made from a seed, whose it is, and whether the seed matters."""

    make: Callable[[int], Contender]
    whose: str = "theirs"
    seeded: bool = False


METHODS: dict[str, Method] = {
    "submerge": Method(lambda _: Submerge(RANK), "ours"),
    'submerge, exact="never"': Method(lambda _: Submerge(RANK, exact="never"), "ours"),
    ADAPTIVE: Method(lambda _: Submerge(SapcaRank(RANK), **PAPERS), "ours"),
    "SPCA: submerge, the paper's settings": Method(lambda _: Submerge(RANK, **PAPERS), "ours"),
    "SPCA as printed": Method(lambda _: Algorithm3(RANK)),
    "Power Method": Method(lambda seed: PowerMethod(RANK, seed=seed), seeded=True),
    "Frequent Directions, l = r": Method(lambda _: FrequentDirections(RANK)),
    FD: Method(lambda _: FrequentDirections(RANK, 2 * RANK)),
    "GROUSE": Method(lambda seed: Grouse(RANK, seed=seed), seeded=True),
    SPIRIT: Method(lambda _: Spirit(RANK, forgetting=0.9)),
}


class Used(NamedTuple):
    """Bytes above those before: after the last call, and the most during each call."""

    rank: int
    held: int
    most: measure.Array


def traced(make: Callable[[], Contender], rows: measure.Array) -> Used:
    """Let a method learn rows in blocks; watch NumPy's arrays and Python's objects."""
    most = np.zeros(-(-len(rows) // BLOCK) + 1)
    _learn(make(), rows[: 4 * BLOCK].copy())  # what is made once is no part of it
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        method = make()
        for i in range(len(most) - 1):
            tracemalloc.reset_peak()
            method.partial_fit(rows[i * BLOCK : (i + 1) * BLOCK])
            most[i] = tracemalloc.get_traced_memory()[1] - before
        held = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.reset_peak()
        rank = method.basis().shape[1]
        most[-1] = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return Used(rank, held, most)


def resident(name: str, seed: int, rows: measure.Array) -> int:
    """Return by how many bytes the peak of this process grows; run it in one of its own."""
    make = partial(METHODS[name].make, seed)
    _learn(make(), rows[: 4 * BLOCK].copy())
    memory.give_back()
    before = memory.high_water_mark()
    _learn(make(), rows)
    return memory.high_water_mark() - before


def _learn(method: Contender, rows: measure.Array) -> None:
    for first in range(0, len(rows), BLOCK):
        method.partial_fit(rows[first : first + BLOCK])
    method.basis()


def figure(quick: bool) -> Figure:
    """Measure all methods on all sets."""
    sets = {name: motes(name, quick=quick) for name in SETS}
    runs = 2 if quick else RUNS
    # A process each, forked from a small one that has imported what they need: nothing that was
    # freed before hides growth, and each starts in a few hundredths of a second.
    context = multiprocessing.get_context("forkserver")
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # of the small one
    context.set_forkserver_preload(["papers.federated.peak_memory", "rich.table"])
    fresh = ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1)
    cases = measure.progress([(of, n) for of in sets for n in METHODS], "federated/peak_memory")
    with fresh:
        rows = [_row(of, sets[of], name, runs, fresh) for of, name in cases]
    return Figure(
        "federated/peak_memory",
        "Grammenos et al., arXiv:1907.08059v1: Table 1",
        f"Memory of each method at rank {RANK}, calls of {BLOCK} rows, {runs} runs, in kB.",
        described([*sets.values()]),
        (
            "core/submerge/_linalg.py",
            "core/submerge/pca",
            "benchmarks/contest",
            "benchmarks/as_printed.py",
            "benchmarks/memory.py",
            "benchmarks/papers/federated/peak_memory.py",
            "benchmarks/papers/federated/streams.py",
        ),
        [_panel(rows, [*sets.values()])],
        [_table(rows)],
    )


def _row(
    of: str, each: Motes, name: str, runs: int, fresh: ProcessPoolExecutor
) -> tuple[object, ...]:
    """Return one row of the table: traced here, resident in a new process for each run."""
    made = [partial(METHODS[name].make, seed) for seed in range(runs)]
    used = [traced(make, each.rows) for make in (made if METHODS[name].seeded else made[:1])]
    calls = np.concatenate([one.most for one in used]) / 1e3
    figures: list[float | None] = [calls.max(), calls.mean(), float(np.median(calls))]
    if memory.can_forget():
        grown = [fresh.submit(resident, name, seed, each.rows).result() for seed in range(runs)]
        kilo = np.array(grown) / 1e3
        figures += [kilo.max(), kilo.mean(), float(np.median(kilo))]
    else:
        figures += [None, None, None]
    held = float(np.median([one.held for one in used])) / 1e3
    return (
        each.title,
        name,
        used[-1].rank,
        held,
        *figures,
        *_printed(name, of),
    )


def _printed(name: str, of: str) -> tuple[float | None, float | None]:
    printed = dict(zip(PRINTED_SETS, PRINTED.get(name, ()), strict=False))
    return printed.get(of, (None, None))


def _panel(rows: list[tuple[object, ...]], sets: Sequence[Motes]) -> Panel:
    """Return a curve for each method, over the number of the set."""
    names = ", ".join(f"{i} {each.title}" for i, each in enumerate(sets, 1))
    x = [float(i) for i in range(1, len(sets) + 1)]
    curves = [
        Curve(name, x, [row[4] for row in rows if row[1] == name], whose=method.whose)
        for name, method in METHODS.items()
    ]
    return Panel("peak of traced allocations", f"set: {names}", "kB", curves, log_y=True)


def _table(rows: list[tuple[object, ...]]) -> Table:
    columns = {"set": "", "method": "", "rank at the end": "d", "held": ".0f"}
    columns |= {f"traced, {what}": ".0f" for what in ("peak", "mean", "median")}
    columns |= {f"resident, {what}": ".0f" for what in ("peak", "mean", "median")}
    columns |= {"printed, mean": ".0f", "printed, median": ".0f"}
    return Table("Memory above the start, kB", columns, rows, _smaller(rows))


def _smaller(rows: list[tuple[object, ...]]) -> str:
    """Say which methods take less than ours by default on every set."""
    peaks: dict[str, list] = {}
    for row in rows:
        peaks.setdefault(str(row[1]), []).append(row[4])
    ours = np.array(peaks["submerge"])
    less = [name for name, each in peaks.items() if (np.array(each) < ours).all()]
    return f"With a smaller traced peak than submerge on every set: {', '.join(less) or 'none'}."


if __name__ == "__main__":
    command(figure)
