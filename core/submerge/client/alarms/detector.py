"""AlarmDetector: the state of alarm detection at one node, from block to block of `detect`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.client.alarms.blocks import InAlarm, KeptBlocks, WatchedBlocks
from submerge.client.alarms.highest import HighestSoFar
from submerge.client.alarms.limits import AlarmLimits
from submerge.client.alarms.log import AlarmLog, PeakRow
from submerge.judge.decision import Mask
from submerge.judge.prepare import Block
from submerge.judge.score import RowScores
from submerge.protocol.alarm_status import BESIDE, Alarm, AlarmStatus, State
from submerge.protocol.machine import Now
from submerge.protocol.score_trail import MINUTE_S
from submerge.protocol.settings import AlarmSettings
from submerge.schema import Scaling
from submerge.stats.block_maxima import BlockMaxima, statistics
from submerge.stats.departures import Departures
from submerge.stats.duty import DutyCycles
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.smoothing import ewma
from submerge.stats.statistic import KINDS, STATISTICS, By, averaged, raised_by
from submerge.stats.stuck import Habits, RunLengths, StuckDetector


class RecentScores(NamedTuple):
    """Scores (kinds, rows) of earlier rows, which the statistics of the next rows need."""

    kinds: tuple[By, ...] = ()
    scores: Array = np.zeros((0, 0))

    @property
    def finite(self) -> RecentScores:
        """The same once no alarm is open: unknown scores, which kept it open, raise no other."""
        return self._replace(scores=np.where(self.scores < math.inf, self.scores, 0.0))

    def watched(self, even: Mapping[By, Array], limit: Callable[[By], float]) -> dict[By, Array]:
        """Return what alarms are raised by: scores, then averages by their `limit`."""
        kinds = raised_by(factors="distance" in even)
        found = {kind: even[kind] for kind in kinds if kind in even}
        for kind in averaged(kinds):
            last = float(self.scores[self.kinds.index(kind), -1]) if kind in self.kinds else 0.0
            found[kind] = ewma(even[STATISTICS[kind].of], last, limit(kind))
        return found

    def span(self, even: Mapping[By, Array], rows: int, unknown: float = 0.0) -> Array:
        """Return scores (kinds, rows + n): those of n rows, earlier ones first."""
        kinds, before = tuple(even), self.scores
        if self.kinds != kinds:
            before = np.full((len(kinds), rows), unknown)
            for kind in set(kinds) & set(self.kinds):
                before[kinds.index(kind)] = self.scores[self.kinds.index(kind)]
        return np.concatenate((before, list(even.values())), axis=1)


def row_statistics(kinds: tuple[By, ...], span: Array, of: int, after: int) -> Array:
    """Return the statistic of each kind at each row, (kinds, n), of scores (kinds, of - 1 + n)."""
    raised = statistics(span, of, after)
    for kind in averaged(kinds):
        i = kinds.index(kind)
        raised[i] = span[i, of - 1 :]
    return raised


@lru_cache(maxsize=64)
def rows_needed(kinds: tuple[By, ...], after: int) -> Array:
    """Return how many rows have to be high for the statistic of each kind to be, (kinds,)."""
    return np.array([1 if STATISTICS[kind].averaged else after for kind in kinds])


# It counts by the minute because then most blocks cannot raise it: `bounds` says what a block
# needs to.


class Closeness(NamedTuple):
    """How close the rows of one minute came to an alarm."""

    minute: float = 0.0  # wall time divided by 60 and rounded down
    # the highest statistic of a row over its limit; None while there are no limits
    share: float | None = None

    def at(self, wall: float) -> Closeness:
        """Return that of the minute of this moment, which may begin here."""
        minute = wall // MINUTE_S
        return self if minute == self.minute else Closeness(minute)

    def bounds(self, most: list[float]) -> list[float]:
        """Return what statistics have to exceed to raise it, by the limits of each kind."""
        share = self.share or 0.0
        return [limit * share if _is_known(limit) else math.inf for limit in most]

    def after(self, most: list[float], statistics: Array | None) -> Closeness:
        """Return it after a block with statistics (kinds, n); None if none exceeds a bound."""
        known = [i for i, limit in enumerate(most) if _is_known(limit)]
        if not known:
            return self
        if statistics is None:
            return self.at_least(0.0)
        highest = statistics.max(axis=1).tolist()
        if math.inf in highest:
            # After a restart the scores before an open alarm's first row are infinite.
            highest = np.where(statistics < math.inf, statistics, 0.0).max(axis=1).tolist()
        return self.at_least(max(highest[i] / most[i] for i in known))

    def at_least(self, share: float) -> Closeness:
        low = self.share is None or self.share < share
        return Closeness(self.minute, share) if low else self


NOT_CLOSE = Closeness()
"""Of a node without limits."""


def _is_known(limit: float) -> bool:
    return 0 < limit < math.inf


RARE = 1 / 3
"""Share of the rows of the group, in which provisional limits may be exceeded once at most."""

LEAST_RARE = 2000
"""Rows in which they may be exceeded once, however many rows the group has."""


@dataclass(frozen=True, slots=True, eq=False)
class DetectorState:
    """What a detector keeps for the next process."""

    alarms: tuple[Alarm, ...] = ()  # the open one, and those that ended last
    held_s: float = 0.0  # for how long the open one has withheld rows
    # limits that the open one keeps while its rows are learnt; else empty
    frozen: Mapping[By, float] = field(default_factory=dict)
    # (channels,). Blame for the open one, in shares.
    blame: Array = field(default_factory=lambda: np.zeros(0))
    excused: tuple[int, ...] = ()  # stuck channels that a person accepted, until they move
    # as in `AlarmStatus`
    raised: int = 0
    confirmed: int = 0
    hours: KeptBlocks = field(default_factory=KeptBlocks)
    highest: HighestSoFar = field(default_factory=HighestSoFar)

    @property
    def under_another_schema(self) -> DetectorState:
        """The part that stays valid under another schema: alarms, counts and monitored time."""
        hours = KeptBlocks(watched_s=self.hours.watched_s, allowed=self.hours.allowed)
        alarms = tuple(each.over(each.peaked) for each in self.alarms)
        return DetectorState(alarms, raised=self.raised, confirmed=self.confirmed, hours=hours)


SILENT_S, TIMES, KNOWN_S = 3600.0, 3.0, 86_400.0
"""A channel is silent after that time, and after so many times its longest silence in a day before,
or more: a plug that is off says nothing for hours."""


class SilentChannels(NamedTuple):
    """For how long channels say nothing, seconds, did at the longest, and are known."""

    lasting: Array
    longest: Array
    known: Array

    @classmethod
    def none(cls, channels: int) -> SilentChannels:
        """Return the state before the first row."""
        return cls(np.zeros(channels), np.zeros(channels), np.zeros(channels))

    @property
    def long(self) -> Mask:
        """Which channels are silent for longer than ever before, (channels,)."""
        least = np.maximum(SILENT_S, TIMES * self.longest)
        return np.asarray((self.known - self.lasting >= KNOWN_S) & (self.lasting > least))

    def after(self, gaps: Mask, each_s: float) -> SilentChannels:
        """Return it after rows with gaps (n, channels)."""
        lasting, longest, known = self
        passed_s = each_s * len(gaps)
        if not gaps.any():
            return SilentChannels(0 * lasting, np.maximum(longest, lasting), known + passed_s)
        for gone in gaps:
            longest = np.where(gone, longest, np.maximum(longest, lasting))
            lasting = np.where(gone, lasting + each_s, 0.0)
        # What was never heard is not known.
        heard = (known > 0) | ~gaps.all(axis=0)
        return SilentChannels(lasting, np.where(known > 0, longest, 0.0), known + passed_s * heard)


class Situation(NamedTuple):
    """What holds for all rows of a block."""

    now: Now
    version: int  # of the model that made the scores
    # whether the node's own mean covers a moment, and a day
    ready: bool = True
    settled: bool = True
    paused: bool = False  # whether an operator has paused learning


@dataclass(frozen=True, slots=True, eq=False)
class AlarmDetector:
    """The state of alarm detection at one node; `DetectorState` is what outlives the process."""

    settings: AlarmSettings
    log: AlarmLog
    hours: WatchedBlocks
    channels: ChannelState
    limits: AlarmLimits = field(default_factory=AlarmLimits)
    # The limits that the open alarm was last compared with.
    judged_by: Mapping[By, float] = field(default_factory=dict)
    scaling: Scaling | None = None  # what values of channels are said in their units with
    recent: RecentScores = field(default_factory=RecentScores)
    errors: tuple[Array, ...] = ()  # (n, channels) each, of the last of - 1 rows and of some more
    highest: HighestSoFar = field(default_factory=HighestSoFar)
    counts_rows: bool = True  # its rows count for `highest`; those of files are judged alone
    group_rows: int = 0  # that the group had learnt when its newest model was made
    aged_rows: int = 0  # the same when `highest` was last aged
    # Statistics that had promised limits: they keep them while half of their maxima are left.
    held: frozenset[By] = frozenset()
    closeness: Closeness = NOT_CLOSE  # of the newest minute's rows; at least 1 with a channel stuck
    silences: SilentChannels | None = None
    duty: DutyCycles | None = None
    departures: Departures | None = None

    @classmethod
    def of(
        cls,
        node: str,
        settings: AlarmSettings,
        names: tuple[str, ...],
        kept: DetectorState | None = None,
        channels: ChannelState | None = None,
        scaling: Scaling | None = None,
    ) -> AlarmDetector:
        """Return the detector of a node with these channels, and what was kept of it."""
        kept, n = kept or DetectorState(), len(names)
        log = AlarmLog(
            node,
            names,
            settings.max_withheld_s,
            tuple(each for each in kept.alarms if each.cause not in BESIDE),
            kept.held_s,
            dict(kept.frozen),
            kept.blame if len(kept.blame) == n else np.zeros(n),
            frozenset(kept.excused),
            kept.raised,
            kept.confirmed,
            beside=tuple(each for each in kept.alarms if each.cause in BESIDE),
        )
        log = replace(log, peak=PeakRow.kept(log.open, names))
        channels = ChannelState.none(n) if channels is None else channels
        hours = WatchedBlocks.of(kept.hours)
        return cls(
            settings,
            log,
            hours,
            channels,
            judged_by=log.frozen,
            scaling=scaling,
            highest=kept.highest,
            held=frozenset(KINDS if hours.watched_s or kept.raised else ()),
        )

    @property
    def kept(self) -> DetectorState:
        """What the next process has to know."""
        log = self.log
        return DetectorState(
            log.listed,
            log.held_s,
            log.frozen,
            log.blame,
            tuple(sorted(log.excused)),
            log.raised,
            log.confirmed,
            self.hours.kept,
            replace(self.highest, newest=None),
        )

    @property
    def stuck(self) -> tuple[int, ...]:
        """Channels that are stuck, and not excused; one with two states stays in each for long."""
        flags = self.channels.habits.stuck
        if self.duty is not None and flags.any():
            flags = flags & ~self.duty.usual
        stuck = np.flatnonzero(flags).tolist()
        return tuple(each for each in stuck if each not in self.log.excused)

    def limit(self, kind: By, *, settled: bool) -> float:
        if self.log.frozen:
            # An alarm of an earlier version may have kept the limit of what that compared.
            before = self.log.frozen.get(STATISTICS[kind].replaces or kind, math.inf)
            return self.log.frozen.get(kind, before)
        return self.limits.limit(kind, self.hours.spared, settled=settled)

    @property
    def often(self) -> float:
        """Allowed false alarms a second; 0 while that is not known."""
        return self.settings.often_per_s(self.row_s)

    @property
    def row_s(self) -> float:
        """Time that a row stands for; 0 while it is not known."""
        return self.settings.period_s or self.hours.correlation.row_s

    def least_news(self, kind: By, rows: int) -> float:
        """Return what a score has to exceed for its statistic to be counted; -1 if any may."""
        least = self.hours.least_news(kind, rows, self.settings)
        is_counted = self.counts_rows and not self.limits.promised
        return min(least, self.highest.least_news(kind)) if is_counted else least

    def with_maxima(
        self,
        maxima: BlockMaxima | None,
        kinds: tuple[By, ...] = raised_by(factors=False),
        widened: float = 1.0,
        block_s: float = 0.0,
        group_rows: int = 0,
    ) -> AlarmDetector:
        """Return it with the limits of `kinds`, `widened`, by the group's newest block maxima."""
        hours = self.hours.of_length(block_s)
        own = hours.tally.maxima
        limits = AlarmLimits.of(maxima, self.settings, kinds, self.row_s, self.held, own)
        limits, held = limits.times(widened), self.held
        # A root that begins again has no maxima at first; nor is a rate of rows one of time yet.
        if maxima is not None and self.often:
            held = frozenset(limits.known if limits.promised else ())
        highest, aged_rows = self.highest, self.aged_rows
        if group_rows >= 2 * aged_rows:
            highest, aged_rows = highest.aged(), group_rows
        new = replace(self, limits=limits, hours=hours, group_rows=group_rows, held=held)
        new = replace(new, highest=highest, aged_rows=aged_rows)
        if new._is_rare(limits):
            return new
        return replace(new, limits=AlarmLimits(armed_in_s=limits.armed_in_s))

    def _is_rare(self, limits: AlarmLimits) -> bool:
        """Return whether limits are exceeded as rarely as the rows of the group allow to say."""
        rows = self.group_rows + self.highest.counted
        wanted_s = min(RARE * rows, LEAST_RARE) * self.row_s
        return limits.provisional_s == 0.0 or limits.provisional_s >= wanted_s

    def settle(self, at: float, moved: Array | float = 0.0) -> AlarmDetector:
        """Return it with the open alarm ended; rows go on from a level that has `moved`."""
        log, channels = self.log.end(at, settled=True), self.channels.relocated(moved)
        return replace(self, log=log, channels=channels, recent=RecentScores(), errors=())

    def begun_again(self, at: float) -> AlarmDetector:
        """Return it with the open alarm ended, and without the typical errors of channels."""
        new = self.settle(at)
        scale = ResidualScale.none(len(new.channels.residual_scale.squares))
        return replace(new, channels=replace(new.channels, residual_scale=scale))

    def with_own_limits(self, at: float) -> AlarmDetector:
        """Return it with provisional limits of its own, if the group has none that are rarer."""
        # A quiet alarm ends with the promised limits: what is unusual by these begins again. An
        # alarm by promised limits is not compared with others: without them it stays open.
        if self.limits.promised:
            if not self.log.is_provisional:
                return self
            return replace(self, log=self.log.end(at), recent=self.recent.finite)
        if self.log.serious is not None:
            return self
        limits = self.highest.over(self.limits, self.row_s)
        # While rows of an open alarm wait, those of the group go on: its limits stay until it ends.
        known = limits is not self.limits and (self.log.open is not None or self._is_rare(limits))
        return replace(self, limits=limits) if known else self

    def counted(
        self,
        even: Mapping[By, Array],
        raised: Array | None,
        sizes: Array,
        alarm: InAlarm,
        situation: Situation,
        passed_s: float,
    ) -> tuple[WatchedBlocks, HighestSoFar]:
        """Return its blocks and `highest` after n rows; `sizes` say how long a block is."""
        settled, n = situation.settled, len(alarm.rows)
        if raised is not None:
            # After a restart the scores before the first row of an open alarm are infinite.
            raised = np.where(np.isfinite(raised), raised, -1.0)
        highest, calm = self.highest, ~alarm.rows
        if self.counts_rows and not self.limits.promised and calm.any():
            each = even if calm.all() else {kind: row[calm] for kind, row in even.items()}
            highest = highest.after(each, raised if raised is None else raised[:, calm])
        limits = self.limits
        if not limits.promised and not self.settings.max_withheld_s:
            # Nothing is withheld where a history is measured: its maxima count as they are.
            limits = replace(limits, known={})
        hours = self.hours.after(
            tuple(even),
            raised if settled else None,
            n,
            passed_s,
            limits,
            self.settings,
            young=not settled,
            scores=sizes,
            alarm=alarm,
        )
        return hours, highest

    def state(self, *, ready: bool, paused: bool, stale: bool) -> State:
        """Return the state of the node; an open alarm goes first."""
        if any(each.is_serious for each in self.log.listed):
            return "alarm"
        if paused:
            return "paused"
        if not self.limits.promised or not ready:
            return "learning"
        return "stale" if stale else "armed"

    def alarm_status(self, state: State, desired: int) -> AlarmStatus:
        return AlarmStatus(
            states=AlarmStatus.at(state),
            alarms=self.log.listed,
            open=sum(each.is_serious for each in self.log.listed),
            watched_s=self.hours.watched_s,
            allowed=self.hours.allowed,
            raised=self.log.raised,
            confirmed=self.log.confirmed,
            armed_in_s=0.0 if self.limits.promised else self.limits.armed_in_s,
            desired=desired,
            provisional_rows=self.limits.provisional_s / self.row_s if self.row_s else 0.0,
        )

    def decide(self, number: int, *, accept: bool, at: float, spares: bool = True) -> AlarmDetector:
        """Return it with a person's verdict on an alarm; itself if nothing changes.

        spares : Whether scores may be as high as they were from now on.
        """
        log = self.log.with_verdict(number, "accepted" if accept else "rejected")
        if log is self.log:
            return self
        if not accept:
            return replace(self, log=log)
        new = self.with_normal(number)
        stays = {c for a in log.beside if a.number == number and a.is_open for c, _ in a.top}
        ended = (each.over(at) if each.number == number else each for each in log.beside)
        log = replace(log, beside=tuple(ended))
        if new.duty is not None and stays:
            stay = np.array([channel in stays for channel in log.channels])
            new = replace(new, duty=new.duty.normal(stay))
        alarm = self.log.open
        if alarm is None or alarm.number != number:
            return replace(new, log=log)
        # Everything in the alarm is normal from now on, whatever raised it.
        return replace(
            new,
            log=replace(log, excused=log.excused | frozenset(self.stuck)).end(at),
            hours=self.hours.spare(alarm.worst, self.judged_by, self.limits),
            recent=self.recent.finite,
        )

    def with_normal(self, number: int) -> AlarmDetector:
        """Return it with channels of an open alarm where they are: they are no further away."""
        found = {c for a in self.log.listed if a.number == number and a.is_open for c, _ in a.top}
        if self.departures is None or not found:
            return self
        channels = np.array([channel in found for channel in self.log.channels])
        return replace(self, departures=self.departures.normal(channels))


# ChannelState: the typical prediction error of each channel of a node, and which ones are stuck.
#
# Each is predicted from all others (`pca.reconstruct`). Its error over its typical one is a
# statistic of its own: one sensor's fault is lost in the sum of fifty. One that repeats a value
# although the others predict changes is stuck (`stats.stuck`).


GATHERED, NUMBERS = 128, 8192
"""Rows, and numbers in them, that are processed together: one row alone costs as much."""


@dataclass(frozen=True, slots=True, eq=False)
class ChannelState:
    """What a node knows of its channels; rows that are `gathered` are not processed yet."""

    run_lengths: RunLengths
    habits: Habits
    residual_scale: ResidualScale
    gathered: tuple[tuple[Array, Array, Array, Mask, Mask], ...] = ()
    waiting: int = 0
    passed_s: float = 0.0

    @classmethod
    def none(cls, channels: int) -> ChannelState:
        """Return the state before the first row."""
        return cls(RunLengths.none(channels), Habits.none(channels), ResidualScale.none(channels))

    @property
    def widths(self) -> set[int]:
        """Numbers of channels of its parts: more than one if the parts do not belong together."""
        return {
            len(self.run_lengths.last),
            len(self.habits.weight),
            len(self.residual_scale.squares),
        }

    @property
    def stuck_detector(self) -> StuckDetector:
        """The detector of stuck channels, in this state."""
        return StuckDetector(len(self.residual_scale.squares), self.run_lengths, self.habits)

    def relocated(self, by: Array | float = 0.0) -> ChannelState:
        """Return it where rows are measured from another mean; rows that wait are dropped."""
        habits = self.habits.relocated(by)
        return ChannelState(self.run_lengths, habits, self.residual_scale)

    def after(
        self,
        block: Block,
        scores: RowScores,
        normal: Mask,
        passed_s: float,
        factors: Array | None = None,
        whole: tuple[Block, RowScores] | None = None,
    ) -> ChannelState:
        """Return the state after a block: errors are of `normal` rows, clipped by factors.

        whole : The block with channels that are set aside; what they do meanwhile is no habit.
        """
        n = len(self.residual_scale.squares)
        errors, usual = scores.sure_errors, normal if whole is None else np.zeros_like(normal)
        errors = errors if factors is None else errors * factors[:, None]
        unknown = ~normal[:, None] if block.gaps is None else block.gaps[:, :n] | ~normal[:, None]
        errors = np.where(unknown, np.nan, errors)
        block, scores = whole or (block, scores)
        rows, shown = block.rows[:, :n], block.known(n)
        held = np.zeros(shown.shape, dtype=bool) if block.held is None else block.held[:, :n]
        predicted = rows - scores.left_out
        gathered = (*self.gathered, (shown, predicted, errors, usual, held))
        waiting, passed_s = self.waiting + len(rows), self.passed_s + passed_s
        if waiting < min(GATHERED, max(1, NUMBERS // n)):
            known = self.run_lengths, self.habits, self.residual_scale
            return ChannelState(*known, gathered, waiting, passed_s)
        shown, predicted, errors, usual, held = gathered[0]
        if len(gathered) > 1:
            shown, predicted, errors, usual, held = (
                np.concatenate(each) for each in zip(*gathered, strict=True)
            )
        stuck_detector = self.stuck_detector
        stuck_detector.update(shown, predicted, usual, held if held.any() else None)
        some = ~np.isnan(errors).all(axis=1)
        scale = self.residual_scale.after(errors[some], passed_s * float(some.mean()))
        return ChannelState(stuck_detector.run_lengths, stuck_detector.habits, scale)
