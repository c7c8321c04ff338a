"""WatchedBlocks: the block maxima of one node, and the false alarms allowed in its blocks.

Its maxima are its part of the group's, from which limits follow. When the group changes the length
of a block, the node counts from zero, and reports those of the old length until the new ones cover
as much time, or are enough for limits. After a person has accepted an alarm, scores may go as high
as they went (`spared`) until they have come down again; blocks until then are not normal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.client.alarms.limits import AlarmLimits
from submerge.client.alarms.log import AlarmLog
from submerge.judge.decision import Mask
from submerge.protocol.settings import AlarmSettings
from submerge.stats.block_length import ScoreCorrelation, block_rows
from submerge.stats.block_maxima import EACH, HOUR_S, LEAST_NODES, BlockMaxima, BlockMaximaTally
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty
from submerge.stats.statistic import KINDS, By

# No machine can buy silence so: it is done only for alarms that ended by themselves before their
# rows were learnt, that no person has judged, in groups of `LEAST_NODES` nodes, and at each node
# for at most twice as many as were promised, and one.


class InAlarm(NamedTuple):
    """Which rows belong to an alarm, (n,) of bool."""

    rows: Mask
    later: Mask  # those without the first of each
    believed: bool = False  # an alarm that ends here counts as high as it went

    @classmethod
    def of(cls, rows: Mask, *, was_open: bool, believed: bool) -> InAlarm:
        """was_open : whether the first row goes on with an alarm"""
        return cls(rows, rows & np.concatenate(([was_open], rows[:-1])), believed)


@dataclass(frozen=True, slots=True, eq=False)
class AlarmPeak:
    """What an open alarm's block will count: maxima as the alarm began, and the highest since."""

    begun: Mapping[By, float] = field(default_factory=dict)
    highest: Mapping[By, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.begun or self.highest)

    def after(self, highest: Mapping[By, float]) -> AlarmPeak:
        return replace(self, highest=larger(self.highest, highest))

    def counted(self, highest: Mapping[By, float], *, high: bool) -> dict[By, float]:
        """Return the maxima of the block in which the alarm ended; `high`: with the alarm's."""
        return larger(highest, self.begun, self.highest if high else {})


def larger(*maxima: Mapping[By, float]) -> dict[By, float]:
    kinds = dict.fromkeys(kind for each in maxima for kind in each)
    return {kind: max(each.get(kind, 0.0) for each in maxima) for kind in kinds}


def is_believed(log: AlarmLog, limits: AlarmLimits, allowed: float) -> bool:
    """Return whether the newest alarm counts as high as it went; `allowed`: false alarms so far."""
    if not log.alarms or limits.nodes < LEAST_NODES:
        return False
    alarm = log.alarms[0]
    short = log.held_s < log.max_withheld_s
    judged = alarm.verdict != "" or alarm.settled or alarm.cause == "stuck"
    unconfirmed = log.raised - log.confirmed
    return short and not judged and unconfirmed <= 1 + math.floor(EACH * allowed)


SPARE = 1.25
"""Factor over the highest score of an accepted alarm, up to which scores are accepted."""

BEYOND = 1.25
"""Largest maximum of an alarm that counts, over its limit: a higher one is from no normal block,
and a tail that is fitted to it would reach as far. Others count as high as their limit at most."""

ENOUGH_S = 3 * 86400.0
"""Least time after which blocks of a new length go before those of an old one."""


@dataclass(frozen=True, slots=True, eq=False)
class KeptBlocks:
    """What is remembered of blocks: as in `BlockMaximaTally`, `AlarmStatus`, and two more."""

    windows: Mapping[By, tuple[QuantileSketch, QuantileSketch]] = field(default_factory=dict)
    blocks: int = 0
    spared: Mapping[By, float] = field(default_factory=dict)  # over limits; 1 for one not there
    watched_s: float = 0.0
    allowed: float = 0.0
    block_s: float = 0.0
    before: BlockMaxima | None = None  # of another length

    @classmethod
    def of(cls, maxima: BlockMaxima | None) -> KeptBlocks:
        """Return what is remembered of a history with these maxima."""
        if maxima is None:
            return cls()
        windows = {kind: (maxima.of(kind), empty(FINE)) for kind in KINDS if maxima.of(kind).n}
        return cls(windows, maxima.longest, block_s=maxima.block_s)


@dataclass(frozen=True, slots=True, eq=False)
class WatchedBlocks:
    """The blocks that have ended, in `tally`, and the current one; the rest as in `KeptBlocks`."""

    tally: BlockMaximaTally
    spared: Mapping[By, float] = field(default_factory=dict)
    watched_s: float = 0.0
    allowed: float = 0.0
    before: BlockMaxima | None = None
    highest: Mapping[By, float] = field(default_factory=dict)  # k-of-m maxima of the current block
    near: Mapping[By, float] = field(default_factory=dict)  # its largest spared scores
    passed_s: float = 0.0  # how much of it has passed, with `row`
    row: int = 0
    peak: AlarmPeak = field(default_factory=AlarmPeak)  # a restart forgets it
    # How long scores stay alike: by it the group chooses a block's length.
    correlation: ScoreCorrelation = field(default_factory=ScoreCorrelation)

    @classmethod
    def of(cls, kept: KeptBlocks) -> WatchedBlocks:
        """Return the blocks that the process before remembered."""
        tally = BlockMaximaTally(kept.windows, kept.blocks, kept.block_s)
        return cls(tally, dict(kept.spared), kept.watched_s, kept.allowed, kept.before)

    @property
    def kept(self) -> KeptBlocks:
        """What the next process has to know; the maxima of the current block are lost."""
        tally = self.tally
        return KeptBlocks(
            tally.windows,
            tally.blocks,
            self.spared,
            self.watched_s,
            self.allowed,
            tally.block_s,
            self.before,
        )

    @property
    def maxima(self) -> BlockMaxima:
        """The maxima that a report carries, and the length that the node's rows call for."""
        maxima = self.tally.maxima if self.before is None else self.before
        return replace(maxima, lengths=self.correlation.lengths)

    def of_length(self, block_s: float) -> WatchedBlocks:
        """Return them with blocks of that length from now on, in seconds; 0 is an hour."""
        tally = self.tally
        if tally.block_s == block_s:
            return self
        maxima, before = tally.maxima, self.before
        if before is not None and before.block_s == block_s:
            before = None  # the group has come back to it; blocks of that time are too few to keep
        elif maxima.span_s > (0.0 if before is None else before.span_s):
            before = maxima
        # The time since the first scores is the same, whatever it is counted in.
        blocks = int(tally.blocks * maxima.length_s / (block_s or HOUR_S))
        new = BlockMaximaTally(None, blocks, block_s)
        return WatchedBlocks(
            new,
            self.spared,
            self.watched_s,
            self.allowed,
            before,
            correlation=self.correlation,
        )

    def spare(
        self, worst: float, judged_by: Mapping[By, float], limits: AlarmLimits
    ) -> WatchedBlocks:
        """Return them with scores accepted up to `worst` times the limits of the alarm."""
        spared = dict(self.spared)
        for kind in limits.known or KINDS:
            bare = limits.known.get(kind, 0.0)
            ratio = judged_by.get(kind, bare) / bare if bare > 0 else 1.0
            ratio = ratio if math.isfinite(ratio) else 1.0
            spared[kind] = max(1.0, SPARE * worst * ratio, spared.get(kind, 1.0))
        return replace(self, spared=spared)

    def least_news(self, kind: By, rows: int, settings: AlarmSettings) -> float:
        """Return what a score has to exceed to raise its block's maximum; -1 if any may."""
        of_another = 0 < block_rows(self.tally.block_s, settings.period_s) < self.row + rows
        return -1.0 if self.spared or of_another else self.highest.get(kind, -1.0)

    def after(
        self,
        kinds: Sequence[By],
        statistics: Array | None,
        n: int,
        passed_s: float,
        limits: AlarmLimits,
        settings: AlarmSettings,
        *,
        young: bool = False,
        scores: Array | None = None,
        alarm: InAlarm | None = None,
    ) -> WatchedBlocks:
        """Return them after n more rows, which stand for `passed_s`, with `statistics` (kinds, n).

        young : The mean has not seen a day: its blocks have no maxima, but pass.
        scores : (n,), by which the length of a block is chosen.
        alarm : All but the first row of one is left to `AlarmPeak`.
        """
        correlation = self.correlation
        if scores is not None:
            correlation = correlation.after(scores, passed_s)
        block_s = self.tally.block_s
        now, first, whole = self, 0, block_rows(block_s, settings.period_s)
        calm = n if alarm is None or not alarm.rows.any() else int(alarm.rows.argmax())
        while first < n:
            if 0 < 2 * whole <= calm - first and now._is_plain:
                last = calm - (calm - first) % whole
                part = None if statistics is None else statistics[:, first:last]
                now, each_s = replace(now, correlation=correlation), passed_s * whole / n
                blocks = (last - first) // whole
                now = now._with_blocks(kinds, part, blocks, each_s, limits, settings, young=young)
                first = last
                continue
            last = min(n, first + whole - now.row) if whole else n
            if statistics is not None:
                later = None if alarm is None else alarm.later[first:last]
                now = now._with_statistics(kinds, statistics[:, first:last], later, limits)
            is_open = alarm is not None and bool(alarm.rows[last - 1])
            if now.peak and not is_open:
                now = now._with_peak(high=alarm is not None and alarm.believed)
            row, part_s = now.row + last - first, now.passed_s + passed_s * (last - first) / n
            now = replace(now, row=row, passed_s=part_s, correlation=correlation)
            if now.row >= whole > 0 or (not whole and now.passed_s >= (block_s or HOUR_S)):
                now = now._closed(limits, settings, young=young, waits=is_open)
            first = last
        return now

    @property
    def _is_plain(self) -> bool:
        """Whether a block begins, and will count its own maximum alone."""
        return not (self.row or self.highest or self.spared or self.peak or self.before)

    def _with_blocks(
        self,
        kinds: Sequence[By],
        statistics: Array | None,
        blocks: int,
        each_s: float,
        limits: AlarmLimits,
        settings: AlarmSettings,
        *,
        young: bool,
    ) -> WatchedBlocks:
        """Return them after whole blocks of (kinds, blocks times rows), none in an alarm."""
        maxima: dict[By, Array] = {}
        seen = np.zeros(blocks, dtype=bool)
        if statistics is not None:
            highest = statistics.reshape(len(kinds), blocks, -1).max(axis=2)
            known = limits.known
            for kind, values in zip(kinds, highest, strict=True):
                counted = values >= 0
                seen |= counted
                if counted.any():
                    maxima[kind] = np.minimum(values[counted], known.get(kind, math.inf))
        watched_s, allowed = self.watched_s, self.allowed
        if limits.promised:
            often = settings.often_per_s(self.correlation.row_s)
            # One after another, so that sums are the same whatever came at once.
            for _ in range(int(np.count_nonzero(seen))):
                watched_s, allowed = watched_s + each_s, allowed + each_s * often
        counted_blocks = blocks if young else int(np.count_nonzero(seen))
        tally = self.tally.after_blocks(maxima, counted_blocks) if counted_blocks else self.tally
        return replace(self, tally=tally, watched_s=watched_s, allowed=allowed)

    def _with_statistics(
        self, kinds: Sequence[By], statistics: Array, later: Mask | None, limits: AlarmLimits
    ) -> WatchedBlocks:
        """Return them with statistics of the current block; `later` rows are of an alarm."""
        if later is None or not later.any():
            return self._with_highest(kinds, statistics.max(axis=1).tolist(), limits)
        now, peak = self, self.peak
        if not later.all():
            now = now._with_highest(kinds, statistics[:, ~later].max(axis=1).tolist(), limits)
        if not self.spared:
            alarmed = statistics[:, later].max(axis=1).tolist()
            peak = peak.after(_capped(kinds, alarmed, limits, BEYOND))
        return replace(now, peak=peak)

    def _with_highest(
        self, kinds: Sequence[By], values: Sequence[float], limits: AlarmLimits
    ) -> WatchedBlocks:
        if not self.spared:
            return replace(self, highest=larger(self.highest, _capped(kinds, values, limits, 1.0)))
        # Scores that are accepted here are not normal elsewhere.
        near, known = dict(self.near), limits.known
        for kind, value in zip(kinds, values, strict=True):
            if value >= 0 and known.get(kind, 0.0) > 0:
                near[kind] = max(near.get(kind, 0.0), value / known[kind])
        return replace(self, near=near)

    def _with_peak(self, *, high: bool) -> WatchedBlocks:
        """Return them with what the alarm that has ended counts; `high` as in `AlarmPeak`."""
        highest = self.peak.counted(self.highest, high=high)
        return replace(self, highest=highest, peak=AlarmPeak())

    def _closed(
        self, limits: AlarmLimits, settings: AlarmSettings, *, young: bool, waits: bool
    ) -> WatchedBlocks:
        """Return them with the current block ended, which `waits` for the open alarm to end."""
        seen = self.highest or self.near
        watched_s = self.passed_s if seen and limits.promised else 0.0
        spared = {
            kind: min(most, SPARE * self.near.get(kind, most)) for kind, most in self.spared.items()
        }
        tally, peak = self.tally, self.peak
        if waits:
            peak = replace(peak, begun=larger(peak.begun, self.highest))
        elif self.highest or young:
            tally = tally.after(self.highest)
        before = self.before
        if before is not None:
            enough_s = max(ENOUGH_S, limits.enough_s(tally.maxima.length_s))
            before = before if tally.maxima.span_s < min(before.span_s, enough_s) else None
        return WatchedBlocks(
            tally,
            {kind: most for kind, most in spared.items() if most > 1},
            self.watched_s + watched_s,
            self.allowed + watched_s * settings.often_per_s(self.correlation.row_s),
            before,
            peak=peak,
            correlation=self.correlation,
        )


def _capped(
    kinds: Sequence[By], values: Sequence[float], limits: AlarmLimits, most: float
) -> dict[By, float]:
    """Return values by kind, each at most so many times its limit; those of no row are left out."""
    known = limits.known
    both = zip(kinds, values, strict=True)
    return {
        kind: min(value, most * known.get(kind, math.inf)) for kind, value in both if value >= 0
    }
