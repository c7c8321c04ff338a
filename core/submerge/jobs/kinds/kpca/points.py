"""Points of a fleet: rows by weight, the smallest keys of all, and at most so many of one node.

A row's key is -log(u) / score (Efraimidis & Spirakis, IPL 2006; docs/jobs.md, "A row's key"): rows
are drawn without putting back, in proportion to scores, whatever the tree. Keys go up first; only
rows which are points leave their nodes, and parents compute their keys again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import PeerError
from submerge.features import Kernel, Landmarks
from submerge.features.draws import logarithm
from submerge.jobs.arrays import Arrays, expect
from submerge.jobs.kind import PhaseDown
from submerge.jobs.points import MOST_HELD, draws, draws_at
from submerge.kernel.nystrom import chunks, outside_span

Whole = npt.NDArray[np.uint64]
Order = npt.NDArray[np.intp]

CUT = 1e-10
"""Residual, over the row's own k(x, x), from which on a row is worth being a point: less is
rounding."""

SLACK = 1e-8
"""By how much two machines may differ in a residual, over k(x, x)."""


class PointChoice(NamedTuple):
    """One choice of points, of the job's seed: `size` of them, at most `limit` of one node."""

    seed: int
    stage: int
    size: int
    limit: int

    def _stream(self, node: int) -> tuple[int, str, str]:
        return self.seed, f"{node:016x}", f"points {self.stage}"

    def keys(self, scores: Array, node: int) -> Array:
        """Return the keys (n,) of all rows of a node; infinite where the score is 0."""
        return _keys(draws(*self._stream(node), len(scores)), scores)

    def keys_at(self, scores: Array, node: int, rows: Whole) -> Array:
        """Return the keys (m,) of some rows of a node, by their numbers."""
        return _keys(draws_at(*self._stream(node), rows), scores)

    def smallest(self, keys: Array, most: int) -> Order:
        """Return which of a node's rows it offers, by ascending key."""
        order = np.argsort(keys, kind="stable")[: max(0, min(self.size, self.limit, most))]
        return order[np.isfinite(keys[order])]


def _keys(u: Array, scores: Array) -> Array:
    drawn = -logarithm(u)
    keys: Array = np.divide(drawn, scores, out=np.full(len(scores), np.inf), where=scores > 0)
    return keys


def limit_of(size: int, share: float, nodes: int) -> int:
    """Return how many points one node may supply: its share, or as many as each has to supply."""
    return max(1, math.ceil(max(share, 1 / nodes) * size))


def own_squares(rows: Array, kernel: Kernel) -> Array:
    """Return k(x, x) of rows (n, d)."""
    with np.errstate(over="ignore", invalid="ignore"):
        return kernel.diagonal(rows)


def residuals(rows: Array, points: Landmarks) -> Array:
    """Return squared distances (n,) of the rows' features from the span of points."""
    found = [np.empty(0)]
    with np.errstate(over="ignore", invalid="ignore"):
        # Implicit Gram-Schmidt: coordinates in an orthonormal basis are those of a `Landmarks` map.
        for part in chunks(rows):
            missed = outside_span(part, points.lift(part), points.kernel)
            missed[~(missed > CUT * points.kernel.diagonal(part))] = 0.0
            found.append(missed)
    return np.concatenate(found)


def merged_keys(keys: Sequence[Array], size: int) -> Array:
    """Return the smallest keys of all, ascending."""
    return np.sort(np.concatenate(keys), kind="stable")[:size]


def check_keys(up: Arrays, size: int, down: PhaseDown, clients: int) -> None:
    """Refuse what are no ascending, positive keys, or more than so many nodes may offer."""
    expect(up, {"keys": (None,)})
    keys = up["keys"]
    size = min(size, clients * int(down.arrays["limit"][0]))
    if len(keys) > size or not (keys > 0).all() or not (keys[:-1] <= keys[1:]).all():
        raise PeerError(f"expected at most {size} ascending, positive keys", kind="range")


def rows_up(node: int, rows: Array, numbers: Order) -> Arrays:
    """Return rows of a node as points, by ascending number."""
    numbers = np.sort(numbers)
    some = np.array([[node, len(numbers)]] if len(numbers) else np.empty((0, 2)), dtype=np.uint64)
    return {
        "nodes": some[:, 0].copy(),
        "supplied": some[:, 1].copy(),
        "rows": numbers.astype(np.uint64),
        "points": rows[numbers].astype(np.float32),
    }


def merged_rows(ups: Sequence[Arrays]) -> Arrays:
    """Return the points of several children, by node and number: the tree leaves no trace."""
    together = {name: np.concatenate([up[name] for up in ups]) for name in ups[0]}
    owner = np.repeat(together["nodes"], together["supplied"].astype(np.intp))
    order, of_nodes = np.lexsort((together["rows"], owner)), np.argsort(together["nodes"])
    return {
        "nodes": together["nodes"][of_nodes],
        "supplied": together["supplied"][of_nodes],
        "rows": together["rows"][order],
        "points": together["points"][order],
    }


def cut_rows(up: Arrays, choice: PointChoice, scores: Array) -> Arrays:
    """Return the rows with the smallest keys, if a node has supplied some that it did not offer."""
    if len(up["rows"]) <= choice.size:
        return up
    owner, keys = _owners(up), np.empty(len(scores))
    for node in up["nodes"].tolist():
        own = owner == node
        keys[own] = choice.keys_at(scores[own], node, up["rows"][own])
    kept = np.sort(np.argsort(keys, kind="stable")[: choice.size])
    nodes, supplied = np.unique(owner[kept], return_counts=True)
    rows = {"rows": up["rows"][kept], "points": up["points"][kept]}
    return {"nodes": nodes, "supplied": supplied.astype(np.uint64), **rows}


def _owners(up: Arrays) -> Whole:
    """Return whose each row is: (m,)."""
    return np.repeat(up["nodes"], up["supplied"].astype(np.intp))


def check_rows(up: Arrays, width: int, choice: PointChoice) -> None:
    """Refuse what no child sends as points: too many, of one node or in all, or one twice."""
    n = len(up["nodes"]) if "nodes" in up and up["nodes"].ndim == 1 else 0
    m = len(up["rows"]) if "rows" in up and up["rows"].ndim == 1 else 0
    shapes = {"nodes": (n,), "supplied": (n,), "rows": (m,), "points": (m, width)}
    expect(up, shapes, single=("points",), whole=("nodes", "supplied", "rows"))
    supplied, nodes = up["supplied"], up["nodes"]
    if m > choice.size or n > m or (supplied > choice.limit).any() or int(supplied.sum()) != m:
        raise PeerError(f"a node supplies at most {choice.limit} points", kind="range")
    if not ((supplied > 0).all() and (nodes[:-1] < nodes[1:]).all()):
        raise PeerError("points are listed by node", kind="range")
    if not (up["rows"] < MOST_HELD).all():
        raise PeerError(f"a node holds at most {MOST_HELD} rows", kind="range")
    owner = _owners(up)
    if len(set(zip(owner.tolist(), up["rows"].tolist(), strict=True))) != m:
        raise PeerError("a row is a point once", kind="range")


def check_chosen(
    up: Arrays, choice: PointChoice, scores: Array, slack: Array, largest: float
) -> None:
    """Refuse a point whose key, computed again, is larger than the largest that was taken."""
    start = 0
    for node, supplied in zip(up["nodes"].tolist(), up["supplied"].tolist(), strict=True):
        part = slice(start, start + supplied)
        start += supplied
        # Another machine's scores may differ by `slack` (m,).
        keys = choice.keys_at(scores[part] + slack[part], node, up["rows"][part])
        if not (keys <= largest * (1 + SLACK)).all():
            raise PeerError("a point is not one that its key would choose", kind="range")
