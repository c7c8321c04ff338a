"""Feeds rows to one SAPCA, or to a tree of them, and measures time, error and memory. Only learning
is timed: not scores for the picture, the offline optimum or memory measurements.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from submerge import SAPCA, Array, MergeTree, Schema, Subspace, spe
from submerge.pca.expectation import Guesses
from submerge.pca.missing import fill
from submerge_lab.replay.over_time import ErrorOverTime

Progress = Callable[[int], None]
Lift = Callable[[Array], Array]

MEASURED_BLOCKS = 40
"""Blocks for the memory measurement at a fixed rank: each needs as much as the others."""


class Moment(NamedTuple):
    """A block: rows so far, its mean squared prediction error before it was learnt, rank after."""

    rows: int
    surprise: float
    rank: int


@dataclass
class Leaf:
    """One engine and its record; `rows`: (n, channels), gaps filled, before features."""

    engine: SAPCA
    rows: Array
    seconds: float = 0.0
    filled: int = 0
    moments: list[Moment] = field(default_factory=list)


def stream(
    rows: Array,
    engine: SAPCA,
    *,
    watch: bool,
    progress: Progress,
    lift: Lift | None = None,
    filler: SAPCA | None = None,
    over_time: ErrorOverTime | None = None,
) -> Leaf:
    """Learn `rows` block by block; with `watch`, record errors and ranks."""
    # Rows are lifted to features a block at a time: all of them may need too much memory. A
    # `filler` learns rows as they are and fills their gaps; by default the engine does. `over_time`
    # gets each block as it was learnt, and the subspace after it.
    leaf = Leaf(engine, rows)
    mask = np.isnan(rows)
    has_gaps = bool(mask.any())
    step = engine.block_size
    if has_gaps:
        leaf.rows = rows.copy()
        # Rows with gaps wait for so many, where the engine learns what they are on average.
        step = engine.patience if lift is None else step
    for start in range(0, len(rows), step):
        block = leaf.rows[start : start + step]
        known = engine.shown if start and (watch or (has_gaps and filler is None)) else None
        if has_gaps:
            normal = filler.shown if start and filler is not None else known
            block[:], filled = fill(block, normal or _first_guess(block))
            leaf.filled += filled
        began = time.perf_counter()
        learnt = block if lift is None else lift(block)
        leaf.seconds += time.perf_counter() - began
        surprise = float(spe(learnt, known).mean()) if known and watch else float("nan")
        began = time.perf_counter()
        gaps = Guesses(mask[start : start + step]) if has_gaps and lift is None else None
        engine.partial_fit(learnt, gaps=gaps)
        if has_gaps and filler is not None:
            filler.partial_fit(block)
        leaf.seconds += time.perf_counter() - began
        if watch:
            leaf.moments.append(Moment(start + len(block), surprise, engine.rank))
        if over_time is not None:
            over_time.add(block)
            over_time.note(engine.shown)
        progress(len(block))
    if has_gaps and lift is None:
        leaf.rows, _ = fill(rows, engine.shown)
    return leaf


def merge_leaves(leaves: list[Leaf], *, fan_in: int) -> tuple[Subspace, int, float]:
    """Merge the leaves in a tree; return the root, the rank to show, and the seconds it took."""
    # The rank is what the rules chose, even if a leaf has too few rows for as many directions.
    rank = max(leaf.engine.target for leaf in leaves)
    tree = MergeTree(rank=rank + leaves[0].engine.oversample, fan_in=fan_in)
    began = time.perf_counter()
    for number, leaf in enumerate(leaves):
        tree[f"leaf-{number}"] = leaf.engine.subspace
    return tree.root(), rank, time.perf_counter() - began


def peak_bytes(rows: Array, make: Callable[[], SAPCA], lift: Lift | None = None) -> int:
    """Return the peak memory of one estimator."""
    # A second engine learns the rows under tracemalloc and is read once: some blocks of them, or
    # all if the rank may grow. What `lift` allocates counts too; LAPACK's work space does not. If
    # tracemalloc is tracing already this refuses: two peaks cannot be separated.
    if tracemalloc.is_tracing():
        raise RuntimeError("tracemalloc is tracing already: two peaks cannot be separated")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        engine = make()
        part = rows if engine.rule.adaptive else rows[: MEASURED_BLOCKS * engine.block_size]
        for start in range(0, len(part), engine.block_size):
            block = part[start : start + engine.block_size]
            engine.partial_fit(block if lift is None else lift(block))
        _ = engine.subspace
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def _first_guess(block: Array) -> Subspace:
    """Return a model for the first block's gaps: the block's means."""
    there = ~np.isnan(block)
    counts = np.maximum(there.sum(axis=0), 1)
    mean = np.where(there, block, 0.0).sum(axis=0) / counts
    return replace(Subspace.empty(Schema.anonymous(block.shape[1])), mean=mean)
