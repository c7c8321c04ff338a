"""Asides: open quiet alarms whose channels are set aside, so that what breaks beside them is seen.

On the first days much is new that is no fault, and lasts for hours: a computer, a lamp. One alarm
for all of a node would hide each fault of that time, and limits that rose with it each fault after
it. So once the rows of a quiet alarm have shown which channels are to blame, these are set aside:
rows are scored without them, as if they were gaps, and new alarms and limits follow from that. An
alarm that is set aside is followed by scores of rows without the channels of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from submerge._linalg import Array
from submerge.client.alarms.detect import watch
from submerge.client.alarms.detector import (
    AlarmDetector,
    Closeness,
    RecentScores,
    Situation,
    row_statistics,
)
from submerge.client.alarms.log import AlarmLog, PeakRow
from submerge.client.alarms.new_level import NewLevel
from submerge.judge.decision import Decision, Mask
from submerge.judge.prepare import Block
from submerge.judge.score import RowScores, ScoringModel, score
from submerge.pca.expectation import TINY
from submerge.protocol.alarm_status import Alarm
from submerge.stats.node_mean import OwnMean
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.statistic import STATISTICS, averaged

SETTLES = 16
"""Rows of an alarm by which its channels are found; as many as its statistics need, if more."""

MOST_CHANNELS, MOST_ALARMS = 8, 4
"""Channels of one alarm that are set aside at most, and alarms."""

NAMED = 0.5
"""Share of the most blamed channel's blame, from which another is set aside in a new process."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRows:
    """Rows of a node, as a model scores them about a mean, with and without some channels."""

    block: Block
    scores: RowScores | None
    model: ScoringModel
    own: OwnMean | None
    scale: ResidualScale
    lags: int

    def without(
        self, channels: Mask | None, mean: OwnMean | None = None
    ) -> tuple[Block, RowScores]:
        """Return the block with gaps in place of channels (n,), and its scores.

        mean : What they are scored about in place of `own`.
        """
        block, about = self.block, self.own if mean is None else mean
        if channels is not None:
            fill = partial(self.model.filled, own=about)
            block = block.without(np.tile(channels, self.lags), fill)
        elif self.scores is not None and mean is None:
            return block, self.scores
        return block, score(block, self.model, about, self.scale)

    def about(self, level: OwnMean, others: Mask | None, channels: Mask | None) -> RowScores:
        """Return scores without others about a level: of some channels, what these add to them."""
        if channels is None:
            return self.without(others, level)[1]
        _, bare = self.without(channels if others is None else channels | others)
        center = self.model.center(self.own)
        rows = np.where(np.tile(channels, self.lags), level.rows, center)
        _, found = self.without(others, replace(level, rows=rows))
        even = {by: np.maximum(each - bare.even[by], 0.0) for by, each in found.even.items()}
        return replace(found, even=even)


@dataclass(frozen=True, slots=True, eq=False)
class Aside:
    """An open quiet alarm with channels (n,) of its own: `log` knows it alone."""

    log: AlarmLog
    channels: Mask
    recent: RecentScores = field(default_factory=RecentScores)
    errors: tuple[Array, ...] = ()
    level: NewLevel | None = None  # where its rows are

    @property
    def alarm(self) -> Alarm:
        return self.log.alarms[0]

    def at(self, main: AlarmDetector) -> AlarmDetector:
        """Return a detector of it alone. A stuck channel is an alarm of the node, not of it."""
        stuck = frozenset(np.flatnonzero(main.channels.habits.stuck).tolist())
        log = replace(self.log, excused=stuck)
        return replace(main, log=log, recent=self.recent, errors=self.errors)

    def after(
        self, main: AlarmDetector, block: Block, scores: RowScores, situation: Situation
    ) -> tuple[Aside, Decision, Closeness]:
        """Return it after a block without the channels of the others, by the limits of `main`.

        With it the decision on the rows, and how close they or those of `main` came to an alarm.
        """
        found, decision = watch(self.at(main), block, scores, situation)
        own = tuple(each for each in found.log.alarms if each.number == self.alarm.number)
        if not own[0].is_open:
            # What began since is seen once its channels are back.
            since = np.logical_or.accumulate(~decision.alarmed)
            alarmed, withheld = decision.alarmed & ~since, decision.withheld & ~since
            decision = Decision(alarmed, withheld, decision.factors)
        log = replace(found.log, alarms=own)
        aside = replace(self, log=log, recent=found.recent, errors=found.errors)
        return aside, decision, found.closeness


@dataclass(frozen=True, slots=True, eq=False)
class Asides:
    """All alarms that are set aside, and how far the one that is not has come."""

    each: tuple[Aside, ...] = ()
    number: int = 0  # of the open alarm that is not
    rows: int = 0  # since that began

    @classmethod
    def restored(cls, detector: AlarmDetector) -> tuple[Asides, AlarmDetector]:
        """Return those of a process that ended, and the detector without their alarms.

        Where their rows are is not known any more: the patience with them begins again. One alone
        stays at the detector: it may be of the whole node.
        """
        log, found = detector.log, cls()
        several = sum(alarm.is_open for alarm in log.alarms) > 1
        # The oldest were the surest.
        for alarm in reversed(log.alarms if several else ()):
            blame = _blame_of(log, alarm)
            channels = blame >= max(NAMED * blame.max(), TINY)
            if alarm.is_open and alarm.provisional and channels.any() and found._may(channels):
                own = replace(log, alarms=(alarm,), beside=(), blame=blame, held_s=0.0)
                own = replace(own, peak=PeakRow.kept(alarm, log.channels))
                found = replace(found, each=(*found.each, Aside(own, channels)))
        numbers = {each.alarm.number for each in found.each}
        others = tuple(alarm for alarm in log.alarms if alarm.number not in numbers)
        others = (*others[:1], *(alarm.over(alarm.peaked) for alarm in others[1:]))
        if others and not log.blame.any():
            log = replace(log, blame=_blame_of(log, others[0]))
        log = (
            replace(log, alarms=others, peak=PeakRow.kept(others[0], log.channels))
            if (others)
            else replace(log, alarms=())
        )
        return found, replace(detector, log=replace(log, set_aside=found.alarms))

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        return tuple(each.alarm for each in self.each)

    @property
    def withholds(self) -> bool:
        return any(each.log.withholds for each in self.each)

    @property
    def channels(self) -> Mask | None:
        """The channels that are set aside; None if none is."""
        return _any([each.channels for each in self.each])

    def others(self, aside: Aside, log: AlarmLog) -> Mask | None:
        """Return the channels of the other open alarms, also of one that is not set aside."""
        masks = [each.channels for each in self.each if each is not aside]
        if log.open is not None:
            masks.append(_blame_of(log, log.open) > 0)
        return _any(masks)

    def _may(self, channels: Mask) -> bool:
        """Whether enough is left to score without these channels, too."""
        both = _any([channels, *(each.channels for each in self.each)])
        return len(self.each) < MOST_ALARMS and both is not None and 2 * both.sum() <= len(both)

    def with_rows(self, detector: AlarmDetector, rows: int) -> tuple[Asides, bool]:
        """Return it after rows of the open alarm; and whether to look for its channels now."""
        alarm, log = detector.log.open, detector.log
        # Scores of files are those of all channels, next to the limits that they are told with.
        quiet = alarm is not None and alarm.provisional and detector.counts_rows
        if alarm is None or not quiet or not log.blame.any():
            return replace(self, number=0, rows=0), False
        before = self.rows if alarm.number == self.number else 0
        now, settles = before + rows, needed_rows(detector)
        # It is done at each doubling: where channels cannot be told apart now, they may be later.
        due = (now // settles).bit_length() > (before // settles).bit_length()
        return replace(self, number=alarm.number, rows=now), due

    def to_set_aside(self, detector: AlarmDetector, newest: ScoredRows) -> Mask | None:
        """Return few channels without which rows of the open alarm are calm; None if many.

        Of those that are left, the next is that without which the squared distance falls most: by
        the square of its error over that expected. Without factors it is the one most blamed. Of
        those found, each is left out again without which the others are enough.
        """
        out, falls = self.channels, detector.log.blame
        channels = np.zeros(len(falls), dtype=bool)
        if len(newest.block) < needed_rows(detector):
            return None

        def without(some: Mask) -> RowScores:
            return newest.without(some if out is None else some | out)[1]

        scores = without(channels)
        while not (channels.any() and _is_calm(detector, scores)):
            if channels.sum() >= MOST_CHANNELS:
                return None
            if scores.distance is not None and scores.expected is not None:
                falls = np.square(scores.errors).mean(axis=0) / np.maximum(scores.expected, TINY)
            channels[np.where(channels, -1.0, falls).argmax()] = True
            if not self._may(channels):
                return None
            scores = without(channels)
        for j in np.flatnonzero(channels).tolist():
            fewer = channels & (np.arange(len(channels)) != j)
            if fewer.any() and _is_calm(detector, without(fewer)):
                channels = fewer
        return channels

    def with_alarm(
        self, detector: AlarmDetector, channels: Mask, level: NewLevel | None
    ) -> tuple[Asides, AlarmDetector]:
        """Return it with the open alarm of a detector, which goes on without that."""
        log, none = detector.log, np.zeros(len(channels))
        own = replace(log, alarms=log.alarms[:1], beside=(), set_aside=())
        new = Aside(own, channels, detector.recent, detector.errors, level)
        asides, peak = Asides((*self.each, new)), PeakRow.kept(None, ())
        log = replace(log, alarms=log.alarms[1:], held_s=0.0, blame=none, peak=peak)
        log = replace(log, set_aside=asides.alarms)
        return asides, replace(detector, log=log, recent=RecentScores(), errors=())

    def without_ended(self, detector: AlarmDetector, at: float) -> tuple[Asides, AlarmDetector]:
        """Return both where alarms have ended; quiet ones end with the promised limits."""
        log, highest, left = detector.log, detector.highest, []
        for each in self.each:
            alarm = each.alarm.over(at) if detector.limits.promised else each.alarm
            if alarm.is_open:
                left.append(each)
                continue
            log = log.with_ended(alarm)
            known = detector.limits.known.items()
            if not alarm.verdict and not alarm.settled:
                highest = highest.at_least({by: most for by, most in known if by == alarm.cause})
        asides = replace(self, each=tuple(left))
        return asides, replace(detector, log=replace(log, set_aside=asides.alarms), highest=highest)

    def of(self, number: int) -> Aside | None:
        """Return the one with that alarm; None if it is not set aside."""
        return next((each for each in self.each if each.alarm.number == number), None)

    def judged(
        self, detector: AlarmDetector, aside: Aside, *, accept: bool, at: float
    ) -> tuple[Asides, AlarmDetector]:
        """Return both with a person's verdict on one."""
        log = aside.log.with_verdict(aside.alarm.number, "accepted" if accept else "rejected")
        detector = detector.with_normal(aside.alarm.number) if accept else detector
        log = replace(log, alarms=(log.alarms[0].over(at),)) if accept else log
        one = replace(aside, log=log)
        confirmed = detector.log.confirmed + log.confirmed - aside.log.confirmed
        detector = replace(detector, log=replace(detector.log, confirmed=confirmed))
        asides = replace(self, each=tuple(one if each is aside else each for each in self.each))
        return asides.without_ended(detector, at)


def needed_rows(detector: AlarmDetector) -> int:
    """Return by how many rows the channels of an alarm are found."""
    return max(SETTLES, detector.settings.of)


def _any(masks: Sequence[Mask]) -> Mask | None:
    return np.asarray(np.any(masks, axis=0)) if masks else None


def _blame_of(log: AlarmLog, alarm: Alarm) -> Array:
    """Return the shares of channels that an alarm names, (n,)."""
    shares = dict(alarm.top)
    return np.array([shares.get(name, 0.0) for name in log.channels])


def _is_calm(detector: AlarmDetector, scores: RowScores) -> bool:
    """Whether rows, as many as are needed, are below the limits of an open alarm."""
    settings, limit = detector.settings, partial(detector.limit, settled=True)
    even = RecentScores().watched(scores.even, limit)
    kinds = tuple(even)
    means = {kind: scores.even[STATISTICS[kind].of].mean() for kind in averaged(kinds)}
    span = np.array(list(even.values()))[:, -settings.of :]
    newest = row_statistics(kinds, span, settings.of, settings.after)[:, -1]
    found = {**dict(zip(kinds, newest, strict=True)), **means}
    return all(found[kind] <= limit(kind) for kind in kinds)
