"""Narrow: merging many parts of few columns, and trees of a thousand such children.

With 16 parts of 15 directions there are more rows than the 64 columns. Peers get the parts and
compute mean, energy, directions and sigma as `merge` does: one by the SVD of the stacked rows, one
on the side of the columns, by the eigenvectors of the (d, d) scatter. Time is processor time, in
turn; a ratio is the median over the turns. Trees: one child is replaced, and the root's directions
are read after each update or after every hundred. A whole scatter is what a narrow group sends.
Memory is what the tree takes beside its children, by tracemalloc.
"""

import statistics
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import measure
from report import Table, command
from submerge import MergeTree, Schema, Subspace, merge
from submerge.pca import whole_scatter

DIM = 64
PARTS = (2, 4, 8, 16, 32, 64)
RANK = 15
CALLS_A_TURN = 5
ASKED_OF_MERGE = 1.2
ASKED_AT = 16  # parts
ASKED_UPDATES = {1: 2_000, 100: 10_000}
"""Updates between two reads, and the updates a second that are asked for."""

Result = tuple[measure.Array, measure.Array, float, measure.Array]
"""Mean, directions (rank, dim), energy and sigma."""


def stacked(parts: tuple[Subspace, ...]) -> tuple[measure.Array, measure.Array, float]:
    """Return the pooled mean, the rows to decompose and the pooled energy."""
    weights = np.array([part.weight for part in parts])
    means = np.stack([part.mean for part in parts])
    mean = weights @ means / weights.sum()
    between = np.sqrt(weights)[:, None] * (means - mean)
    rows = np.concatenate([*((part.basis * part.sigma).T for part in parts), between])
    energy = sum(part.energy for part in parts) + float(np.vdot(between, between))
    return mean, rows, energy


def by_svd(*parts: Subspace, rank: int) -> Result:
    """Merge by the SVD of the stacked rows."""
    mean, rows, energy = stacked(parts)
    _, sigma, right = np.linalg.svd(rows, full_matrices=False)
    return mean, right[:rank].copy(), energy, sigma[:rank]


def by_columns(*parts: Subspace, rank: int) -> Result:
    """Merge on the side of the columns: by the eigenvectors of the scatter."""
    mean, rows, energy = stacked(parts)
    lam, vectors = np.linalg.eigh(rows.T @ rows)
    return mean, vectors.T[::-1][:rank].copy(), energy, np.sqrt(lam[::-1][:rank])


def many(quick: bool) -> Table:
    """Time the merge of many parts."""
    ways: dict[str, Callable[..., object]] = {
        "merge": merge,
        "SVD": by_svd,
        "by columns": by_columns,
    }
    rows = []
    schema = Schema.anonymous(DIM)
    for count in measure.progress(PARTS, "narrow: many parts"):
        stream = measure.synth(100 * count, DIM, alpha=1.0, seed=count)
        parts = [Subspace.of(block, schema, rank=RANK) for block in np.split(stream, count)]
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(5 if quick else 40):
            for name, way in ways.items():
                once = partial(measure.clocked, partial(way, rank=RANK), lambda p=parts: tuple(p))
                taken[name].append(min(once() for _ in range(CALLS_A_TURN)))
        each = zip(*taken.values(), strict=True)
        ratios = [(ours / svd, ours / columns) for ours, svd, columns in each]
        of_svd, of_columns = map(statistics.median, zip(*ratios, strict=True))
        basis = merge(*parts, rank=RANK).basis
        angle = measure.degrees(by_svd(*parts, rank=RANK)[1].T, basis)
        asked = count == ASKED_AT
        met = "yes" if of_columns <= ASKED_OF_MERGE else "NO"
        rows.append(
            (
                count,
                *(1e6 * min(times) for times in taken.values()),
                of_svd,
                of_columns,
                ASKED_OF_MERGE if asked else None,
                met if asked else None,
                angle,
            )
        )
    return Table(
        f"Merge of many parts, d = {DIM}, k = {RANK}, µs",
        {
            "parts": "d",
            **dict.fromkeys(ways, ".0f"),
            "merge / SVD": ".2f",
            "merge / by columns": ".2f",
            "asked": ".1f",
            "met": "",
            "angle to SVD": ".0e",
        },
        rows,
        "The angle is in degrees, the largest.",
    )


def whole(block: measure.Array, schema: Schema) -> whole_scatter.WholeScatter:
    """Return a block's whole scatter, as it arrives from a child."""
    return whole_scatter.WholeScatter.of(Subspace.of(block, schema, rank=DIM)).rounded()


def read(tree: MergeTree) -> Subspace:
    """Return the leading directions of all children."""
    root = tree.root()
    return root if isinstance(root, Subspace) else root.directions(tree.rank)


def updates(quick: bool) -> Table:
    """Count the updates a second that a tree of many children takes."""
    children, different = 100 if quick else 1000, 40
    schema, rows = Schema.anonymous(DIM), []
    stream = measure.synth(100 * different, DIM, alpha=1.0, seed=0)
    kinds: dict[
        str, tuple[int, Callable[[measure.Array], Subspace | whole_scatter.WholeScatter]]
    ] = {f"{k} directions": (k, partial(Subspace.of, schema=schema, rank=k)) for k in (15, 20)}
    kinds["whole scatter"] = 17, partial(whole, schema=schema)
    for name, (k, summary) in measure.progress(kinds.items(), "narrow: trees"):
        parts = [summary(block) for block in np.split(stream, different)]
        tree = MergeTree(rank=k)

        def fill(tree: MergeTree = tree, parts: list = parts) -> None:
            for child in range(children):
                tree[f"child-{child}"] = parts[child % different]
            read(tree)

        megabytes = measure.peak_bytes(fill) / 1e6
        tail = _tail(tree)
        for every, asked in ASKED_UPDATES.items():
            rate = _rate(tree, parts, every, 0.2 if quick else 2.0)
            met = "yes" if rate >= asked else "NO"
            rows.append((name, every, rate, asked, met, megabytes, tail))
    return Table(
        f"MergeTree of {children} children, d = {DIM}: updates/s",
        {
            "children send": "",
            "updates a read": "d",
            "updates/s": ".0f",
            "asked": "d",
            "met": "",
            "MB": ".1f",
            "off": ".0e",
        },
        rows,
        "Off: the part of the energy by which the root's sigma squared differ from those of the"
        " merge of all children at once.",
    )


def _tail(tree: MergeTree) -> float:
    """Return how far the root's eigenvalues are from those of all children at once."""
    held = [tree[key] for key in tree]
    flat = tuple(part for each in held for part in each.parts)
    at_once, root = by_columns(*flat, rank=tree.rank)[3], read(tree)
    sigma = np.zeros(tree.rank)
    sigma[: root.rank] = root.sigma
    return float(np.abs(at_once**2 - sigma**2).sum() / root.energy)


def _turns(children: list[str]) -> Iterator[str]:
    """Yield keys so that all get a turn, in no order that a tree could like."""
    number = 0
    while True:
        # A stride without a common factor with the number of keys.
        yield children[number * 7 % len(children)]
        number += 1


def _rate(tree: MergeTree, parts: list, every: int, budget_s: float) -> float:
    """Replace children, one after another, and read after each `every`; return updates a second."""
    keys, done, start = _turns(list(tree)), 0, measure.seconds()
    while measure.seconds() < start + budget_s or done < every:
        for _ in range(every):
            tree[next(keys)] = parts[done % len(parts)]
            done += 1
        read(tree)
    return done / (measure.seconds() - start)


def room(quick: bool) -> list[Table]:
    """Measure both."""
    return [many(quick), updates(quick)]


if __name__ == "__main__":
    command(room)
