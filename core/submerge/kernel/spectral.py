"""Spectral clustering of a fleet's rows: kernel scores that merge, then k-means in rounds.

k clusters that a kernel keeps apart are k clouds on k - 1 leading directions of the
features' covariance, about their mean. That covariance is a `Subspace`: nodes learn it,
parents merge it, and no row travels. What gamma keeps the clusters apart is not known
beforehand, so a few are learnt side by side, and the one with the widest eigengap counts.

    node   linear summary up, the root's spread gives gamma        `spread`, `maps_around`
    node   a summary for each gamma up, the root picks             `learnt`, `widest`
    node   scores of its own rows; rounds of counts and sums       `scores`, `kmeans_rounds`

Normal cuts are not taken: random features may give a row a negative degree. Hence the
limit of this way: clusters that touch, or differ in nothing but a long path between their
ends (two moons), are beyond it.

References
----------
Balcan, Liang, Song, Woodruff & Xie, Communication Efficient Distributed Kernel PCA, KDD 2016
(kernel PCA, then k-means); Rahimi & Recht, NIPS 2007 (the features).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from submerge._linalg import Array
from submerge.errors import UsageError, whole
from submerge.features import RandomFourier, sparse
from submerge.kernel.auto_gamma import auto_gamma
from submerge.pca.sapca import SAPCA
from submerge.pca.subspace import Subspace
from submerge.schema import Schema

FACTORS = (0.25, 1.0, 4.0)
"""What gamma is tried at, over that of the kernel's own `auto`."""

SPARE = 10
"""Directions learnt beside those that count."""

BLOCK = 256
"""Rows that are lifted at once: with 512 features one MiB."""


def spread(linear: Subspace) -> float:
    """Return tr C of the rows behind a summary of the linear readings; exact at any rank."""
    if not linear.weight > 0:
        raise UsageError("a spread needs at least one row, got a summary of none")
    return linear.energy / linear.weight


def maps_around(
    features: RandomFourier, spread: float, factors: Iterable[float] = FACTORS
) -> tuple[RandomFourier, ...]:
    """Return the maps to try: one if its gamma is settled, or one for each factor.

    Raises
    ------
    UsageError
        If the spread is no size: that of equal rows, or of rows whose squares overflow.
    """
    if features.settled:
        return (features,)
    gamma = auto_gamma(features.kernel, spread)
    return tuple(features.settled_at(gamma * factor) for factor in factors)


def learnt(X: Any, schema: Schema, *, n_clusters: int) -> Subspace:
    """Summarise the features of rows X (n, channels): what a node sends for one gamma.

    Rows may be sparse.

    O(dim (n_clusters + block)) memory: rows are lifted in blocks and dropped.
    """
    rank = min(whole("n_clusters", n_clusters, least=1), schema.dim)
    engine = SAPCA(rank, oversample=SPARE, schema=schema)
    for features in _lifted(X, schema):
        engine.partial_fit(features)
    return engine.subspace


def eigengap(summary: Subspace, *, n_clusters: int) -> float:
    """Return by how much the last direction that counts exceeds the first that does not.

    The k-th largest variance is that of noise if there are k clusters: 0 stands for one that
    is not held. Kernels that are 1 at distance 0 have one trace, so gaps of different gammas
    compare as they are.
    """
    variance = np.append(summary.explained_variance, [0.0, 0.0])
    last = min(directions(n_clusters), summary.rank + 1)
    return float(variance[last - 1] - variance[last])


def widest(summaries: Sequence[Subspace], *, n_clusters: int) -> int:
    """Return the index of the summary with the widest eigengap; the first of equals."""
    return int(np.argmax([eigengap(each, n_clusters=n_clusters) for each in summaries]))


def directions(n_clusters: int) -> int:
    """Return how many directions tell that many clusters apart."""
    return max(1, n_clusters - 1)


def scores(X: Any, schema: Schema, summary: Subspace, *, n_clusters: int) -> Array:
    """Return rows X (n, channels) on the directions that count, (n, n_clusters - 1).

    Rows may be sparse. Columns of zeros stand for directions that the data do not have.
    """
    wanted = directions(n_clusters)
    basis = summary.basis[:, :wanted]
    found = np.zeros((X.shape[0], wanted))
    for i, features in enumerate(_lifted(X, schema)):
        found[i * BLOCK : (i + 1) * BLOCK, : basis.shape[1]] = (features - summary.mean) @ basis
    return found


def _lifted(X: Any, schema: Schema) -> Iterator[Array]:
    """Yield the features of rows X (n, channels), a few at a time."""
    # Scaling shifts rows, and nothing of them stays zero.
    as_it_is = sparse.is_sparse(X) and schema.scaling is None
    for start in range(0, X.shape[0], BLOCK):
        rows = X[start : start + BLOCK]
        if as_it_is:
            yield schema.features.lift(rows)
        else:
            yield schema.lift(rows.toarray() if sparse.is_sparse(rows) else rows)
