"""Feature maps from an estimator's parameters, and rows mapped by them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast, get_args

import numpy as np

from submerge._linalg import Array
from submerge.errors import UsageError, whole
from submerge.features import (
    FeatureMap,
    Identity,
    Kernel,
    Polynomial,
    RandomFourier,
    TensorSketch,
)
from submerge.features.checks import MOST_FEATURES
from submerge.features.sparse import checked, is_sparse
from submerge.features.weights import Kind

AT_ONCE = 64
"""Rows whose features are held at once: features are far larger than rows."""


def random_features(kernel: Kernel, *, features: int, kind: Any, seed: int) -> FeatureMap:
    """Return random features that approximate a kernel; polynomial ones have their own kind.

    Parameters
    ----------
    features : int
        An estimator's `n_random_features`.
    kind : str
        An estimator's `feature_map`.
    """
    if isinstance(kernel, Polynomial):
        whole("n_random_features", features, least=2, most=MOST_FEATURES)
        return TensorSketch(kernel, features, seed)
    return fourier_features(kernel, features=features, kind=kind, seed=seed)


def fourier_features(kernel: Kernel, *, features: int, kind: Any, seed: int) -> RandomFourier:
    """Return random features that approximate a radial kernel, see `random_features`."""
    whole("n_random_features", features, least=2, most=MOST_FEATURES)
    if kind not in get_args(Kind):
        kinds = ", ".join(f'"{each}"' for each in get_args(Kind))
        raise UsageError(f"feature_map must be one of {kinds}, got {kind!r}")
    return RandomFourier(kernel, features, cast(Kind, kind), seed)


def lifted(rows: Any, features: FeatureMap) -> Iterator[Array]:
    """Yield the features of rows (n, n_features), dense or sparse, a few at a time."""
    if isinstance(features, Identity):
        yield wide(rows)
        return
    rows = checked(rows)  # before scipy cuts them
    for start in range(0, rows.shape[0], AT_ONCE):
        yield features.lift(wide(rows[start : start + AT_ONCE]))


def wide(rows: Any) -> Any:
    """Return dense rows in float64, in which engines compute and check them fastest."""
    # Maps convert sparse rows themselves.
    return rows if is_sparse(rows) else rows.astype(np.float64, copy=False)
