"""Feeds rows to one SAPCA, or to a tree of them, and measures what comes of it.

Only learning is timed; scores for the picture, the offline optimum and the memory
measurement are taken outside of the clock.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from submerge import SAPCA, Array, MergeTree, Schema, Subspace, spe
from submerge.pca.missing import fill

Progress = Callable[[int], None]
Lift = Callable[[Array], Array]

MEASURED_BLOCKS = 40
"""Blocks that memory is measured over at a fixed rank: each needs what the others need."""


class Moment(NamedTuple):
    """A block as it was met: rows seen, its mean SPE before it was learnt, rank after."""

    rows: int
    surprise: float
    rank: int


@dataclass
class Leaf:
    """One engine and its diary.

    rows : (n, channels), gaps filled; what was learnt, or what that was lifted from
    """

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
) -> Leaf:
    """Learn `rows` block by block; with `watch`, keep a diary of errors and ranks.

    Parameters
    ----------
    lift : callable, optional
        From rows (n, channels) to what the engine learns, (n, dim): a block at a time, since
        features of all rows may be too many to hold.
    filler : SAPCA, optional
        Learns rows as they are beside it, and fills their gaps; by default the engine does.
    """
    leaf = Leaf(engine, rows)
    has_gaps = bool(np.isnan(rows).any())
    if has_gaps:
        leaf.rows = rows.copy()
    for start in range(0, len(rows), engine.block_size):
        block = leaf.rows[start : start + engine.block_size]
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
        engine.partial_fit(learnt)
        if has_gaps and filler is not None:
            filler.partial_fit(block)
        leaf.seconds += time.perf_counter() - began
        if watch:
            leaf.moments.append(Moment(start + len(block), surprise, engine.rank))
        progress(len(block))
    return leaf


def merged(leaves: list[Leaf], *, fan_in: int) -> tuple[Subspace, int, float]:
    """Merge the leaves in a tree: the root, the rank to show, and the seconds it took.

    Both are what the rules chose, not what a leaf's few rows had directions for.
    """
    rank = max(leaf.engine.target for leaf in leaves)
    tree = MergeTree(rank=rank + leaves[0].engine.oversample, fan_in=fan_in)
    began = time.perf_counter()
    for number, leaf in enumerate(leaves):
        tree[f"leaf-{number}"] = leaf.engine.subspace
    return tree.root(), rank, time.perf_counter() - began


def peak_bytes(rows: Array, make: Callable[[], SAPCA], lift: Lift | None = None) -> int:
    """Measure the memory of one estimator: all that it allocates, at its peak.

    A second engine learns the rows under tracemalloc and is read once: some blocks of
    them, or all where the rank may grow. What `lift` allocates is the estimator's, too.
    """
    engine = make()
    part = rows if engine.rule.adaptive else rows[: MEASURED_BLOCKS * engine.block_size]

    def learn() -> None:
        for start in range(0, len(part), engine.block_size):
            block = part[start : start + engine.block_size]
            engine.partial_fit(block if lift is None else lift(block))
        _ = engine.subspace

    return traced(learn).peak


def _first_guess(block: Array) -> Subspace:
    """What is normal before anything was learnt: the first block's own means."""
    there = ~np.isnan(block)
    counts = np.maximum(there.sum(axis=0), 1)
    mean = np.where(there, block, 0.0).sum(axis=0) / counts
    return replace(Subspace.empty(Schema.anonymous(block.shape[1])), mean=mean)


@dataclass(frozen=True, slots=True)
class Bytes:
    """Beside interpreter and libraries: still held when the work was done; at its peak."""

    rest: int
    peak: int


def traced(work: Callable[[], object]) -> Bytes:
    """Do `work`, and return the bytes that it took; what it returns is still held.

    NumPy's arrays and Python's objects count, LAPACK's work space does not. Where someone
    is tracing already the peak is theirs too, so we refuse: two cannot be told apart.
    """
    if tracemalloc.is_tracing():
        raise RuntimeError("tracemalloc is tracing already: two peaks cannot be told apart")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        held = work()
        rest, peak = tracemalloc.get_traced_memory()
        del held
        return Bytes(rest - before, peak - before)
    finally:
        tracemalloc.stop()
