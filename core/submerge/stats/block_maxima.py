"""Peaks: how high the scores of each hour came, and the limit that a promise asks for.

An alarm is promised to be false at most so often ("1 false per week"). A quantile of single
scores cannot say that: scores come in spells, a thousand of a bad afternoon are one alarm. So
we count what alarms are made of. Of each hour's worth of rows one number is kept, the highest
*level* that it came to: the level being the k-th largest of the last m scores, which is what
has to pass the limit. A limit that a share q of such peaks passes is passed in a share q of the
hours, hence by no more than q alarms an hour: fewer, where an alarm lasts for several.

1. Peaks merge as sketches do, exactly: a group measures in a day what a node takes a month for.
2. Beyond what was counted the tail is fitted, peaks over threshold: a generalized Pareto
   distribution, its moments weighted by probability (Hosking and Wallis 1987).
3. Of what few peaks say the cautious side is taken: `CAUTION`.
4. A peak of an hour that ended in an alarm counts as it was when the alarm was raised. Left
   out, it would be missing in the tail, and the limit would creep down to where alarms are common.
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
"""What a peak is of."""

WINDOW = 504
"""Hours, three weeks, after which peaks count as old: a node speaks of the last one to two such
spans, so that what scores were under early, poor models is forgotten."""

COUNTED = 10
"""So many peaks beyond a limit: fewer, and the tail is fitted rather than counted."""

TAIL = 0.1
"""Of the peaks, what a tail is fitted to, if that is `LEAST_TAIL` or more, and at most half."""

LEAST_TAIL, MOST_TAIL = 20, 400

REACH = 10.0
"""How much rarer than one of all peaks a limit may be: a tail that was fitted says no more."""

SHAPES = (-0.5, 0.5)
"""Shapes that are believed: steeper ends nowhere, and heavier has no variance."""

By = Literal["spe", "t2", "linear", "channel"]
"""A statistic. `linear` is the SPE of the readings, where the others are of their features;
`channel` the largest residual of a single channel, by what is usual for it at that node."""

KINDS: tuple[By, ...] = get_args(By)

_NOTHING = empty(FINE)


@dataclass(frozen=True, slots=True)
class BlockMaxima:
    """Peaks of a node, or of a group.

    spe, t2, linear, channel : Sketch
        Fine ones; `linear` is empty outside kernel groups.
    longest : int
        Hours that the node has told of which was watched longest: a fleet's first hour, times
        forty nodes, is not a week.
    """

    spe: QuantileSketch
    t2: QuantileSketch
    linear: QuantileSketch
    longest: int = 0
    channel: QuantileSketch = _NOTHING

    def of(self, kind: By) -> QuantileSketch:
        """Return the sketch of one statistic."""
        sketch: QuantileSketch = getattr(self, kind)
        return sketch

    def without(self, kind: By) -> BlockMaxima:
        """Return them without one statistic."""
        by = {each: empty(FINE) if each == kind else self.of(each) for each in KINDS}
        return BlockMaxima(by["spe"], by["t2"], by["linear"], self.longest, by["channel"])

    @property
    def packed(self) -> bytes:
        """The bytes that two equal ones share."""
        return b"".join((*(packed(self.of(kind)) for kind in KINDS), varint(self.longest)))


NONE = BlockMaxima(_NOTHING, _NOTHING, _NOTHING)


def pooled(*parts: BlockMaxima) -> BlockMaxima:
    """Return the peaks of all parts together, exactly."""
    by = {kind: merged(*(part.of(kind) for part in parts), grain=FINE) for kind in KINDS}
    longest = max((part.longest for part in parts), default=0)
    return BlockMaxima(by["spe"], by["t2"], by["linear"], longest, by["channel"])


def enough(sketch: QuantileSketch, share: float) -> bool:
    """Whether a limit that a share of the hours passes can be known from these peaks."""
    return sketch.n >= 2 * LEAST_TAIL and sketch.n * share * REACH >= 1


@lru_cache(maxsize=64)
def limit(sketch: QuantileSketch, share: float) -> float:
    """Return what a share of the hours passes at most.

    Parameters
    ----------
    sketch : Sketch
        Of peaks, a fine one.
    share : float
        Above 0, and below 1.

    Raises
    ------
    NothingLearnt
        If there are too few peaks: see `enough`.

    Notes
    -----
    n peaks of which n q pass a limit tell q to within a factor of about 1 + 1 / sqrt(n q), one
    standard deviation of a count; so a smaller share is asked for.
    """
    if not 0 < share < 1:
        raise UsageError(f"a share of the hours is above 0 and below 1, got {share!r}")
    n = sketch.n
    if not enough(sketch, share):
        raise NothingLearnt(f"{n} peaks are too few for one hour in {1 / share:.0f}")
    careful = share / (1 + 1 / (n * share) ** 0.5)
    if n * careful >= COUNTED:
        return quantile(sketch, 1 - careful)
    return _fitted(sketch, careful)


def _fitted(sketch: QuantileSketch, share: float) -> float:
    """Return the same from a generalized Pareto tail."""
    n = sketch.n
    size = min(n // 2, max(LEAST_TAIL, min(MOST_TAIL, int(TAIL * n))))
    excess = _highest(sketch, size + 1)
    floor, excess = float(excess[0]), excess[1:] - excess[0]
    # Weighted by how likely a smaller one is, Hosking and Wallis, equations 4 and 5.
    seen = (np.arange(1, size + 1) - 0.35) / size
    mean, low = float(excess.mean()), float(((1 - seen) * excess).mean())
    if mean <= 0 or mean <= 2 * low:
        return floor + float(excess[-1])  # all in one bucket: no more is known
    shape = float(np.clip(2 - mean / (mean - 2 * low), *SHAPES))
    scale = mean * (1 - shape)  # the mean of the tail is right whatever shape is believed
    rarer = size / n / share
    beyond = np.log(rarer) if abs(shape) < 1e-6 else (rarer**shape - 1) / shape
    # Never below what was seen so often.
    return max(floor + scale * float(beyond), quantile(sketch, 1 - min(share, 1 / n)))


def _highest(sketch: QuantileSketch, size: int) -> Array:
    """Return the highest scores, ascending; those of a bucket spread evenly over it."""
    values: list[Array] = []
    for index, count in reversed(sketch.bins):
        wanted = min(count, size)
        within = (np.arange(count - wanted, count) + 0.5) / count
        values.insert(0, 2.0 ** ((index - 1 + within) * 2.0**sketch.level / 8))
        size -= wanted
        if not size:
            break
    return np.concatenate(values)


def levels(scores: Array, of: int, after: int) -> Array:
    """Return the level at each score: the `after`-th largest of the last `of`.

    Parameters
    ----------
    scores : (kinds, of - 1 + n)
        Of each kind, the oldest first.

    Returns
    -------
    (kinds, n)
    """
    windows = scores[:, _windows(scores.shape[1] - of + 1, of)]
    windows.partition(of - after, axis=2)
    return np.asarray(windows[:, :, of - after])


@lru_cache(maxsize=16)
def _windows(n: int, of: int) -> npt.NDArray[np.intp]:
    """Return where each window's scores stand: a table, for NumPy's own views are slow to make."""
    return np.arange(n)[:, None] + np.arange(of)


class BlockMaximaTally:
    """One node's peaks: the highest level of each hour, counted. A value: nothing changes it.

    Parameters
    ----------
    kept : mapping of kind to (Sketch, Sketch), optional
        As `windows` said; what an hour that was cut short had come to is lost.
    hours : int
        Counted in all.

    Attributes
    ----------
    hours : int
    """

    def __init__(
        self, kept: Mapping[By, tuple[QuantileSketch, QuantileSketch]] | None = None, hours: int = 0
    ) -> None:
        kept = kept or {}
        self._tallies = {kind: SketchTally(WINDOW, FINE, kept.get(kind)) for kind in KINDS}
        self.hours = hours

    def after(self, highest: Mapping[By, float]) -> BlockMaximaTally:
        """Return it after one more hour, with the highest level of each statistic that was seen."""
        if not highest:
            return self
        new = copy(self)
        new._tallies = dict(self._tallies)
        for kind, level in highest.items():
            new._tallies[kind] = self._tallies[kind].after(np.array([level]))
        new.hours += 1
        return new

    @property
    def windows(self) -> dict[By, tuple[QuantileSketch, QuantileSketch]]:
        """Both windows of each statistic."""
        return {kind: tally.windows for kind, tally in self._tallies.items()}

    @property
    def maxima(self) -> BlockMaxima:
        """All of them, as they travel."""
        by = {kind: tally.sketch for kind, tally in self._tallies.items()}
        return BlockMaxima(by["spe"], by["t2"], by["linear"], self.hours, by["channel"])
