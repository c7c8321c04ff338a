"""Asides: open quiet alarms whose channels are set aside, so that what breaks beside them is seen.

On the first days much is new that is no fault, and lasts for hours: a computer, a lamp. One alarm
for all of a node would hide each fault of that time, and limits that rose with it each fault after
it. So once the rows of a quiet alarm have shown which channels are to blame, these are set aside:
rows are scored without them, as if they were gaps, and new alarms and limits follow from that. An
alarm that is set aside is followed by scores of rows without the channels of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from submerge.client.alarms.detect import watch
from submerge.client.alarms.detector import AlarmDetector, RecentScores, Situation, row_statistics
from submerge.client.alarms.log import AlarmLog, PeakRow
from submerge.client.alarms.new_level import NewLevel
from submerge.judge.decision import Decision, Mask
from submerge.judge.prepare import Block
from submerge.judge.score import RowScores, ScoringModel, score
from submerge.protocol.alarm_status import Alarm
from submerge.stats.node_mean import OwnMean
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.statistic import STATISTICS, averaged

SETTLES = 16
"""Rows of an alarm by which its channels are found."""

MOST = 8
"""Channels of one alarm that are set aside at most, and alarms."""


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
    """An open quiet alarm with channels (n,) of its own; `detector` knows no other alarm."""

    detector: AlarmDetector
    channels: Mask
    level: NewLevel | None = None  # where its rows are

    @property
    def alarm(self) -> Alarm:
        return self.detector.log.alarms[0]

    def after(
        self, main: AlarmDetector, block: Block, scores: RowScores, situation: Situation
    ) -> tuple[Aside, Decision]:
        """Return it after a block without the channels of the others, by the limits of `main`."""
        same = replace(self.detector, limits=main.limits, channels=main.channels)
        found, decision = watch(same, block, scores, situation)
        if found.log.alarms[0].number != self.alarm.number:
            # It has ended; what began since is seen once its channels are back.
            log = replace(found.log, alarms=found.log.alarms[1:2])
            found = replace(found, log=log)
        return replace(self, detector=found), decision


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
        log, found, names = detector.log, cls(), detector.log.channels
        several = sum(alarm.is_open for alarm in log.alarms) > 1
        for alarm in log.alarms if several else ():
            channels = _named(log, alarm)
            if not (alarm.is_open and alarm.is_quiet and channels.any() and found._may(channels)):
                continue
            blame = np.zeros(len(names))
            for name, share in alarm.top:
                blame[[each == name for each in names]] = share
            own = replace(log, alarms=(alarm,), silences=(), blame=blame, held_s=0.0)
            own = replace(own, peak=PeakRow.kept(alarm, names))
            aside = Aside(replace(detector, log=own), channels)
            found = replace(found, each=(*found.each, aside))
        numbers = {each.alarm.number for each in found.each}
        others = tuple(alarm for alarm in log.alarms if alarm.number not in numbers)
        others = (*others[:1], *(alarm.over(alarm.peaked) for alarm in others[1:]))
        return found, replace(detector, log=replace(log, alarms=others, beside=found.alarms))

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        return tuple(each.alarm for each in self.each)

    @property
    def withholds(self) -> bool:
        return any(each.detector.log.withholds for each in self.each)

    @property
    def channels(self) -> Mask | None:
        """The channels that are set aside; None if none is."""
        masks = [each.channels for each in self.each]
        return np.asarray(np.any(masks, axis=0)) if masks else None

    def others(self, aside: Aside, log: AlarmLog) -> Mask | None:
        """Return the channels of the other open alarms, also of one that is not set aside."""
        masks = [each.channels for each in self.each if each is not aside]
        if log.open is not None:
            masks.append(_named(log, log.open))
        return np.asarray(np.any(masks, axis=0)) if masks else None

    def _may(self, channels: Mask) -> bool:
        """Whether enough is left to score without these channels, too."""
        out = self.channels
        both = channels if out is None else channels | out
        return len(self.each) < MOST and bool(2 * both.sum() <= len(both))

    def with_rows(self, detector: AlarmDetector, rows: int) -> tuple[Asides, bool]:
        """Return it after rows of the open alarm; and whether to look for its channels now."""
        alarm, log = detector.log.open, detector.log
        # Scores of files are those of all channels, next to the limits that they are told with.
        quiet = alarm is not None and alarm.is_quiet and detector.counts_rows
        if alarm is None or not quiet or not log.blame.any():
            return replace(self, number=0, rows=0), False
        before = self.rows if alarm.number == self.number else 0
        now = before + rows
        # It is dear, and what cannot be told apart may be later.
        due = now >= SETTLES and (now // SETTLES).bit_length() > (before // SETTLES).bit_length()
        return replace(self, number=alarm.number, rows=now), due

    def to_set_aside(self, detector: AlarmDetector, newest: ScoredRows) -> Mask | None:
        """Return the fewest channels without which rows of the open alarm are calm; None if many.

        Of those that are left, the next is that without which the squared distance falls most: by
        the square of its error over that expected. Without factors it is the one most blamed.
        """
        out, falls = self.channels, detector.log.blame
        channels = np.zeros(len(falls), dtype=bool)
        for _ in range(MOST + 1):
            _, scores = newest.without(channels if out is None else channels | out)
            if channels.any() and _is_calm(detector, scores):
                return channels
            if scores.distance is not None and scores.expected is not None:
                least = np.maximum(scores.expected, np.finfo(np.float64).tiny)
                falls = np.square(scores.errors).mean(axis=0) / least
            channels[np.where(channels, -1.0, falls).argmax()] = True
            if not self._may(channels):
                return None
        return None

    def with_alarm(
        self, detector: AlarmDetector, channels: Mask, level: NewLevel | None
    ) -> tuple[Asides, AlarmDetector]:
        """Return it with the open alarm of a detector, which goes on without that."""
        log = detector.log
        own = replace(log, alarms=log.alarms[:1], silences=(), beside=())
        asides = Asides((*self.each, Aside(replace(detector, log=own), channels, level)))
        log = replace(log, alarms=log.alarms[1:], beside=asides.alarms)
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
        return asides, replace(detector, log=replace(log, beside=asides.alarms), highest=highest)

    def of(self, number: int) -> Aside | None:
        """Return the one with that alarm; None if it is not set aside."""
        return next((each for each in self.each if each.alarm.number == number), None)

    def given_back(self, detector: AlarmDetector, one: Aside) -> tuple[Asides, AlarmDetector]:
        """Return both with the alarm of one at the detector, in place of an open one."""
        asides = replace(self, each=tuple(each for each in self.each if each is not one))
        if (alarm := detector.log.open) is not None:
            channels = _named(detector.log, alarm)
            asides, detector = asides.with_alarm(detector, channels, None)
        own, log = one.detector.log, detector.log
        log = replace(
            own,
            alarms=(one.alarm, *log.alarms),
            silences=log.silences,
            beside=asides.alarms,
            excused=log.excused,
            raised=log.raised,
            confirmed=log.confirmed,
        )
        return asides, replace(detector, log=log, recent=one.detector.recent)


def _named(log: AlarmLog, alarm: Alarm) -> Mask:
    """Return the channels that an alarm names, (n,)."""
    return np.isin(log.channels, [name for name, _ in alarm.top])


def _is_calm(detector: AlarmDetector, scores: RowScores) -> bool:
    """Whether rows, some sixteen of them, are below the limits of an open alarm."""
    settings, limit = detector.settings, partial(detector.limit, settled=True)
    even = RecentScores().watched(scores.even, limit)
    kinds = tuple(even)
    means = {kind: scores.even[STATISTICS[kind].of].mean() for kind in averaged(kinds)}
    span = np.array(list(even.values()))[:, -settings.of :]
    newest = row_statistics(kinds, span, settings.of, settings.after)[:, -1]
    found = {**dict(zip(kinds, newest, strict=True)), **means}
    return all(found[kind] <= limit(kind) for kind in kinds)
