"""Engines for `StreamingPCA`: the rank that its parameter means, and one like another."""

from __future__ import annotations

from numbers import Integral
from typing import Any, cast

from submerge.errors import UsageError
from submerge.pca.rank import RankRule
from submerge.pca.sapca import SAPCA
from submerge.schema import Schema

MOST_COMPONENTS = 10
"""What `n_components=None` shows of wider data, as `SAPCA` does."""


def rank_of(n_components: Any, dim: int) -> int | RankRule:
    """Return the rank to show of `dim` features; the engine judges it."""
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
    """Return an engine with the same settings that has learnt nothing."""
    return SAPCA(
        engine.rule,
        oversample=engine.oversample,
        forgetting_factor=engine.forgetting_factor,
        block_size=engine.block_size,
        exact=engine.exact,
        dtype=engine.dtype,
        schema=schema,
    )
