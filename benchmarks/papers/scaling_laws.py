"""Scaling laws: rows a second and memory against d, r, nodes and depth, beside the model.

The model is that of *Federated PCA with Adaptive Rank Estimation* (Grammenos et al.,
arXiv:1907.08059v1): O(d k) operations a row and O(d k) memory at a node, one merge for each level
between a node and its root, and at an aggregator the models of its children. Exponents are slopes
of least squares in logarithms, over all of a sweep and over its upper half, where what does not
grow weighs less. `exact="never"` is the path whose cost the model states; by default fewer columns
than some 290 keep the whole scatter, O(d^2).

A cell whose memory would be over the budget of 256 MB, by the engine's own contract
(`pca/budget.py`) and the rows at hand, is refused before it is measured, and is shown so.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import measure
from papers.federated.fleet import OURS, WAYS, Stream, run
from papers.frame import Curve, Figure, Panel, command
from report import Table
from submerge import SAPCA, MergeTree, Schema, Subspace
from submerge.pca.budget import low_rank_bytes
from submerge.pca.ritz import block_rows

DIMS, QUICK_DIMS = (48, 200, 1000, 4000, 16_000, 64_000), (48, 200, 1000)
RANKS, QUICK_RANKS = (5, 10, 20, 40, 80, 160), (5, 10, 20)
NODES, QUICK_NODES = (4, 16, 64, 256, 1024, 4096), (4, 16)
FLEET, QUICK_FLEET = (2, 4, 8, 16, 32, 64), (2, 4)
DIM, RANK, SPARE = 1000, 10, 5
NODE_ROWS = 2000
"""Rows of each node of a fleet that grows."""

BUDGET = 256_000_000
"""Bytes that a cell may take."""

LEAST_SPAN = 3.0
"""How much x has to grow for a slope."""

REFUSED = "refused"


class Cell(NamedTuple):
    """One engine that learns.

    us_a_row, peak : processor time and bytes; None where it was refused
    expected, contract : bytes of all that the cell holds, and of the engine alone, beforehand
    """

    us_a_row: float | None
    peak: int | None
    expected: int
    contract: int


def learn(rows: measure.Array, rank: int) -> None:
    """Learn rows and read the subspace."""
    _ = SAPCA(rank, exact="never").partial_fit(rows).shown


def cell(dim: int, rank: int, repeats: int) -> Cell:
    """Measure an engine on Synth(1), or refuse to."""
    kept = min(rank + SPARE, dim)
    block = block_rows(dim, kept)
    n = block * max(3, min(40, 4_000_000 // (dim * block)))
    # A stream and a copy that is being made: what this room itself holds.
    contract = low_rank_bytes(dim, kept, block)
    expected = contract + 2 * 8 * n * dim
    if expected > BUDGET:
        return Cell(None, None, expected, contract)
    rows = measure.synth(n, dim, alpha=1.0, seed=dim)

    def seconds() -> float:
        engine = SAPCA(rank, exact="never").partial_fit(rows[:block])
        return measure.clocked(engine.partial_fit, lambda: (rows[block:],)) / (n - block)

    seconds()
    least = min(seconds() for _ in range(repeats))
    peak = measure.peak_bytes(partial(learn, rows[: 3 * block], rank))
    return Cell(1e6 * least, peak, expected, contract)


class Tree(NamedTuple):
    """A root of many children: microseconds from a new report to a model, and bytes."""

    us_an_update: float | None
    peak: int | None
    expected: int


def tree(children: int, updates: int) -> Tree:
    """Measure an aggregator's tree at d = 1000, each child replaced in turn; or refuse to."""
    kept = RANK + SPARE
    # A trie of random keys has n / ln 4 branches at fan-in 4, each with a model; a merge stacks
    # four models, twice.
    expected = round(8 * DIM * (kept + 2) * (children * (1 + 1 / np.log(4)) + 8))
    if expected > BUDGET:
        return Tree(None, None, expected)
    schema = Schema.anonymous(DIM)
    blocks = np.split(measure.synth(20 * 40, DIM, alpha=1.0, seed=0), 20)
    parts = [Subspace.of(block, schema, rank=kept) for block in blocks]
    made = MergeTree(rank=kept)

    def fill() -> None:
        for child in range(children):
            part = parts[child % len(parts)]
            made[f"child-{child}"] = replace(part, basis=part.basis.copy(), mean=part.mean.copy())
        made.root()

    peak = measure.peak_bytes(fill)
    began = measure.seconds()
    for i in range(updates):
        made[f"child-{i * 7 % children}"] = parts[i % len(parts)]
        made.root()
    return Tree(1e6 * (measure.seconds() - began) / updates, peak, expected)


def exponent(x: Sequence[float], y: Sequence[float | None], *, upper: bool = False) -> float | None:
    """Return the slope of log y over log x, of all points or the upper half of them.

    None where x grows less than threefold: noise would be most of it.
    """
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if b is not None]
    pairs = pairs[-max(2, -(-len(pairs) // 2)) :] if upper else pairs
    if len(pairs) < 2 or pairs[-1][0] < LEAST_SPAN * pairs[0][0]:
        return None
    return float(np.polyfit(*np.log(np.array(pairs)).T, 1)[0])


class Sweep(NamedTuple):
    """What was measured against one thing, and the exponent that the model has.

    contract : the bytes that `pca/budget.py` promises at each x, for memory
    """

    what: str
    against: str
    x: list[float]
    y: list[float | None]
    model: str
    contract: list[float | None] | None = None

    def law(self) -> tuple[object, ...]:
        """Return a row of the table of exponents."""
        known = [a for a, b in zip(self.x, self.y, strict=True) if b is not None]
        span = f"{known[0]:,.0f} to {known[-1]:,.0f}"
        fitted = exponent(self.x, self.y), exponent(self.x, self.y, upper=True)
        promised = None if self.contract is None else exponent(self.x, self.contract)
        return self.what, self.against, span, self.model, promised, *fitted

    def panel(self) -> Panel:
        """Return its curve, without what was refused."""
        known = [(a, b) for a, b in zip(self.x, self.y, strict=True) if b is not None]
        curve = Curve("submerge", [a for a, _ in known], [b for _, b in known])
        title = f"against {self.against}"
        return Panel(title, self.against, self.what, [curve], log_x=True, log_y=True)


def figure(quick: bool) -> Figure:
    """Measure all sweeps and the grid."""
    dims, ranks = (QUICK_DIMS, QUICK_RANKS) if quick else (DIMS, RANKS)
    repeats = 2 if quick else 3
    pairs = [(dim, rank) for dim in dims for rank in ranks if rank <= dim]
    cells = {pair: cell(*pair, repeats) for pair in measure.progress(pairs, "scaling: d and r")}
    numbers = QUICK_NODES if quick else NODES
    trees = {n: tree(n, 20 if quick else 200) for n in measure.progress(numbers, "scaling: nodes")}
    sweeps = [*_of_engines(cells, dims, ranks), *_of_trees(trees), *_of_fleets(quick)]
    return Figure(
        "scaling_laws",
        "Grammenos et al., arXiv:1907.08059v1: O(d k) a row, O(d k) memory",
        "Rows a second and memory against d, r, nodes and depth, with fitted exponents.",
        f"generated: Synth(1); d = {DIM} and r = {RANK} where they do not vary, k = r + {SPARE}",
        (
            "core/submerge/_linalg.py",
            "core/submerge/pca",
            "benchmarks/papers/federated/fleet.py",
            "benchmarks/papers/scaling_laws.py",
        ),
        [sweep.panel() for sweep in sweeps],
        [_laws(sweeps), _grid(cells, dims, ranks), _refused(trees)],
    )


def _of_engines(cells: dict, dims: Sequence[int], ranks: Sequence[int]) -> list[Sweep]:
    by_dim = [cells[dim, RANK] for dim in dims]
    by_rank = [cells[DIM, rank] for rank in ranks]
    xs = [float(dim) for dim in dims], [float(rank + SPARE) for rank in ranks]
    memory = [
        [None if each.peak is None else float(each.contract) for each in some]
        for some in (by_dim, by_rank)
    ]
    return [
        Sweep("µs a row", "d", xs[0], [each.us_a_row for each in by_dim], "1"),
        Sweep(
            "peak kB of a node", "d", xs[0], [_kilo(each.peak) for each in by_dim], "1", memory[0]
        ),
        Sweep("µs a row", "k", xs[1], [each.us_a_row for each in by_rank], "1"),
        Sweep(
            "peak kB of a node", "k", xs[1], [_kilo(each.peak) for each in by_rank], "1", memory[1]
        ),
    ]


def _of_trees(trees: dict[int, Tree]) -> list[Sweep]:
    x = [float(n) for n in trees]
    us = [each.us_an_update for each in trees.values()]
    kilo = [_kilo(each.peak) for each in trees.values()]
    return [
        Sweep("µs from report to model", "children", x, us, "0: levels, log n"),
        Sweep("kB of a root", "children", x, kilo, "1"),
    ]


def _of_fleets(quick: bool) -> list[Sweep]:
    """Return sweeps of fleets in which each node has as many rows, and a core.

    Nodes and merges take their mean: nodes learn one after another here, and the slowest is that
    of the busiest moment.
    """
    numbers, dim = (QUICK_FLEET, 400) if quick else (FLEET, DIM)
    rows = 200 if quick else NODE_ROWS
    ways, found = {OURS: WAYS[OURS]}, []
    for n in numbers:
        stream = Stream(n * rows, 1.0, dim, piece=rows // 2)
        found.append(run(stream, ways, (1, n))[OURS, n])
    x = [float(n) for n in numbers]
    depths = [float(np.log2(n)) for n in numbers]
    fleets = list(zip(numbers, depths, found, strict=True))
    paths = [1e6 * depth * each.merging / (n - 1) for n, depth, each in fleets]
    rates = [
        n * rows / (each.learning / n + path / 1e6)
        for (n, _, each), path in zip(fleets, paths, strict=True)
    ]
    return [
        Sweep("rows a second, a core for each node", "nodes", x, list(rates), "1"),
        Sweep("µs of merges up a binary tree", "depth", depths, list(paths), "1"),
    ]


def _kilo(count: int | None) -> float | None:
    return None if count is None else count / 1e3


def _laws(sweeps: list[Sweep]) -> Table:
    columns = {"what": "", "against": "", "from, to": "", "model": ""}
    columns |= {"contract": ".2f", "fitted": ".2f", "upper half": ".2f"}
    note = (
        "Contract: the slope of the bytes that `pca/budget.py` promises, over the same points. Its"
        " small matrices, 48 (k + b + 1)^2 bytes, grow as k^2: at d = 1000 they are half of it from"
        " k = 85 on. A span of less than threefold has no slope."
    )
    return Table("Exponents", columns, [sweep.law() for sweep in sweeps], note)


def _grid(cells: dict, dims: Sequence[int], ranks: Sequence[int]) -> Table:
    """Return rows a second and peak memory of all cells, with those that were refused."""

    def shown(dim: int, rank: int) -> str:
        found = cells.get((dim, rank))
        if found is None:
            return "r > d"
        if found.us_a_row is None:
            return f"{REFUSED}: {found.expected / 1e6:,.0f} MB"
        return f"{1e6 / found.us_a_row:,.0f} ({found.peak / 1e6:.1f})"

    rows = [(dim, *(shown(dim, rank) for rank in ranks)) for dim in dims]
    columns = {"d": ",d"} | {f"r = {rank}": "" for rank in ranks}
    note = f"One core. In brackets the traced peak of a node; the budget is {BUDGET / 1e6:.0f} MB."
    return Table('Rows a second (and peak MB), exact="never"', columns, rows, note)


def _refused(trees: dict[int, Tree]) -> Table:
    """Return what a root of so many children takes."""
    rows = [
        (n, each.us_an_update, _kilo(each.peak), each.expected / 1e3, REFUSED * (each.peak is None))
        for n, each in trees.items()
    ]
    columns = {"children": ",d", "µs from report to model": ",.0f", "peak kB": ",.0f"}
    columns |= {"expected kB": ",.0f", "": ""}
    return Table(f"A root of many children, d = {DIM}", columns, rows)


if __name__ == "__main__":
    command(figure)
