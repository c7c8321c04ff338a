"""Bounds: whether every certificate holds, on the inputs of accuracy.py and on hard streams.

Each input goes every way: the exact and the low-rank engine, in float64 and float32, in calls
of several sizes, with forgetting, as 16 parts merged at once, as 64 children of a tree, and, at 64
columns or fewer, as whole scatters through three levels, each rounded to float32 and forgotten in
part. The truth is the scatter of all rows, computed densely. A certificate holds if the laws of
tests/support/checks.py do, to their tolerances: sigma never overstates, both bounds hold, weight,
mean and energy are exact, ||U'U - I|| <= 1e-12 (1e-5 in float32).

Exits with status 1 unless all hold. Slack of a bound: the spectral bound over what is missing from
an eigenvalue in truth, the median of the inputs on which something is.
"""

import gzip
import statistics
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import accuracy
import hard_streams
import measure
from report import Table, command
from submerge import SAPCA, MergeTree, Schema, Subspace, merge
from submerge.pca import whole_scatter
from submerge.pca.merging import merge_whole

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import checks, oracle

RANK = 10
KEPT = 15
ROWS = 3_000
FORGETTING = 0.999
PARTS, CHILDREN, GROUPS = 16, 64, 8
FADED = 0.9
DIMS = (48, 64, 200, 400)
BROKEN = "Certificates that do not hold"


class Input(NamedTuple):
    """A stream, and its name."""

    name: str
    rows: measure.Array


class Way(NamedTuple):
    """A way from rows to a summary, and how its truth weighs n rows.

    most : columns that it is for
    parts : how many summaries are merged on the way
    """

    learn: Callable[[measure.Array], Subspace | whole_scatter.WholeScatter]
    weights: Callable[[int], measure.Array] = np.ones
    parts: int = 0
    most: int = 10**6


class Margin(NamedTuple):
    """What one input gave on one way."""

    failed: str
    orthogonality: float
    slack: float | None


def engine(call: int, **options: object) -> Callable[[measure.Array], Subspace]:
    """Return what learns a stream with SAPCA in calls of one size."""

    def learn(rows: measure.Array) -> Subspace:
        sapca = SAPCA(RANK, **options)
        for first in range(0, len(rows), call):
            sapca.partial_fit(rows[first : first + call])
        return sapca.subspace

    return learn


def merged(rows: measure.Array) -> Subspace:
    """Merge parts of a stream, each of which an engine has learnt."""
    parts = [engine(50)(block) for block in np.array_split(rows, PARTS)]
    return merge(*parts, rank=KEPT)


def tree(rows: measure.Array) -> Subspace:
    """Merge children in a tree."""
    schema = Schema.anonymous(rows.shape[1])
    root = MergeTree(rank=KEPT)
    for child, block in enumerate(np.array_split(rows, CHILDREN)):
        root[f"child-{child}"] = Subspace.of(block, schema, rank=KEPT)
    return root.root()


def three_levels(rows: measure.Array) -> whole_scatter.WholeScatter:
    """Merge whole scatters: of the children, of groups that forgot, and of all."""
    schema = Schema.anonymous(rows.shape[1])
    children = [
        whole_scatter.WholeScatter.of(Subspace.of(block, schema, rank=rows.shape[1])).rounded()
        for block in np.array_split(rows, CHILDREN)
    ]
    size = CHILDREN // GROUPS
    groups = [
        merge_whole(*children[first : first + size]).faded(FADED ** (first // size)).rounded()
        for first in range(0, CHILDREN, size)
    ]
    half = GROUPS // 2
    halves = [merge_whole(*part).rounded() for part in (groups[:half], groups[half:])]
    return merge_whole(*halves)


def of_groups(n: int) -> measure.Array:
    """Return the weights that `three_levels` gives to n rows."""
    sizes = [len(part) for part in np.array_split(np.empty(n), CHILDREN)]
    return np.repeat(FADED ** (np.arange(CHILDREN) // (CHILDREN // GROUPS)), sizes)


def decayed(n: int) -> measure.Array:
    """Return the weights of n rows under forgetting."""
    return oracle.decay(n, FORGETTING)


FORGETFUL = {"forgetting_factor": FORGETTING}
WAYS: dict[str, Way] = {
    **{f"default, calls of {call}": Way(engine(call)) for call in (1, 50, 500)},
    "default, float32": Way(engine(50, dtype=np.float32)),
    "default, forgetting": Way(engine(50, **FORGETFUL), decayed),
    "low rank, calls of 50": Way(engine(50, exact="never")),
    "low rank, blocks of 200": Way(engine(500, exact="never", block_size=200)),
    "low rank, float32": Way(engine(50, exact="never", dtype=np.float32)),
    "low rank, forgetting": Way(engine(50, exact="never", **FORGETFUL), decayed),
    "low rank, no spares": Way(engine(50, exact="never", oversample=0)),
    f"{PARTS} parts merged": Way(merged, parts=PARTS),
    f"tree of {CHILDREN}": Way(tree, parts=2 * CHILDREN),
    "whole scatters, 3 levels": Way(three_levels, of_groups, 2 * CHILDREN, most=64),
}


def inputs(quick: bool) -> Iterator[Input]:
    """Yield the streams of accuracy.py, then the hard ones at several dimensions."""
    if measure.LIGHT.exists():
        with gzip.open(measure.LIGHT, "rt") as file:
            yield Input("Light", np.loadtxt(file)[: 2000 if quick else 7700])
    else:
        measure.say(f"bounds: no {measure.LIGHT}: Light left out (set SUBMERGE_DATA)")
    for alpha in accuracy.ALPHAS:
        yield Input(f"Synth({alpha:g})", measure.synth(4000, 400, alpha=alpha, seed=0))
    for dim in DIMS[:1] if quick else DIMS:
        for seed, (name, stream) in enumerate(hard_streams.STREAMS.items()):
            rows = stream(ROWS // (3 if quick else 1), dim, np.random.default_rng(seed))
            yield Input(f"{name}, d = {dim}", rows)


def margin(way: Way, rows: measure.Array, truth: oracle.Twin) -> Margin:
    """Hold what a way makes of rows against the truth."""
    found = way.learn(rows)
    # An engine learns 30 rows at once, or more; fewer only where rows wait.
    blocks = len(rows) // 30 + 1 + way.parts
    failed = ""
    try:
        if isinstance(found, whole_scatter.WholeScatter):
            checks.whole_never_overstates(found, truth, blocks=blocks)
        else:
            checks.never_overstates(found, truth, blocks=blocks)
    except AssertionError as error:
        failed = str(traceback.extract_tb(error.__traceback__)[-1].line)
    if isinstance(found, whole_scatter.WholeScatter):
        found = found.directions(KEPT)
    U = np.asarray(found.basis, dtype=np.float64)
    off = float(np.linalg.norm(U.T @ U - np.eye(found.rank), 2)) if found.rank else 0.0
    missing = truth.eigenvalues
    missing[: found.rank] -= found.sigma**2
    some = missing.max() > 1e-9 * max(truth.eigenvalues[0], 1e-300)
    return Margin(failed, off, found.spectral_bound / missing.max() if some else None)


def room(quick: bool) -> list[Table]:
    """Hold every input on every way."""
    found: dict[str, dict[str, Margin]] = {name: {} for name in WAYS}
    for item in measure.progress(inputs(quick), "bounds"):
        truths: dict[Callable[[int], measure.Array], oracle.Twin] = {}
        for name, way in WAYS.items():
            if item.rows.shape[1] > way.most:
                continue
            if way.weights not in truths:
                truths[way.weights] = oracle.twin(item.rows, way.weights(len(item.rows)))
            found[name][item.name] = margin(way, item.rows, truths[way.weights])
    summary = []
    for name, margins in found.items():
        held = sum(not each.failed for each in margins.values())
        slacks = [each.slack for each in margins.values() if each.slack is not None]
        slack = statistics.median(slacks) if slacks else None
        worst = max(margins, key=lambda item, m=margins: m[item].orthogonality)
        summary.append((name, len(margins), held, margins[worst].orthogonality, worst, slack))
    broken = [
        (name, item, each.failed)
        for name, margins in found.items()
        for item, each in margins.items()
        if each.failed
    ]
    return [
        Table(
            "Certificates by way",
            {
                "way": "",
                "inputs": "d",
                "held": "d",
                "worst ||U'U - I||": ".0e",
                "on": "",
                "slack of the bound": ".2f",
            },
            summary,
        ),
        Table(BROKEN, {"way": "", "input": "", "law": ""}, broken),
    ]


def all_hold(tables: list[Table]) -> bool:
    """Return whether no certificate is broken."""
    return not any(table.rows for table in tables if table.title == BROKEN)


if __name__ == "__main__":
    command(room, passes=all_hold)
