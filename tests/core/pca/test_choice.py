"""best_rank: what is held out of summaries is judged as its rows would be."""

from __future__ import annotations

import numpy as np

from submerge import Schema, Subspace
from submerge.pca.factor import factors_of
from support import oracle

DIM = 9
SCHEMA = Schema.anonymous(DIM)


def rows_of_rank(rank: int, n: int, rng: np.random.Generator, dim: int = DIM) -> np.ndarray:
    """Rows with `rank` common factors, and a noise of its own for each channel."""
    loadings = rng.standard_normal((rank, dim)) * 2
    noise = rng.uniform(0.2, 1.0, dim)
    return rng.standard_normal((n, rank)) @ loadings + rng.standard_normal((n, dim)) * noise + 3


def folds_of(X: np.ndarray, n: int, *, rank: int = DIM) -> list[Subspace]:
    schema = Schema.anonymous(X.shape[1])
    return [Subspace.of(part, schema, rank=rank) for part in np.array_split(X, n)]


def by_hand(parts: list[np.ndarray], most: int, *, own: bool) -> int:
    """The twin: dense covariances, and each row by itself."""
    found = []
    for rank in range(1, most + 1):
        values = []
        for i, held in enumerate(parts):
            others = [part for j, part in enumerate(parts) if j != i]
            if own:
                held, others = held - held.mean(axis=0), [x - x.mean(axis=0) for x in others]
            model = Subspace.of(np.vstack(others), SCHEMA, rank=rank)
            values.append(density(model, held))
        found.append(np.mean(values))
    return int(np.argmax(found)) + 1


def density(model: Subspace, rows: np.ndarray) -> float:
    factors = factors_of(model, model)
    assert factors is not None
    loadings = factors.loadings_of(model)
    covariance = loadings @ loadings.T + np.diag(factors.noise)
    return oracle.mean_log_density(rows, model.mean, covariance)
