"""Block maxima: the highest score statistic of each hour, and alarm limits fitted to them.

Alarm limits allow at most so many false alarms ("1 false per week"). A quantile of single
scores cannot give such a limit: scores come in runs, and a thousand high ones of one bad
afternoon are one alarm. So this module counts hours. A score statistic is the k-th largest of
the last m scores (k of m), and an alarm is raised when it exceeds the limit. Each hour's worth
of rows contributes one number, its highest statistic: the block maximum. A limit that a share q
of the block maxima exceeds is exceeded in a share q of the hours, so there are at most q alarms
an hour, and fewer where an alarm lasts for several hours.

1. Block maxima merge exactly, as sketches do: a group measures in a day what takes a node a month.
2. Beyond the counted maxima, a generalized Pareto tail is fitted to the largest block maxima
   (peaks over threshold) by probability-weighted moments (Hosking and Wallis 1987).
3. With few maxima the limit errs on the high side: a smaller share is asked for (see `limit`).
4. The maximum of an hour that ended in an alarm counts as it was when the alarm was raised.
   Without it the tail would miss it, and the limit would fall until alarms are common.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import NothingLearnt, UsageError
from submerge.stats.quantile_sketch import (
    FINE,
    QuantileSketch,
    SketchTally,
    empty,
    merged,
    packed,
    quantile,
    varint,
)

HOUR_S = 3600.0
"""Length of a block."""

WINDOW = 504
"""Hours in a window, three weeks. A node reports the last one to two windows, so that scores under
early, poor models are forgotten."""

COUNTED = 10
"""Maxima beyond a limit from which the limit is counted; with fewer, a tail is fitted."""

TAIL = 0.1
"""Share of the maxima that a tail is fitted to: at least `LEAST_TAIL`, and at most half of them."""

LEAST_TAIL, MOST_TAIL = 20, 400

REACH = 10.0
"""How much rarer than one of all maxima a limit may be: a fitted tail says nothing beyond."""

SHAPES = (-0.5, 0.5)
"""Bounds of the fitted shape: a lower one has too short a tail, a higher one no variance."""

By = Literal["spe", "t2", "linear", "channel"]
"""A kind of score: SPE (squared prediction error) or T2 (Hotelling's T-squared) of the features,
`linear`, the SPE of the readings themselves, or `channel`, the largest residual of a single
channel over its typical size at that node."""

KINDS: tuple[By, ...] = get_args(By)

_NOTHING = empty(FINE)


@dataclass(frozen=True, slots=True)
class BlockMaxima:
    """Block maxima of a node or a group.

    spe, t2, linear, channel : QuantileSketch
        Fine ones; `linear` is empty outside kernel groups.
    longest : int
        Hours reported by the node that was monitored longest: the first hour of forty nodes is
        not a week.
    """

    spe: QuantileSketch
    t2: QuantileSketch
    linear: QuantileSketch
    longest: int = 0
    channel: QuantileSketch = _NOTHING

    def of(self, kind: By) -> QuantileSketch:
        """Return the sketch of one kind of score."""
        sketch: QuantileSketch = getattr(self, kind)
        return sketch

    def without(self, kind: By) -> BlockMaxima:
        """Return the maxima without one kind of score."""
        by = {each: empty(FINE) if each == kind else self.of(each) for each in KINDS}
        return BlockMaxima(by["spe"], by["t2"], by["linear"], self.longest, by["channel"])

    @property
    def packed(self) -> bytes:
        """Bytes that are equal for equal maxima."""
        return b"".join((*(packed(self.of(kind)) for kind in KINDS), varint(self.longest)))


NONE = BlockMaxima(_NOTHING, _NOTHING, _NOTHING)


def pooled(*parts: BlockMaxima) -> BlockMaxima:
    """Return the block maxima of all parts together, exactly."""
    by = {kind: merged(*(part.of(kind) for part in parts), grain=FINE) for kind in KINDS}
    longest = max((part.longest for part in parts), default=0)
    return BlockMaxima(by["spe"], by["t2"], by["linear"], longest, by["channel"])


def enough(sketch: QuantileSketch, share: float) -> bool:
    """Return whether these maxima can give a limit that such a share of the hours exceeds."""
    return sketch.n >= 2 * LEAST_TAIL and sketch.n * share * REACH >= 1


@lru_cache(maxsize=64)
def limit(sketch: QuantileSketch, share: float) -> float:
    """Return the limit that at most a share of the hours exceeds.

    Parameters
    ----------
    sketch : QuantileSketch
        Of block maxima, a fine one.
    share : float
        Above 0 and below 1.

    Raises
    ------
    NothingLearnt
        If there are too few maxima: see `enough`.

    Notes
    -----
    If n q of n maxima exceed a limit, q is known to a factor of about 1 + 1 / sqrt(n q), one
    standard deviation of a count. So the limit is that of the share over this factor.
    """
    if not 0 < share < 1:
        raise UsageError(f"a share of the hours is above 0 and below 1, got {share!r}")
    n = sketch.n
    if not enough(sketch, share):
        raise NothingLearnt(f"{n} block maxima are too few for one hour in {1 / share:.0f}")
    careful = share / (1 + 1 / (n * share) ** 0.5)
    if n * careful >= COUNTED:
        return quantile(sketch, 1 - careful)
    return _fitted(sketch, careful)


def _fitted(sketch: QuantileSketch, share: float) -> float:
    """Return the limit from a generalized Pareto tail fitted to the largest block maxima."""
    n = sketch.n
    size = min(n // 2, max(LEAST_TAIL, min(MOST_TAIL, int(TAIL * n))))
    excess = _highest(sketch, size + 1)
    floor, excess = float(excess[0]), excess[1:] - excess[0]
    # Each excess is weighted by the probability of a smaller one (Hosking and Wallis, eq. 4, 5).
    seen = (np.arange(1, size + 1) - 0.35) / size
    mean, low = float(excess.mean()), float(((1 - seen) * excess).mean())
    if mean <= 0 or mean <= 2 * low:
        return floor + float(excess[-1])  # all are in one bucket: no more is known
    shape = float(np.clip(2 - mean / (mean - 2 * low), *SHAPES))
    scale = mean * (1 - shape)  # the tail's mean is right, whatever the clipped shape
    rarer = size / n / share
    beyond = np.log(rarer) if abs(shape) < 1e-6 else (rarer**shape - 1) / shape
    # The limit is never below what was measured at this share.
    return max(floor + scale * float(beyond), quantile(sketch, 1 - min(share, 1 / n)))


def _highest(sketch: QuantileSketch, size: int) -> Array:
    """Return the highest maxima, ascending; those of a bucket are spread evenly over it."""
    values: list[Array] = []
    for index, count in reversed(sketch.bins):
        wanted = min(count, size)
        within = (np.arange(count - wanted, count) + 0.5) / count
        values.insert(0, 2.0 ** ((index - 1 + within) * 2.0**sketch.level / 8))
        size -= wanted
        if not size:
            break
    return np.concatenate(values)


def statistics(scores: Array, of: int, after: int) -> Array:
    """Return the k-of-m statistic at each score: the `after`-th largest of the last `of`.

    Parameters
    ----------
    scores : (kinds, of - 1 + n)
        Scores of each kind, oldest first.

    Returns
    -------
    (kinds, n)
    """
    windows = scores[:, _windows(scores.shape[1] - of + 1, of)]
    windows.partition(of - after, axis=2)
    return np.asarray(windows[:, :, of - after])


@lru_cache(maxsize=16)
def _windows(n: int, of: int) -> npt.NDArray[np.intp]:
    """Return the indices of each window: a cached table, since NumPy's window views are slow."""
    return np.arange(n)[:, None] + np.arange(of)


class BlockMaximaTally:
    """One node's block maxima, counted. It is immutable: `after` returns another.

    Parameters
    ----------
    kept : mapping of By to (QuantileSketch, QuantileSketch), optional
        What `windows` returned. The maximum of an unfinished hour is lost.
    hours : int
        Number of hours counted.
    """

    def __init__(
        self, kept: Mapping[By, tuple[QuantileSketch, QuantileSketch]] | None = None, hours: int = 0
    ) -> None:
        kept = kept or {}
        self._tallies = {kind: SketchTally(WINDOW, FINE, kept.get(kind)) for kind in KINDS}
        self.hours = hours

    def after(self, highest: Mapping[By, float]) -> BlockMaximaTally:
        """Return the tally after one more hour, with that hour's maximum of each kind of score."""
        if not highest:
            return self
        new = copy(self)
        new._tallies = dict(self._tallies)
        for kind, maximum in highest.items():
            new._tallies[kind] = self._tallies[kind].after(np.array([maximum]))
        new.hours += 1
        return new

    @property
    def windows(self) -> dict[By, tuple[QuantileSketch, QuantileSketch]]:
        """Both windows of each kind of score."""
        return {kind: tally.windows for kind, tally in self._tallies.items()}

    @property
    def maxima(self) -> BlockMaxima:
        """All maxima, as a report carries them."""
        by = {kind: tally.sketch for kind, tally in self._tallies.items()}
        return BlockMaxima(by["spe"], by["t2"], by["linear"], self.hours, by["channel"])
