"""disKPCA: error over batch kernel PCA against the words that pass between servers and the root.

Balcan, Liang, Song, Woodruff & Xie, *Communication Efficient Distributed Kernel Principal Component
Analysis*, KDD 2016: the experiments of error against communication. Each curve goes over the number
of points. "Residual" is our default, "leverage first" the paper's way to choose; uniform points are
its two baselines: disLR finds the directions of all rows in the points' span, "batch" is kernel PCA
of the points alone. No server supplies more than a quarter of the points, as by default. The
paper's curves are not at hand as numbers, so they are left out.

A word is a number. Counted is all that each server sends and all that goes down to each of them,
until every server can project rows on the directions, as in the paper's formulas: k numbers a point
to each server, and for "batch" the points, too, which disLR has sent before. Our jobs send points
with the answer once more, which is not counted. Who wants the directions at the root alone saves
most with "batch": the table has both counts. Bars are the least and the most of the repeats.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import measure
from diskpca_rows import INSURANCE, MNIST, RANK, Batch, Data, data, dealt
from papers.frame import Curve, Figure, Panel, command
from report import Table
from submerge.jobs.arrays import Arrays
from submerge.jobs.kind import JobAnswer
from submerge.jobs.kinds.kpca.answer import map_of
from submerge.jobs.kinds.kpca.job import KernelPcaJob
from submerge.jobs.local_run import ALL_POINTS
from submerge.jobs.points import split

POINTS, SERVERS, SKETCH = (25, 50, 100, 200, 400), 20, 50
WAYS = {"residual": "residual", "leverage first": "leverage", "uniform + disLR": "uniform"}
"""Settings `sample` of the jobs, by name."""

ALONE, OURS = "uniform + batch", "residual"
BEFORE_PROJECTION = ("count", "keys-1", "points-1")
"""Rounds until uniform points are at the root, which is all that "batch" needs."""

DECADE = 10.0
"""From which error on a panel's axis is logarithmic."""

LEFT_OUT = ("generated, gaussian",)
"""In `benchmarks/diskpca.md`: leverage is even there, as in the digits."""


class Run(NamedTuple):
    """Words until the root has the directions, and until all servers do; error over batch."""

    to_root: float
    to_all: float
    error: float


class Counted(NamedTuple):
    """A job's answer, and words by phase: of all servers, both ways."""

    answer: Arrays
    words: dict[str, int]


def counted(settings: Mapping[str, Any], parts: Mapping[str, measure.Array]) -> Counted:
    """Run a job over servers that all talk to the root, and count what passes."""
    width = next(iter(parts.values())).shape[1]
    kind = KernelPcaJob(settings, width)
    points = {
        name: split(part, settings, name)._replace(may_share=ALL_POINTS)
        for name, part in parts.items()
    }
    memory: dict[str, Any] = dict.fromkeys(points)
    words: dict[str, int] = {}
    state, down = kind.first()
    while True:
        ups = []
        for name in sorted(points):
            memory[name], up = kind.contribute(memory[name], down, points[name], name)
            ups.append(up)
        words[down.phase] = len(points) * _words(down.arrays) + sum(_words(up) for up in ups)
        result = kind.next(state, down, kind.merge(down, ups))
        if isinstance(result, JobAnswer):
            return Counted(result.arrays, words)
        state, down = result


def _words(arrays: Arrays) -> int:
    return sum(each.size for each in arrays.values())


def runs(each: Data, batch: Batch, m: int, seed: int, servers: int) -> dict[str, Run]:
    """Return words and error over batch of every way, with m points."""
    parts, found = dealt(each.rows, servers, seed), {}
    common = {"components": RANK, "points": m, "center": False, "sketch": SKETCH, "readings": False}
    for name, way in WAYS.items():
        made = counted({**each.settings, **common, "sample": way, "seed": seed}, parts)
        points, axes = made.answer["points"].astype(np.float64), made.answer["axes"]
        words = sum(made.words.values())
        directions = servers * axes.size
        found[name] = Run(words, words + directions, batch.error(map_of(made.answer), axes))
        if way == "uniform":
            words = sum(made.words[phase] for phase in BEFORE_PROJECTION)
            to_all = words + directions + servers * points.size
            found[ALONE] = Run(words, to_all, batch.alone(points))
    return found


def figure(quick: bool) -> Figure:
    """Measure every way on all rows that are at hand."""
    points, repeats = (POINTS[1:3], 1) if quick else (POINTS, 5)
    servers = 5 if quick else SERVERS
    shown = [each for each in data() if each.name not in LEFT_OUT]
    panels, rows = [], []
    for each in measure.progress(shown, "dis_kpca"):
        batch = Batch(each.rows, each.kernel)
        found = [[runs(each, batch, m, s, servers) for s in range(repeats)] for m in points]
        curves = [_curve(name, [[run[name] for run in at] for at in found]) for name in found[0][0]]
        decades = max(max(curve.y) for curve in curves) > DECADE
        panels.append(
            Panel(each.name, "words", "error over batch", curves, log_x=True, log_y=decades)
        )
        for m, at in zip(points, found, strict=True):
            means = {name: Run(*np.mean([run[name] for run in at], axis=0)) for name in at[0]}
            rows += [(each.name, m, name, *mean) for name, mean in means.items()]
    return Figure(
        "dis_kpca",
        "Balcan et al., KDD 2016: error against communication",
        f"Error over batch kernel PCA against words, k = {RANK}, {servers} servers by a power law,"
        f" {', '.join(map(str, points))} points. Mean of {repeats} repeats.",
        _about(),
        ("core/submerge/jobs", "core/submerge/features", "benchmarks/plants/uneven.py"),
        panels,
        [_both_counts([tuple(map(_plain, row)) for row in rows])],
    )


def _both_counts(rows: list[tuple[object, ...]]) -> Table:
    """Return words until the root has the directions, and until all servers have them."""
    columns = {"rows, kernel": "", "points": "d", "way": ""}
    columns |= {
        "words, root alone": ",.0f",
        "words, all servers": ",.0f",
        "error over batch": ".4f",
    }
    return Table(
        "Words until the directions are known",
        columns,
        rows,
        'Without disLR ("batch") no point comes down before the end.',
    )


def _plain(value: object) -> object:
    return float(value) if isinstance(value, np.floating) else value


def _about() -> str:
    """Return what the rows are, and which are not here."""
    here = ["generated: plants/uneven.py, in place of CASP, which is not here"]
    here += ["insurance: CoIL 2000, training rows"] if INSURANCE.exists() else []
    here += ["small digits: scikit-learn's"]
    here += ["MNIST: test images of 2 and 5"] if MNIST.exists() else []
    missing = [path.name for path in (INSURANCE, MNIST) if not path.exists()]
    return "; ".join(here) + (f"; not here: {', '.join(missing)}" if missing else "")


def _curve(name: str, found: list[list[Run]]) -> Curve:
    """Return mean errors over mean words until all servers have the directions, with bars."""
    words, errors = (
        np.array([[getattr(run, what) for run in at] for at in found])
        for what in ("to_all", "error")
    )
    of = (errors.mean(axis=1), errors.min(axis=1), errors.max(axis=1))
    whose = "ours" if name == OURS else "theirs"
    return Curve(name, words.mean(axis=1).tolist(), *(each.tolist() for each in of), whose)


if __name__ == "__main__":
    command(figure)
