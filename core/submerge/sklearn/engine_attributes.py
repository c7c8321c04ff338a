"""The fitted attributes of `PCA`, computed from an engine and its schema when they are read."""

from __future__ import annotations

from numbers import Integral
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from submerge._linalg import Array, Storage
from submerge.errors import UsageError
from submerge.features import FeatureMap, Kernel
from submerge.pca.rank import RankRule
from submerge.pca.sapca import SAPCA
from submerge.pca.subspace import Subspace
from submerge.schema import Schema


class EngineAttributes:
    """Fitted attributes from an estimator's `engine_` and `schema_`; n_features is the engine's."""

    engine_: SAPCA
    schema_: Schema

    @property
    def components_(self) -> Storage:
        """(n_components_, n_features)."""
        return self._shown.basis.T.copy()

    @property
    def explained_variance_(self) -> Array:
        """(n_components_,)."""
        return np.asarray(self._shown.sigma**2 * self._per_sample)

    @property
    def explained_variance_ratio_(self) -> Array:
        """(n_components_,)."""
        shown = self._shown
        return np.asarray(shown.sigma**2 / shown.energy)

    @property
    def singular_values_(self) -> Array:
        """(n_components_,)."""
        return self._shown.sigma.copy()

    @property
    def mean_(self) -> Array:
        """(n_features,)."""
        return self._shown.mean.copy()

    @property
    def noise_variance_(self) -> float:
        """Average variance of the directions not shown; 0 if all are shown."""
        shown = self._shown
        # n rows have at most n directions, and the average is over those, as in `PCA`.
        hidden = min(shown.dim, self.n_samples_seen_) - shown.rank
        return shown.frobenius_bound * self._per_sample / hidden if hidden > 0 else 0.0

    @property
    def n_components_(self) -> int:
        """Number of components shown."""
        return self._shown.rank

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows ever learnt."""
        check_is_fitted(self)
        return self.engine_.n_samples_seen

    @property
    def feature_map_(self) -> FeatureMap:
        """The map from rows to features."""
        check_is_fitted(self)
        return self.schema_.features

    @property
    def kernel_(self) -> Kernel | None:
        """The kernel, with its gamma settled, or None."""
        return getattr(self.feature_map_, "kernel", None)

    @property
    def _shown(self) -> Subspace:
        check_is_fitted(self)
        return self.engine_.shown

    @property
    def _per_sample(self) -> float:
        """Factor from a sum of squares to a variance; 0 for a single sample."""
        freedom = self._shown.weight - (1.0 if self.engine_.center else 0.0)
        return 1 / freedom if freedom > 0 else 0.0


KERNEL_BLOCK = 64
"""Rows of features learnt at once."""

MOST_COMPONENTS = 10
"""Components for `n_components=None` of wider data, as in `SAPCA`."""


def rank_of(n_components: Any, dim: int) -> int | RankRule:
    """Return the rank to show of `dim` features; the engine checks it."""
    if n_components is None:
        return min(MOST_COMPONENTS, dim)
    if isinstance(n_components, Integral):
        return int(n_components)
    if callable(getattr(n_components, "next", None)):
        return cast(RankRule, n_components)
    raise UsageError(
        "n_components must be an int, None, or a rule such as EnergyRank(low, high),"
        f" got {n_components!r}"
    )


def empty_like(engine: SAPCA, schema: Schema) -> SAPCA:
    """Return an empty engine with the same settings."""
    return SAPCA(
        engine.rule,
        oversample=engine.oversample,
        forgetting_factor=engine.forgetting_factor,
        block_size=engine.block_size if engine._sized else None,
        exact=engine.exact,
        memory=engine.memory,
        dtype=engine.dtype,
        schema=schema,
    )


def new_engine(estimator: Any, schema: Schema) -> SAPCA:
    """Return an engine with an estimator's current parameters."""
    dtype, block = (np.float64, None) if schema.linear else (np.float32, KERNEL_BLOCK)
    return SAPCA(
        rank_of(estimator.n_components, schema.dim),
        oversample=estimator.oversample,
        forgetting_factor=estimator.forgetting_factor,
        block_size=block if estimator.block_size is None else estimator.block_size,
        exact=estimator.exact,
        memory=estimator.memory,
        dtype=dtype if estimator.dtype is None else estimator.dtype,
        schema=schema,
    )
