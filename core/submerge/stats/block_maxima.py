"""Block maxima: the highest score statistic of each block of rows, and limits fitted to them.

Alarm limits allow at most so many false alarms ("1 false per week"). A quantile of single
scores cannot give such a limit: a thousand high ones of one bad afternoon are one alarm. A limit
that a share q of the block maxima exceeds allows at most q alarms a block (docs/decisions/0017).

1. Block maxima of one length merge exactly, as sketches do; those of another are never mixed in.
2. Beyond the counted maxima, a generalized Pareto tail is fitted to the largest block maxima
   (peaks over threshold) by probability-weighted moments (Hosking and Wallis 1987).
3. With few maxima the limit errs on the high side: a smaller share is asked for (see `limit`).
4. The maximum of a block that ended in an alarm counts, too. Without it the tail would miss it, and
   the limit would fall until alarms are common. How high it counts: `client.alarms.blocks`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import NothingLearnt, UsageError
from submerge.stats.quantile_sketch import (
    FINE,
    QuantileSketch,
    SketchTally,
    collapsed,
    empty,
    merged,
    packed,
    quantile,
    varint,
)
from submerge.stats.statistic import KINDS, By

HOUR_S = 3600.0
"""Length of a block while the group has chosen none."""

WINDOW_S = 3 * 604800.0
"""Time of a window. A node reports the last one to two windows, so that scores under early, poor
models are forgotten."""

COUNTED = 10
"""Maxima beyond a limit from which the limit is counted; with fewer, a tail is fitted."""

TAIL = 0.1
"""Share of the maxima that a tail is fitted to: at least `LEAST_TAIL`, and at most half of them."""

LEAST_TAIL, MOST_TAIL = 20, 400

REACH = 5.0
"""How much rarer than one of all maxima a limit may be: a fitted tail says nothing beyond."""

LONG_REACH = 2 * REACH
"""Likewise, of a limit that was known before: a node that forgets a window has half of its maxima
left, and must not stop to watch for that."""

SHAPES = (0.0, 0.5)
"""Bounds of the fitted shape. Below 0 a tail has an end, and few maxima place it too low: limits
were exceeded two to five times as often as they should be. Above 0.5 a tail has no variance."""

CAUTION = 0.3
"""By how many standard deviations of a count a limit errs on the high side: with more, half of the
promised rate was realised; with none, a heavy tail exceeds its limit too often."""

MANY, FEW = 256, 16
"""Rows from which k-of-m statistics are found by insertion, if m is at most `FEW`."""

_NOTHING = empty(FINE)

_FIRST: tuple[By, ...] = ("spe", "t2", "linear", "channel")
"""Whose bytes a digest has always had."""


@dataclass(frozen=True, slots=True)
class BlockMaxima:
    """Block maxima of a node or a group, in fine sketches."""

    spe: QuantileSketch
    t2: QuantileSketch
    linear: QuantileSketch  # empty outside kernel groups
    # Blocks since the first scores of the node that has scored longest: the first hour of forty
    # nodes is not a week.
    longest: int = 0
    channel: QuantileSketch = _NOTHING
    distance: QuantileSketch = _NOTHING  # empty without factors
    smoothed: QuantileSketch = _NOTHING
    block_s: float = 0.0  # seconds; 0 is an hour
    lengths: tuple[int, ...] = ()  # nodes whose rows call for 2^i seconds
    ewma: QuantileSketch = _NOTHING

    @property
    def length_s(self) -> float:
        """Length of a block, seconds."""
        return self.block_s or HOUR_S

    @property
    def span_s(self) -> float:
        """Time that the maxima come from, of all nodes together."""
        return self.length_s * max(self.of(kind).n for kind in KINDS)

    def of(self, kind: By) -> QuantileSketch:
        """Return the sketch of one kind of score."""
        sketch: QuantileSketch = getattr(self, kind)
        return sketch

    def replaced(self, kind: By, sketch: QuantileSketch = _NOTHING) -> BlockMaxima:
        """Return the maxima with another sketch of one kind of score, or without it."""
        by = {each: sketch if each == kind else self.of(each) for each in KINDS}
        return BlockMaxima(**by, longest=self.longest, block_s=self.block_s, lengths=self.lengths)

    @property
    def packed(self) -> bytes:
        """Bytes that are equal for equal maxima."""
        first = b"".join((*(packed(self.of(kind)) for kind in _FIRST), varint(self.longest)))
        # A digest that was kept by an earlier version has no others.
        newer = ((kind, self.of(kind)) for kind in KINDS if kind not in _FIRST)
        more = b"".join(kind.encode() + packed(each) for kind, each in newer if each.n)
        if self.block_s or self.lengths:
            more += b"blocks" + varint(int(self.block_s)) + b"".join(map(varint, self.lengths))
        return first + more


NONE = BlockMaxima(_NOTHING, _NOTHING, _NOTHING)


def pooled(*parts: BlockMaxima) -> BlockMaxima:
    """Return the block maxima of all parts together, exactly."""
    spans: dict[float, float] = {}
    held = sorted(part.span_s for part in parts if part.span_s > 0)
    # With two parts neither is the odd one.
    most_s = min(held[len(held) // 2], 2 * WINDOW_S) if held else 0.0
    # Of several lengths, the one monitored longest counts: a node counts blocks of a new one until
    # they are. A part that claims more than the median must not displace the others.
    for part in parts:
        spans[part.block_s] = spans.get(part.block_s, 0.0) + min(part.span_s, most_s)
    block_s = max(spans, key=lambda each: (spans[each], each), default=0.0)
    alike = [part for part in parts if part.block_s == block_s]
    by = {kind: merged(*(part.of(kind) for part in alike), grain=FINE) for kind in KINDS}
    counts = (sum(nodes) for nodes in zip_longest(*(each.lengths for each in parts), fillvalue=0))
    return BlockMaxima(
        **by,
        longest=max((part.longest for part in alike), default=0),
        block_s=block_s,
        lengths=tuple(counts),
    )


GIVEN, ABOVE = 3, 1.0
"""Of the highest tenth of a tail one node of n gives 3 / n at most, and the lowest of what it has;
no maximum counts for more than 2^1 times the highest of all other nodes."""

COARSER = 2
"""Levels above that of most nodes from which on a sketch would make all limits coarse."""


def evened(sketches: Sequence[QuantileSketch], nodes: Sequence[int]) -> list[QuantileSketch]:
    """Return sketches of one kind so that none of them decides a limit; of 0 `nodes`: as it is."""
    level = sorted(each.level for each in sketches)[len(sketches) // 2]
    sketches = [_NOTHING if each.level > level + COARSER else each for each in sketches]
    tail = max(1, _tail_size(sum(each.n for each in sketches)) // 10)
    most = [-(-GIVEN * tail * each // sum(nodes)) or tail + 1 for each in nodes]
    tops = [_finest(each, -1) if each.bins else -(1 << 20) for each in sketches]
    found = Counter[int]()
    for each, room in zip(sketches, most, strict=True):
        for place in range(len(each.bins) - 1, -1, -1):
            count = each.bins[place][1]
            found[_finest(each, place)] += min(count, room)
            room -= count
            if room <= 0:
                break
    # The point above which there are that many, if none gives more than its part.
    point, above = min(found), 0
    for index in sorted(found, reverse=True):
        above += found[index]
        if above > tail:
            point = index
            break
    *_, second, first = sorted(tops)
    reach = round(ABOVE * (8 << -FINE.level))
    return [
        _lowered(each, room, point, reach + (second if top == first else first))
        if each.bins and of and top > point
        else each
        for each, of, room, top in zip(sketches, nodes, most, tops, strict=True)
    ]


def _finest(sketch: QuantileSketch, place: int) -> int:
    """Return the bucket at the smallest level that the scores of a bin are in, at most."""
    return sketch.bins[place][0] << sketch.level - FINE.level


def _lowered(sketch: QuantileSketch, most: int, point: int, top: int) -> QuantileSketch:
    """Return a sketch with at most so many maxima above a point, and none above the top."""
    counts = Counter[int]()
    for place, (_, count) in enumerate(sketch.bins):
        index = _finest(sketch, place)
        kept = count if index <= point else min(count, most)
        most -= kept if index > point else 0
        counts[min(index, top)] += kept
        counts[point] += count - kept
    return collapsed(FINE, FINE.level, {index: n for index, n in counts.items() if n})


def independent(kinds: int) -> float:
    """Return how many independent statistics so many kinds are worth."""
    # Statistics of the same rows exceed their limits together: three did so 2.4 times as often as
    # one, in rows without a plant, and less often in plants (docs/decisions/0035).
    return 1 + 0.6 * (kinds - 1)


def enough(sketch: QuantileSketch, share: float, reach: float = REACH) -> bool:
    """Return whether these maxima can give a limit that such a share of the blocks exceeds."""
    return sketch.n >= 2 * LEAST_TAIL and sketch.n * share * reach >= 1


@lru_cache(maxsize=64)
def limit(sketch: QuantileSketch, share: float, reach: float = REACH) -> float:
    """Return the limit that a share of the blocks exceeds; NothingLearnt unless `enough`."""
    if not 0 < share < 1:
        raise UsageError(f"a share of the blocks is above 0 and below 1, got {share!r}")
    n = sketch.n
    if not enough(sketch, share, reach):
        raise NothingLearnt(f"{n} block maxima are too few for one block in {1 / share:.0f}")
    # If n q of n maxima exceed a limit, q is known to a factor of about 1 + 1 / sqrt(n q), one
    # standard deviation of a count.
    careful = share / (1 + CAUTION / (n * share) ** 0.5)
    if n * careful >= COUNTED:
        return quantile(sketch, 1 - careful)
    return _fitted(sketch, careful)


ALIKE = 1.0
"""How surely machines of a group exceed a limit alike often: the shape a of a gamma prior."""


@lru_cache(maxsize=64)
def drawn(group: QuantileSketch, own: QuantileSketch, share: float, reach: float = REACH) -> float:
    """Return the limit of one machine, by its own maxima and those of its group."""
    if not own.n or group.n < 2 * own.n:
        return limit(group, share, reach)  # it is the group itself, or half of it

    # With k of its n maxima above, and the group's rate r, its rate is (a + k) / (a / r + n).
    def rate(group_share: float) -> float:
        over = above(own, limit(group, group_share, reach))
        return (ALIKE + over) / (ALIKE / group_share + own.n)

    rarest, often = max(1.001 / (group.n * reach), share / 64), min(0.5, 64 * share)
    if rate(rarest) > share:
        return max(limit(group, rarest, reach), quantile(own, 1 - share))
    for _ in range(24):
        middle = (rarest * often) ** 0.5
        rarest, often = (middle, often) if rate(middle) <= share else (rarest, middle)
    return limit(group, rarest, reach)


def above(sketch: QuantileSketch, least: float) -> int:
    """Return how many of the maxima are above."""
    edge = 2.0**sketch.level / 8
    return sum(count for index, count in sketch.bins if 2.0 ** (index * edge) > least)


def is_counted(sketch: QuantileSketch, share: float) -> bool:
    """Return whether the limit of a share of the blocks is counted; else it is extrapolated."""
    expected = sketch.n * share
    return expected / (1 + CAUTION / math.sqrt(expected)) >= COUNTED


def _fitted(sketch: QuantileSketch, share: float) -> float:
    """Return the limit from a generalized Pareto tail fitted to the largest block maxima."""
    size, floor, highest, shape, scale = _tail(sketch)
    if not scale:
        return highest  # all are in one bucket: no more is known
    rarer = size / sketch.n / share
    beyond = np.log(rarer) if abs(shape) < 1e-6 else (rarer**shape - 1) / shape
    # The limit is never below what was measured at this share.
    return max(floor + scale * float(beyond), quantile(sketch, 1 - share))


def _tail_size(n: int) -> int:
    return min(n // 2, max(LEAST_TAIL, min(MOST_TAIL, int(TAIL * n))))


@lru_cache(maxsize=16)
def _tail(sketch: QuantileSketch) -> tuple[int, float, float, float, float]:
    """Return how many maxima a tail has, where it begins, its highest, its shape and its scale."""
    size = _tail_size(sketch.n)
    excess = _highest(sketch, size + 1)
    floor, highest, excess = float(excess[0]), float(excess[-1]), excess[1:] - excess[0]
    # Each excess is weighted by the probability of a smaller one (Hosking and Wallis, eq. 4, 5).
    seen = (np.arange(1, size + 1) - 0.35) / size
    mean, low = float(excess.mean()), float(((1 - seen) * excess).mean())
    if mean <= 0 or mean <= 2 * low:
        return size, floor, highest, 0.0, 0.0
    shape = float(np.clip(2 - mean / (mean - 2 * low), *SHAPES))
    # The tail's mean is right, whatever the clipped shape.
    return size, floor, highest, shape, mean * (1 - shape)


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
    """Return the k-of-m statistic (kinds, n) of scores (kinds, of - 1 + n), oldest first."""
    n = scores.shape[1] - of + 1
    if n >= MANY and 1 < of <= FEW:
        return _largest(scores, n, after)
    windows = scores[:, _windows(n, of)]
    windows.partition(of - after, axis=2)
    return np.asarray(windows[:, :, of - after])


def _largest(scores: Array, n: int, after: int) -> Array:
    """Return the same for many rows: the largest of each window, by insertion."""
    largest: list[Array] = []
    for i in range(scores.shape[1] - n + 1):
        each = scores[:, i : i + n]
        for j, held in enumerate(largest):
            largest[j], each = np.maximum(held, each), np.minimum(held, each)
        if len(largest) < after:
            largest.append(each)
    return largest[-1]


@lru_cache(maxsize=16)
def _windows(n: int, of: int) -> npt.NDArray[np.intp]:
    """Return the indices of each window: a cached table, since NumPy's window views are slow."""
    return np.arange(n)[:, None] + np.arange(of)


class BlockMaximaTally:
    """One node's block maxima, counted; `after` returns another. An unfinished block's are lost."""

    def __init__(
        self,
        kept: Mapping[By, tuple[QuantileSketch, QuantileSketch]] | None = None,
        blocks: int = 0,
        block_s: float = 0.0,
    ) -> None:
        kept = kept or {}
        window = max(1, math.ceil(WINDOW_S / (block_s or HOUR_S)))
        self._tallies = {kind: SketchTally(window, FINE, kept.get(kind)) for kind in KINDS}
        self.blocks, self.block_s = blocks, block_s

    def after(self, highest: Mapping[By, float]) -> BlockMaximaTally:
        """Return the tally after one more block, with its maximum of each kind of score."""
        return self.after_blocks({kind: np.array([each]) for kind, each in highest.items()}, 1)

    def after_blocks(self, highest: Mapping[By, Array], blocks: int) -> BlockMaximaTally:
        """Return the tally after more blocks, with at most one maximum of each kind for each."""
        new = copy(self)
        new._tallies = dict(self._tallies)
        for kind, maxima in highest.items():
            new._tallies[kind] = self._tallies[kind].after(maxima)
        new.blocks += blocks
        return new

    @property
    def windows(self) -> dict[By, tuple[QuantileSketch, QuantileSketch]]:
        """Both windows of each kind of score that was seen."""
        both = {kind: tally.windows for kind, tally in self._tallies.items()}
        return {kind: windows for kind, windows in both.items() if any(each.n for each in windows)}

    @property
    def maxima(self) -> BlockMaxima:
        """All maxima, as a report carries them."""
        by = {kind: tally.sketch for kind, tally in self._tallies.items()}
        return BlockMaxima(**by, longest=self.blocks, block_s=self.block_s, lengths=())


MULTIPLES = (1.25, 1.5, 2.0, 3.0, 5.0, 8.0)
"""How many times as often as promised alarms may come: the evidence is the mean over these."""

ENOUGH = 20.0
"""Evidence that is believed: 20 to 1."""

MOST = 64.0
"""Largest multiple that is distinguished."""

LARGEST = 1e12
"""Evidence is cut to this size."""

LEAST_NODES = 3
"""Least number of nodes whose unconfirmed alarms say anything of their group's limits."""

EACH = 2.0
"""Most alarms of one node that do, over those that were promised for it; and one more."""


def evidence(raised: int, promised: float, multiple: float = 1.0) -> float:
    """Return the odds, valid at any time, of alarms `multiple` times as often as promised."""
    m = np.array(MULTIPLES)
    logs = raised * np.log(m) - (m - 1) * multiple * promised
    return float(np.minimum(np.exp(np.minimum(logs, 100.0)).mean(), LARGEST))


SURE = 1.96
"""Standard deviations on either side that a normal number keeps to with 95 % confidence."""


def share_interval(of: int, n: int) -> tuple[float, float]:
    """Return a 95 % interval of a share that was `of` of n, at least 1 (Wilson 1927)."""
    share, z2 = of / n, SURE**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = SURE / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def count_interval(count: int) -> tuple[float, float]:
    """Return a 95 % interval of the mean of a Poisson count, by Byar's approximation."""

    def end(k: int, z: float) -> float:
        return k * (1 - 1 / (9 * k) + z / (3 * math.sqrt(k))) ** 3 if k else 0.0

    # Of one the approximation is half of what is exact.
    return 0.0253 if count == 1 else end(count, -SURE), end(count + 1, SURE)


def surely_more(raised: int, promised: float) -> float:
    """Return the factor by which alarms surely come more often than promised: 1 to `MOST`."""
    if not promised > 0 or evidence(raised, promised) < ENOUGH:
        return 1.0
    low, high = 1.0, MOST
    for _ in range(30):
        middle = (low * high) ** 0.5
        low, high = (
            (middle, high) if evidence(raised, promised, middle) >= ENOUGH else (low, middle)
        )
    return low
