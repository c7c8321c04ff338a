"""k-means in rounds: rows stay where they are, counts and sums travel, O(k d) numbers a node.

The sums of all nodes move the centers exactly as one machine with all rows would (Lloyd's step).
For the first centers, nodes cluster their own rows and the root clusters their centers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import ShapeError, UsageError, whole
from submerge.features.kernels import squared_distances
from submerge.kernel.spectral import eigengap
from submerge.pca.subspace import Subspace

ROUNDS = 300  # most steps
TOLERANCE = 1e-4  # share of the cost that a step must save for another to follow
SLICE = 1 << 16  # distances held at once: half a MiB


class UnitDraws(Protocol):
    """Draws numbers; any `numpy.random.Generator` does."""

    def random(self) -> float:
        """Return a number of [0, 1)."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterTally:
    """Weights (k,) and sums (k, d) of the rows nearest to each center, and their summed squares."""

    counts: Array
    sums: Array
    cost: float

    def __add__(self, other: ClusterTally) -> ClusterTally:
        return ClusterTally(
            self.counts + other.counts, self.sums + other.sums, self.cost + other.cost
        )

    @property
    def means(self) -> Array:
        """The mean of each, none of which is empty."""
        return np.asarray(self.sums / self.counts[:, None])

    def moved(self, centers: Array) -> Array:
        """Return the centers (k, d) after Lloyd's step; those without rows stay."""
        taken = self.counts > 0
        centers = centers.copy()
        centers[taken] = self.sums[taken] / self.counts[taken, None]
        return centers


def tally(rows: Array, centers: Array, weights: Array | None = None) -> ClusterTally:
    """Count and sum rows (n, d), each by its weight or once, by the nearest of centers (k, d)."""
    weights = np.ones(len(rows)) if weights is None else weights
    labels, distances = nearest(rows, centers)
    k = len(centers)
    counts: Any = np.bincount(labels, weights, minlength=k)
    weighted = rows * weights[:, None]
    sums = np.array([np.bincount(labels, column, minlength=k) for column in weighted.T]).T
    return ClusterTally(counts, sums.reshape(centers.shape), float(weights @ distances))


def nearest(rows: Array, centers: Array) -> tuple[npt.NDArray[np.intp], Array]:
    """Return for each row (n, d) the index of its nearest center, and the squared distance."""
    if rows.ndim != 2 or rows.shape[1] != centers.shape[1]:
        raise ShapeError("rows", expected=f"(n, {centers.shape[1]})", got=rows.shape)
    labels, distances = np.empty(len(rows), dtype=np.intp), np.empty(len(rows))
    step = SLICE // max(1, len(centers)) + 1
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        square = squared_distances(rows[part], centers)
        labels[part] = square.argmin(axis=1)
        distances[part] = square.min(axis=1)
    return labels, distances


def local_summary(
    rows: Array, k: int, rng: UnitDraws, weights: Array | None = None
) -> ClusterTally:
    """Return what a node sends before the first round: its own rows in at most k clusters."""
    k = min(k, len(rows))
    weights = np.ones(len(rows)) if weights is None else weights

    def tally_rows(centers: Array) -> ClusterTally:
        return tally(rows, centers, weights)

    return tally_rows(lloyd(tally_rows, seed_centers(rows, weights, k, rng)))


def group_tally(rows: Array, groups: npt.NDArray[np.intp], fewest: int) -> ClusterTally:
    """Return the tally of rows (n, d) by group, without small ones; cost: squares about means."""
    counts: Any = np.bincount(groups)
    taken = counts >= fewest
    sums = np.array([np.bincount(groups, column) for column in rows.T]).reshape(rows.shape[1], -1).T
    means = sums / np.maximum(counts, 1)[:, None]
    off = (rows - means[groups])[taken[groups]]
    return ClusterTally(counts[taken] * 1.0, sums[taken], float(np.square(off).sum()))


def initial_centers(
    summaries: Sequence[ClusterTally], k: int, rng: UnitDraws, *, n_init: int = 10
) -> Array:
    """Return centers (k, d) for the first round, by weighted k-means on `local_summary` centers."""
    if not summaries:
        raise UsageError("summaries must be of at least one node, got none")
    taken = [summary.counts > 0 for summary in summaries]
    weights = np.concatenate([s.counts[t] for s, t in zip(summaries, taken, strict=True)])
    sums = np.vstack([s.sums[t] for s, t in zip(summaries, taken, strict=True)])
    if whole("k", k, least=1) > len(sums):
        raise UsageError(f"k must be at most the {len(sums)} centers of all nodes, got {k}")
    points: Array = sums / weights[:, None]

    def tally_points(centers: Array) -> ClusterTally:
        return tally(points, centers, weights)

    best, least = points[:k], np.inf
    for _ in range(whole("n_init", n_init, least=1)):
        centers = lloyd(tally_points, seed_centers(points, weights, k, rng))
        cost = tally_points(centers).cost
        if cost < least:
            best, least = centers, cost
    return best


def lloyd(tally_all: Callable[[Array], ClusterTally], centers: Array) -> Array:
    """Return centers (k, d) after rounds of Lloyd's step over all rows, until one saves little."""
    before = np.inf
    for _ in range(ROUNDS):
        total = tally_all(centers)
        centers = total.moved(centers)
        if not before - total.cost > TOLERANCE * total.cost:
            break
        before = total.cost
    return centers


def sum_of(tallies: Iterable[ClusterTally]) -> ClusterTally:
    """Return the tally of all nodes' rows, to rounding in any order; UsageError if none."""
    parts = list(tallies)
    if not parts:
        raise UsageError("tallies must be of at least one node, got none")
    return reduce(ClusterTally.__add__, parts)


def seed_centers(rows: Array, weights: Array, k: int, rng: UnitDraws) -> Array:
    """Return k of the rows (n, d), far apart (k-means++; Arthur & Vassilvitskii, SODA 2007)."""
    chance: Any = weights
    centers = np.empty((k, rows.shape[1]))
    distance = np.full(len(rows), np.inf)
    for i in range(k):
        cumulated = np.cumsum(chance)
        # If every row is a center already, any row is used.
        total = cumulated[-1]
        drawn = np.searchsorted(cumulated, rng.random() * total, side="right") if total > 0 else i
        centers[i] = rows[min(int(drawn), len(rows) - 1)]
        distance = np.minimum(distance, squared_distances(rows, centers[i : i + 1])[:, 0])
        chance = weights * distance
    return centers


def spread(linear: Subspace) -> float:
    """Return tr C of the rows behind a summary of the linear readings; exact at any rank."""
    if not linear.weight > 0:
        raise UsageError("a spread needs at least one row, got a summary of none")
    return linear.energy / linear.weight


def widest(summaries: Sequence[Subspace], *, n_clusters: int) -> int:
    """Return the index of the summary with the widest eigengap; the first of equals."""
    return int(np.argmax([eigengap(each, n_clusters=n_clusters) for each in summaries]))
