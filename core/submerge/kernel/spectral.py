"""Spectral clustering of a fleet's rows: kernel scores that merge, then k-means in rounds.

If a kernel separates k clusters, they are k clouds on the k - 1 leading directions of the features'
covariance about their mean (Balcan, Liang, Song, Woodruff & Xie, KDD 2016). That is a `Subspace`:
nodes learn it, parents merge it. docs/jobs.md says how gamma is found, and what is not separated:
random features may give a row a negative degree, so there are no normal cuts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from submerge._linalg import Array
from submerge.errors import whole
from submerge.features import RandomFourier, sparse
from submerge.kernel.auto_gamma import auto_gamma
from submerge.pca.sapca import SAPCA
from submerge.pca.subspace import Subspace
from submerge.schema import Schema

FACTORS = (0.25, 1.0, 4.0)  # gammas that are tried, over that of the kernel's own `auto`
SPARE = 10  # spare directions learnt beside those that are used
BLOCK = 256  # rows lifted at once: with 512 features one MiB


def maps_around(
    features: RandomFourier, spread: float, factors: Iterable[float] = FACTORS
) -> tuple[RandomFourier, ...]:
    """Return the maps to try: one if its gamma is settled, or one for each factor."""
    if features.settled:
        return (features,)
    gamma = auto_gamma(features.kernel, spread)
    return tuple(features.settled_at(gamma * factor) for factor in factors)


def summary_of(X: Any, schema: Schema, *, n_clusters: int) -> Subspace:
    """Return the summary of the features of rows X (n, channels), lifted in blocks."""
    rank = min(whole("n_clusters", n_clusters, least=1), schema.dim)
    engine = SAPCA(rank, oversample=SPARE, schema=schema)
    for features in _lifted(X, schema):
        engine.partial_fit(features)
    return engine.subspace


def eigengap(summary: Subspace, *, n_clusters: int) -> float:
    """Return the variance along the last direction used, less the next one's; 0 if not held."""
    # Gaps of different gammas compare: kernels that are 1 at distance 0 have the same trace.
    variance = np.append(summary.explained_variance, [0.0, 0.0])
    last = min(directions(n_clusters), summary.rank + 1)
    return float(variance[last - 1] - variance[last])


def directions(n_clusters: int) -> int:
    """Return how many directions separate that many clusters."""
    return max(1, n_clusters - 1)


def scores(X: Any, schema: Schema, summary: Subspace, *, n_clusters: int) -> Array:
    """Return rows X on the directions that are used, (n, n_clusters - 1); or zeros."""
    wanted = directions(n_clusters)
    basis = summary.basis[:, :wanted]
    found = np.zeros((X.shape[0], wanted))
    for i, features in enumerate(_lifted(X, schema)):
        found[i * BLOCK : (i + 1) * BLOCK, : basis.shape[1]] = (features - summary.mean) @ basis
    return found


def _lifted(X: Any, schema: Schema) -> Iterator[Array]:
    X = sparse.checked(X)
    # Scaling shifts rows, and zeros do not stay zero.
    as_it_is = sparse.is_sparse(X) and schema.scaling is None
    for start in range(0, X.shape[0], BLOCK):
        rows = X[start : start + BLOCK]
        if as_it_is:
            yield schema.features.lift(rows)
        else:
            yield schema.lift(rows.toarray() if sparse.is_sparse(rows) else rows)
