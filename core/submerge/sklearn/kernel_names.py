"""Kernels by the names that scikit-learn's users know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast, get_args

import numpy as np

from submerge._linalg import Array
from submerge.errors import UsageError, whole
from submerge.features import FeatureMap, Identity, RandomFourier, TensorSketch, kernels
from submerge.features.checks import MOST_FEATURES, is_number
from submerge.features.kernels import Kernel, Polynomial, kernel_called
from submerge.features.sparse import checked, is_sparse
from submerge.features.weights import Kind

ALIASES = {"rbf": "gaussian", "poly": "polynomial"}

NAMES = (*kernels.NAMES, *ALIASES)

METHODS = ("__call__", "pull", "diagonal", "settled_at", "auto", "spec")
"""Methods that a kernel has and a feature map lacks."""


def named_kernel(
    kernel: Any, *, gamma: Any = "auto", degree: int = 2, coef0: float = 0.0, nu: float = 1.5
) -> Kernel:
    """Return the kernel that an estimator's parameters name; UsageError for bad ones."""
    # A `Kernel` brings its own parameters; "auto" leaves gamma None, to be settled.
    automatic = isinstance(gamma, str) and gamma == "auto"
    # None would be ambiguous: in a kernel it means an open gamma, elsewhere a default.
    if not automatic and not (is_number(gamma) and gamma > 0):
        raise UsageError(f'gamma must be a positive number or "auto", got {gamma!r}')
    named = _of_name(kernel, degree=degree, coef0=coef0, nu=nu)
    if automatic:
        return named
    if named.gamma is not None:
        raise UsageError(f'gamma must be "auto" beside a kernel that has one, {named}, got {gamma}')
    return named.settled_at(float(gamma))


def _of_name(kernel: Any, *, degree: int, coef0: float, nu: float) -> Kernel:
    """Return the kernel of that name, or `kernel` itself if it is one."""
    if isinstance(kernel, str):
        name = ALIASES.get(kernel, kernel)
        if name in kernels.NAMES:
            return kernel_called(name, nu=nu, degree=degree, coef0=coef0)
    elif isinstance(kernel, type) and hasattr(kernel, "pull"):
        raise UsageError(f"kernel must be a value, {kernel.__name__}(), got the class itself")
    elif all(callable(getattr(kernel, method, None)) for method in METHODS):
        settled: Kernel = kernel
        return settled
    names = ", ".join(f'"{name}"' for name in NAMES)
    raise UsageError(f"kernel must be one of {names}, or a Kernel, got {kernel!r}")


AT_ONCE = 64  # rows whose features are held at once: features are far larger than rows


def random_features(kernel: Kernel, *, features: int, kind: Any, seed: int) -> FeatureMap:
    """Return so many random features for a kernel; a polynomial one has its own kind."""
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
