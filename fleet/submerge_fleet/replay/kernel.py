"""What a replay does otherwise with a kernel: its gamma, its gaps, its figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from submerge import SAPCA, Array, FixedRank, RankRule, Subspace, UsageError
from submerge.errors import ValuesError
from submerge.features import FeatureMap
from submerge.judge.prepare import LARGEST_SCALED
from submerge.pca.subspace import LARGEST_SINGLE
from submerge.stats.moments import Moments, spread
from submerge_fleet.replay.kernel_excess import excess
from submerge_fleet.replay.settings import ReplaySettings

LOUD = 0.9
"""Of all distances, by one column: a kernel then sees that column alone."""

DRAWN = 0x67616D6D61
"""By which rows are drawn for the sample: any would do, and the same gives the same gamma."""


@dataclass(frozen=True)
class KernelFigures:
    """What is known of a kernel beside the figures of its features.

    Attributes
    ----------
    kernel : its name
    gamma : as given, or as settled for these rows
    features, map : how many, and of which kind
    excess : over exact kernel PCA of the rows, in percent; None where that misses nothing
    """

    kernel: str
    gamma: float
    features: int
    map: str
    excess: float | None


def settled(map_: FeatureMap, rows: Array) -> FeatureMap:
    """Return a map with gamma settled for rows (n, channels), as their root would settle it.

    By moments, and by a sample of rows; both are of rows without a gap, which are all that nodes
    measure where there is no scaling. A map that has a gamma keeps it.

    Raises
    ------
    UsageError
        If there is no such row: their fleet would wait for ever.
    """
    if map_.settled:
        return map_
    usable = rows[(np.abs(rows) < LARGEST_SCALED).all(axis=1)]
    if not len(usable):
        raise UsageError(
            f"expected rows to settle gamma by, without a gap and below {LARGEST_SCALED:g}, got"
            f" none among {len(rows)}: give a --gamma, or leave columns out with --skip"
        )
    # Raw bits: the same rows are drawn, whatever NumPy's version.
    priorities = np.random.Philox(key=DRAWN).random_raw(len(usable))
    moments = Moments.of(usable, priorities)
    if not moments.varying:
        raise UsageError(
            f"expected rows that differ to settle gamma by, got {len(usable)} that are equal: give"
            " a --gamma"
        )
    return map_.settled_at(map_.auto(spread(moments)))


def loudest(rows: Array, names: tuple[str, ...]) -> str | None:
    """Return a note, if one column of rows (n, channels) makes up most of all distances."""
    with np.errstate(invalid="ignore", over="ignore"):
        variance = np.nanvar(rows, axis=0)
    share = float(variance.max() / variance.sum()) if variance.sum() > 0 else 0.0
    if len(names) < 2 or share <= LOUD:
        return None
    return (
        f"columns are taken in their own units, and {names[int(variance.argmax())]} is"
        f' {share:.0%} of all distances: a fleet with scaling = "fleet" has another kernel'
    )


def filler_of(settings: ReplaySettings, rule: RankRule, width: int) -> SAPCA:
    """Return the engine that learns the columns themselves, to fill their gaps by.

    A linear one, of as many directions as a kernel group keeps of its readings.
    """
    return SAPCA(
        FixedRank(min(rule.start, max(1, width // 2))),
        oversample=settings.oversample,
        forgetting_factor=settings.forgetting_factor,
        center=settings.center == "stream",
    )


@contextmanager
def within_float32(map_: FeatureMap | None) -> Iterator[None]:
    """Say what to do about features too large to store, which no column of a file is."""
    try:
        yield
    except ValuesError as error:
        if map_ is None:
            raise
        raise UsageError(
            f"features must stay below {LARGEST_SINGLE:g}: lower --gamma or --degree"
        ) from error


def unmade(map_: FeatureMap) -> FeatureMap:
    """Return a map of the same size whose weights were not made yet: by another seed.

    Weights are made once in a process, and are part of the memory that a map takes.
    """
    seeded: Any = map_
    other: FeatureMap = dataclasses.replace(seeded, seed=seeded.seed ^ 1)
    return other


def figures_of(rows: Array, map_: FeatureMap, subspace: Subspace, *, center: bool) -> KernelFigures:
    """Return the figures of a kernel, for rows (n, channels) and what was learnt of them."""
    spec: dict[str, Any] = dict(map_.spec())
    return KernelFigures(
        kernel=spec["kernel"],
        gamma=float.fromhex(spec["gamma"]),
        features=map_.dim(rows.shape[1]),
        map=spec["kind"],
        excess=excess(rows, map_, subspace, center=center),
    )
