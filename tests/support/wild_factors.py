"""Factors of models, as wild as a node has to believe them."""

from __future__ import annotations

from typing import Any

import numpy as np

from submerge.pca.factor import Factors
from submerge_proto.wire.forms import LARGEST, LEAST, STEEP


def wild_factors(rng: np.random.Generator, summary: Any) -> tuple[Factors, ...]:
    """The wildest that a model with this summary can have: steep, tiny and huge, copies in L."""
    found = []
    for part in () if summary is None else summary.parts:
        loadings = None
        if rng.random() < 0.6:
            k = int(rng.integers(1, part.dim + 1))
            loadings = rng.standard_normal((part.dim, k)) * rng.choice([0, 1e-18, 1, 1e25])
            loadings[:, k // 2 :] = loadings[:, : k - k // 2]
            loadings = loadings.astype(np.float32).astype(float)
        held = np.square(Factors(np.ones(1), loadings).loadings_of(part)).sum(axis=1)
        noise = 10.0 ** rng.uniform(-30, 20, part.dim)
        noise = np.maximum(noise if rng.random() < 0.5 else 0.0, 1.01 * held / STEEP)
        noise = np.clip(noise, 1.001 * LEAST, 0.999 * LARGEST)
        noise = noise.astype(np.float32).astype(float)
        if (held > STEEP * noise).any():
            return ()
        found.append(Factors(noise, loadings))
    return tuple(found)
