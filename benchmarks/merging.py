"""Merging: a pair of subspaces, a tree of a thousand, and what a tree's shape costs.

Pairs: submerge merges means, energy and bounds as well; the paper's Algorithms 2 and 4 and
gensim's merge have basis and sigma only. Trees: one child is updated, and the root is read after
each update or after every hundred. Shape: the figure is the angle between a tree's root and the
exact subspace of all the data, over many similar parts.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

import measure
import rivals
from as_printed import Factors, algorithm2
from report import Table, command
from submerge import MergeTree, Schema, Subspace, merge

FAN_INS = (2, 4, 8, 16, 32)


def algorithm4(one: Factors, two: Factors, rank: int, lam: tuple[float, float] = (1, 1)) -> Factors:
    """Merge by the SVD of both, side by side: the paper's Algorithm 4."""
    (U1, s1), (U2, s2) = one, two
    U, s, _ = np.linalg.svd(
        np.hstack([U1 * (lam[0] * s1), U2 * (lam[1] * s2)]), full_matrices=False
    )
    return U[:, :rank], s[:rank]


def by_gensim(one: Factors, two: Factors, rank: int) -> Factors:
    """Merge by gensim, which destroys its argument and drops the last 0.1 % of energy."""
    past = rivals.projection(*one, rank=rank)
    past.merge(rivals.projection(*two, rank=rank))
    return past.u, past.s


def pairs(quick: bool) -> Table:
    """Time the merge of two subspaces of k directions into k."""
    rows = []
    cases = [(dim, k) for dim in (48, 1000, 10_000) for k in (10, 15)]
    for dim, k in measure.progress(cases, "merging: pairs"):
        schema = Schema.anonymous(dim, center="none")
        halves = np.split(measure.synth(400, dim, alpha=1.0, seed=dim), 2)
        parts = [Subspace.of(half, schema, rank=k) for half in halves]
        factors = [(part.basis, part.sigma) for part in parts]
        peers: dict[str, Callable[..., Factors]] = {
            "Algorithm 2": algorithm2,
            "Algorithm 4": algorithm4,
            "gensim": by_gensim,
        }
        exact, _ = algorithm4(*factors, k)
        angles = [measure.degrees(exact, merge(*parts, rank=k).basis)]
        calls: dict[str, Callable[[], float]] = {
            "submerge": partial(measure.clocked, partial(merge, rank=k), lambda p=parts: tuple(p))
        }
        for name, peer in peers.items():
            fresh = partial(_copies, factors, k)
            basis, _ = peer(*fresh())
            angles.append(measure.degrees(exact[:, : basis.shape[1]], basis))
            calls[name] = partial(measure.clocked, peer, fresh)
        runs = {name: partial(_least_of_20, call) for name, call in calls.items()}
        times = measure.interleaved(runs, 3 if quick else 15)
        rows.append((dim, k, *(t.least * 1e6 for t in times.values()), max(angles)))
    return Table(
        "Pair merge, µs",
        {"d": "d", "k": "d"}
        | dict.fromkeys(("submerge", *peers), ".0f")
        | {"largest angle between them": ".0e"},
        rows,
        "Times are the shortest of some hundred calls, in turn. The angle, in degrees, shows that"
        " all four found the same subspace.",
    )


def updates(quick: bool) -> Table:
    """Count the updates a second that a tree of many children takes."""
    dim, children = 1000, 100 if quick else 1000
    schema = Schema.anonymous(dim)
    rows = []
    cases = [(k, fan_in) for k in (10, 15) for fan_in in FAN_INS]
    stream = measure.synth(60 * 40, dim, alpha=1.0, seed=0)
    for k, fan_in in measure.progress(cases, "merging: updates"):
        parts = [Subspace.of(block, schema, rank=k) for block in np.split(stream, 40)]
        tree = MergeTree(rank=k, fan_in=fan_in)
        for child in range(children):
            tree[f"child-{child}"] = parts[child % len(parts)]
        start = measure.seconds()
        tree.root()
        first = measure.seconds() - start
        budget_s = 0.1 if quick else 0.7
        rates = [_updates_per_s(tree, parts, every, budget_s) for every in (1, 100)]
        rows.append((k, fan_in, *rates, first))
    return Table(
        f"MergeTree of {children} children, d = {dim}: updates/s",
        {
            "k": "d",
            "fan_in": "d",
            "read after each": ".0f",
            "read every 100": ".0f",
            "first root, s": ".2f",
        },
        rows,
        "The column first root is the time to merge all children, as after a restart.",
    )


def shapes(quick: bool) -> Table:
    """Measure what truncating at every node of a tree costs, by fan-in."""
    parts, rows_each, dim, rank = 200 if quick else 2000, 10, 48, 10
    schema = Schema.anonymous(dim)
    # Ten directions of decaying size over a floor, so that the exact answer is clear.
    scale = np.full(dim, 0.2)
    scale[:rank] = np.arange(1, rank + 1) ** -0.5
    found: dict[tuple[int, int], list[tuple[float, float]]] = {}
    cases = [(seed, spare) for seed in range(1 if quick else 3) for spare in (0, 4)]
    for seed, spare in measure.progress(cases, "merging: shapes"):
        rng = np.random.default_rng(seed)
        blocks = rng.standard_normal((parts, rows_each, dim)) * scale
        X = blocks.reshape(-1, dim) - blocks.mean(axis=(0, 1))
        exact = np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :rank]
        best = measure.residual(X, exact)
        subspaces = [Subspace.of(block, schema, rank=rank + spare) for block in blocks]
        for fan_in in FAN_INS:
            tree = MergeTree(rank=rank + spare, fan_in=fan_in)
            for child, subspace in enumerate(subspaces):
                tree[f"child-{child}"] = subspace
            basis = tree.root().truncated(rank).basis
            excess = measure.residual(X, basis) / best - 1
            found.setdefault((spare, fan_in), []).append((measure.degrees(exact, basis), excess))
    return Table(
        f"Tree of {parts} parts (d = {dim}, r = {rank}), root against exact",
        {"spare": "d", "fan_in": "d", "largest angle": ".3f", "excess error": ".1e"},
        [(*case, *np.mean(figures, axis=0)) for case, figures in found.items()],
        f"Angles are in degrees, the mean of {len(cases) // 2} seeds. Spare directions are kept"
        f" beyond r, in parts and tree. A part summarises {rows_each} rows and loses nothing, so"
        " that any loss is the tree's. Where d <= fan_in (k + 1), branches hold whole scatters, and"
        " a tree loses nothing.",
    )


def _copies(factors: list[Factors], rank: int) -> tuple:
    """Fresh factors: gensim destroys what it is given."""
    return (*((U.copy(), s.copy()) for U, s in factors), rank)


def _least_of_20(call: Callable[[], float]) -> float:
    return min(call() for _ in range(20))


def _updates_per_s(tree: MergeTree, parts: list[Subspace], every: int, budget_s: float) -> float:
    """Replace children, one after another, and read the root after every so many."""
    keys = list(tree)
    done, start = 0, measure.seconds()
    while measure.seconds() < start + budget_s or done < every:
        for _ in range(every):
            # A stride without a common factor with the number of keys: all get a turn.
            tree[keys[done * 7 % len(keys)]] = parts[done % len(parts)]
            done += 1
        tree.root()
    return done / (measure.seconds() - start)


def room(quick: bool) -> list[Table]:
    """Measure all three."""
    return [pairs(quick), updates(quick), shapes(quick)]


if __name__ == "__main__":
    command(room)
