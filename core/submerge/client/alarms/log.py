"""AlarmLog: the alarms of one node, as a value; of the open one all else that is known.

Others may be open beside it: of channels that are silent or stay at one of two states, and those
that are set aside (`asides`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.client.alarms.limits import AlarmLimits
from submerge.judge.decision import Mask
from submerge.judge.prepare import Block
from submerge.judge.score import RowScores
from submerge.pca.reconstruct import NO_PAIRS, SURE, Pairs
from submerge.protocol.alarm_status import (
    BESIDE,
    MOST_OF_NODE,
    REMEMBERED,
    TOP,
    Alarm,
    Cause,
    Deviation,
    Looks,
    Verdict,
    most_urgent_first,
)
from submerge.schema import Scaling
from submerge.stats.duty import Shown
from submerge.stats.statistic import By

# Evidence: which channels the rows of an alarm speak against, and by how much in their units.
#
# Errors of the `of` - 1 rows before a block are remembered: they may be of the alarm. Blame may
# change after its highest row, so that row is kept for all channels (`PeakRow`).


Devices = tuple[tuple[int, ...], ...]


@lru_cache
def devices_of(channels: tuple[str, ...]) -> Devices:
    """Return the channels that one device measures, `device/field`, where there are several."""
    found: dict[str, list[int]] = {}
    for j, channel in enumerate(channels):
        found.setdefault(channel.rpartition("/")[0] or channel, []).append(j)
    # What has most of the channels is the machine.
    return tuple(tuple(each) for each in found.values() if 1 < len(each) <= len(channels) / 2)


class PeakRow(NamedTuple):
    """The highest of an alarm's rows over a limit; channels in their units, NaN where not known."""

    ratio: float  # its score over its limit; 0 before there is one
    values: Array
    expected: Array

    @classmethod
    def kept(cls, alarm: Alarm | None, names: tuple[str, ...]) -> PeakRow:
        """Return what an alarm says of it: only of the channels that it names."""
        values, expected = np.full((2, len(names)), np.nan)
        said = alarm.deviations if alarm is not None else ()
        for each in said:
            if each.channel in names:
                j = names.index(each.channel)
                values[j], expected[j] = each.value, each.expected
        return cls(alarm.worst if alarm is not None and said else 0.0, values, expected)

    def deviations(self, names: tuple[str, ...], channels: list[int]) -> tuple[Deviation, ...]:
        """Return how far channels are from their predictions, of those that are known."""
        return tuple(
            Deviation(names[j], float(self.values[j]), float(self.expected[j]))
            for j in channels
            if not np.isnan(self.values[j])
        )


MOST_VALUE = 1e300
"""Largest reading that is told: in its unit it has to stay finite."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The errors of a block's rows (n, channels), scaled, NaN for a gap, and of `before` rows."""

    scores: RowScores  # `errors` are (before + n, channels)
    before: int
    rows: Array
    scaling: Scaling | None
    came: Array | None = None  # the rows before they were bounded
    explains: bool = False  # whether distances fall by the squares of these errors, and no lags

    @classmethod
    def of(
        cls, earlier: tuple[Array, ...], block: Block, scores: RowScores, scaling: Scaling | None
    ) -> Evidence | None:
        """Return the evidence of a block after `earlier` errors, if anything predicts channels."""
        if scores.expected is None:
            return None
        errors = np.concatenate((*earlier, scores.errors))
        before = len(errors) - len(block)
        rows = block.rows[:, : errors.shape[1]]
        if block.gaps is not None:
            # What fills a gap is no reading: a person would look for it in vain.
            rows = np.where(block.gaps[:, : errors.shape[1]], np.nan, rows)
        explains = block.rows.shape == scores.errors.shape and scores.linear is None
        scores = replace(scores, errors=errors)
        return cls(scores, before, rows, scaling, block.came, explains)

    def shares(self, rows: npt.NDArray[np.intp]) -> Array:
        """Return the mean share of each channel in rows of the block; -1 is the row before it."""
        known = rows[rows >= -self.before] + self.before
        return np.asarray(self.scores.blame(known).sum(axis=0) / max(1, len(known)))

    def left(self, rows: npt.NDArray[np.intp], devices: Devices) -> Array | None:
        """Return squared distances without each device and, last, with all: (n, channels + 1)."""
        rows, scorer = rows[rows >= 0], self.scores.scorer if self.explains else None
        if scorer is None or scorer.expected is None or "distance" not in self.scores.even:
            return None
        falls = scorer.falls(np.nan_to_num(self.scores.errors[rows + self.before]), devices)
        return np.asarray(
            self.scores.even["distance"][rows, None] - np.pad(falls, ((0, 0), (0, 1)))
        )

    def at(self, row: int, ratio: float) -> PeakRow:
        """Return one of the block's rows in units, whose score is `ratio` times its limit."""
        values = self.rows[row]
        farther = 1.0 if self.scores.farther is None else self.scores.farther[row]
        expected = values - farther * self.scores.errors[row + self.before]
        if self.came is not None:
            came = self.came[row, : len(values)]
            values = np.where(np.abs(came) < math.inf, came, values)
        if self.scaling is not None:
            n = len(values)
            offset, scale = np.array(self.scaling.offset[:n]), np.array(self.scaling.scale[:n])
            values, expected = values * scale + offset, expected * scale + offset
        return PeakRow(ratio, np.clip(values, -MOST_VALUE, MOST_VALUE), expected)


def last_errors(earlier: tuple[Array, ...], errors: Array, rows: int) -> tuple[Array, ...]:
    """Return the errors of the last `rows`, as blocks: joining few costs as much as a score."""
    if len(errors) >= rows:
        return (errors[len(errors) - rows :].copy(),)
    known = (*earlier, errors)
    more = sum(map(len, known)) - rows
    while more > 0 and len(known[0]) <= more:
        more -= len(known[0])
        known = known[1:]
    return known


BLAMED = 256
"""Rows over their limit that the blame of an alarm covers; with more, the earlier ones fade."""

MOST_LEFT, MOST_OF_IT = 1.5, 0.14
"""Most that may be left of squared distances without one channel for an alarm to look like a
sensor's: over the highest of an ordinary block, or of what they exceed that by."""

TOLD, AWAY_S, WORSE = 3, 86_400.0, 2.0
"""An alarm of a channel that people were told of so often, each within that time of the end of the
one before, is repeated; unless it is that many times worse than all of those."""

PATIENCE, LESS = 2.0, 0.125
"""Longest time that rows of a quiet alarm are withheld, over that between false alarms: its
limits know little of what takes longer. Less where they keep to no level: on the first days most
of what is new is no fault, and has to be learnt."""


@dataclass(frozen=True, slots=True, eq=False)
class AlarmLog:
    """The alarms of one node, the open one first; the rest as in `DetectorState`."""

    node: str
    channels: tuple[str, ...]
    max_withheld_s: float
    alarms: tuple[Alarm, ...] = ()
    held_s: float = 0.0
    frozen: Mapping[By, float] = field(default_factory=dict)
    blame: Array = field(default_factory=lambda: np.zeros(0))
    excused: frozenset[int] = frozenset()
    raised: int = 0
    confirmed: int = 0
    peak: PeakRow = field(default_factory=lambda: PeakRow.kept(None, ()))
    provisional_s: float = math.inf  # infinite while it is not known
    patience: float = PATIENCE  # `LESS` once rows of the open alarm keep to no level
    beside: tuple[Alarm, ...] = ()  # of `BESIDE`
    set_aside: tuple[Alarm, ...] = ()
    # (channels + 2,). Sums of distances without each channel and with all, and number of rows.
    left: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def listed(self) -> tuple[Alarm, ...]:
        """All alarms that a node lists, open ones first."""
        if not (self.beside or self.set_aside):
            return self.alarms
        known = self.alarms + self.beside + self.set_aside
        return tuple(sorted(known, key=most_urgent_first)[:MOST_OF_NODE])

    @property
    def open(self) -> Alarm | None:
        """The open alarm, if there is one."""
        return self.alarms[0] if self.alarms and self.alarms[0].is_open else None

    @property
    def serious(self) -> Alarm | None:
        """The open alarm, unless it is provisional."""
        return None if self.is_provisional else self.open

    @property
    def is_provisional(self) -> bool:
        return self.open is not None and self.open.provisional

    @property
    def withholds(self) -> bool:
        """Whether there is an open alarm whose rows are not learnt."""
        alarm = self.open
        if alarm is None:
            return False
        return alarm.verdict == "rejected" or self.held_s < self.longest_s

    @property
    def longest_s(self) -> float:
        """How long rows of the open alarm are withheld without a verdict."""
        patience_s = self.patience * self.provisional_s if self.is_provisional else math.inf
        return min(self.max_withheld_s, patience_s)

    def names(self, channel: str, since: float) -> bool:
        """Return whether an open alarm names a channel first; a quiet one has begun since."""
        told = (a for a in self.listed if a.is_open and (a.began >= since or not a.provisional))
        return any(channel in dict((*a.first[:1], *a.top[:1])) for a in told)

    def begin(self, at: float, cause: Cause, version: int, limits: AlarmLimits) -> AlarmLog:
        """Return it with an alarm; it counts as raised where limits keep their promise."""
        alarm = self._new(at, cause, version)
        # A stuck channel needs no limit.
        if cause != "stuck":
            alarm = replace(alarm, provisional=limits.provisional_s > 0)
        return replace(
            self,
            alarms=(alarm, *self.alarms[:REMEMBERED]),
            held_s=0.0,
            patience=PATIENCE,
            blame=np.zeros(len(self.channels)),
            left=np.zeros(0),
            raised=self.raised + limits.promised,
            peak=PeakRow.kept(None, self.channels),
        )

    def _new(self, at: float, cause: Cause, version: int) -> Alarm:
        earlier = (*self.alarms, *self.beside, *self.set_aside)
        number = max(int(at * 1000), 1, *(alarm.number + 1 for alarm in earlier))
        return Alarm(self.node, number, at, at, 0.0, 0.0, cause, (), version)

    def hear(
        self,
        cause: Cause,
        lasts: Mask,
        begins: Mask,
        at: float,
        version: int,
        *,
        early: bool = False,
    ) -> AlarmLog:
        """Return it where a cause lasts for some channels, and begins for others: (channels,)."""
        over = {self.channels[j] for j in np.flatnonzero(~lasts)}
        open_ones = [alarm for alarm in self.beside if alarm.is_open and alarm.cause == cause]
        known = {channel for alarm in open_ones for channel, _ in alarm.top}
        beside = tuple(
            alarm.over(at) if alarm in open_ones and over.issuperset(dict(alarm.top)) else alarm
            for alarm in self.beside
        )
        new = [self.channels[j] for j in np.flatnonzero(begins)]
        new = [channel for channel in new if channel not in known]
        if new:
            top = tuple((channel, 1 / len(new)) for channel in new[:TOP])
            new_one = self._new(at, cause, version)
            alarm = replace(new_one, top=top, first=top, provisional=early)
            alarm = replace(alarm, repeated=self._is_repeated(alarm))
            if len(new) == 1:
                alarm = replace(alarm, looks=Looks("sensor", len(self.channels) - 1, 0.0))
            held = [each for each in beside if each.is_open]
            ended = [each for each in beside if not each.is_open]
            beside = (alarm, *held, *ended[: max(0, REMEMBERED - 1 - len(held))])
        return replace(self, beside=beside)

    def showing(
        self, cause: Cause, shown: Callable[[int], Shown], at: float, scaling: Scaling | None
    ) -> AlarmLog:
        """Return it with how far the first channels of such alarms have come, by their indices."""
        beside = list(self.beside)
        for i, alarm in enumerate(beside):
            if not alarm.is_open or alarm.cause != cause:
                continue
            channel, j = alarm.top[0][0], self.channels.index(alarm.top[0][0])
            since_s, times, *levels = shown(j)
            if alarm.worst and times < alarm.worst + 1:
                continue
            if scaling is not None:
                levels = [scaling.offset[j] + scaling.scale[j] * each for each in levels]
            began = alarm.began if alarm.worst else at - since_s
            off = (Deviation(channel, *levels),)
            beside[i] = replace(alarm, began=began, worst=times, peaked=at, deviations=off)
        return replace(self, beside=tuple(beside))

    def worsen(self, ratio: float, cause: Cause, at: float) -> AlarmLog:
        """Return it with a row of the open alarm whose score is `ratio` times its limit."""
        alarm = self.alarms[0]
        if ratio <= alarm.worst:
            return self
        cause = alarm.cause if alarm.cause == "stuck" else cause
        log = self._amend(worst=ratio, cause=cause, peaked=at)
        if cause == "stuck" or (alarm.worst and not alarm.repeated):
            return log
        return log._amend(repeated=log._is_repeated(log.alarms[0]))

    def _is_repeated(self, alarm: Alarm) -> bool:
        """Return whether people were told often enough of alarms like a new one."""
        told, worst, since = 0, 0.0, alarm.began
        known = self.beside if alarm.cause in BESIDE else self.alarms
        for each in sorted(known, key=lambda each: -each.began):
            if each.number == alarm.number or each.provisional:
                continue
            if dict(each.top[:1]).keys() != dict(alarm.first[:1]).keys():
                continue
            if since - each.ended > AWAY_S or each.verdict == "rejected":
                break
            told += TOLD if each.repeated else 1  # those before it may be forgotten
            worst, since = max(worst, each.worst), each.began
        return told >= TOLD and alarm.worst <= WORSE * worst

    def hold(self, rows: int, each_s: float) -> tuple[AlarmLog, int]:
        """Return it after more rows of the open alarm, and how many of them are withheld."""
        alarm, left_s, held = self.alarms[0], self.longest_s - self.held_s, 0
        if alarm.verdict == "rejected":
            held = rows
        elif left_s > 0:
            held = rows if not each_s else min(rows, math.ceil(left_s / each_s))
        log, held_s = self._amend(withheld=alarm.withheld + held), self.held_s + each_s * rows
        # Where limits rise, a quiet alarm whose time is over must not withhold again.
        held_s = held_s if held_s < self.longest_s else max(held_s, self.max_withheld_s)
        return replace(log, held_s=held_s), held

    def accuse(self, shares: Array, rows: int) -> AlarmLog:
        """Return it with blame for more rows of the open alarm, in shares (channels,)."""
        alarm = self.alarms[0]
        blame = max(0.0, 1 - rows / BLAMED) * self.blame + rows * shares
        whole, log = float(blame.sum()), replace(self, blame=blame)
        if whole <= 0:
            return log
        top = tuple((self.channels[j], float(blame[j]) / whole) for j in _largest(blame))
        # No row has counted yet: these are the rows that raise it.
        return log._amend(top=top, first=alarm.first if alarm.worst else top)._deviating()

    def remaining(self, left: Array, usual: float, pairs: Pairs = NO_PAIRS) -> AlarmLog:
        """Return it with what is left of more accused rows without each channel."""
        n, channels = len(left), left.shape[1] - 1
        more = np.append(left.sum(axis=0), n)
        if len(self.left):
            more += max(0.0, 1 - n / BLAMED) * self.left
        log, rows = replace(self, left=more), more[-1]
        if not (rows and channels > 1 and usual) or self.alarms[0].cause == "stuck":
            return log
        least, whole = max(float(more[:-2].min() / rows), 0.0), float(more[-2] / rows)
        is_one = least <= max(MOST_LEFT * usual, usual + MOST_OF_IT * (whole - usual))
        like: Literal["sensor", "process"] = "sensor" if is_one else "process"
        one, devices = int(more[:-2].argmin()), devices_of(log.channels)
        device = next((each for each in devices if one in each), (one,))
        twins = len(device) == 1 and log._is_of_twins(pairs)
        looks = Looks(like, channels - len(device), least / usual, twins)
        return log._amend(looks=looks)

    def _is_of_twins(self, pairs: Pairs) -> bool:
        """Return whether rows are as normal without either of the first two channels to blame."""
        # By the mean row: rows that follow each other are not so many times as sure.
        first = _largest(self.blame)[:2]
        if len(first) < 2 or not pairs.told(*first):
            return False
        one, two = (self.left[-2] - self.left[first]) / self.left[-1]
        return bool(max(one, two) > SURE >= abs(one - two))

    def of_sensor(self) -> AlarmLog:
        """Return it with an open alarm that is of one channel, whatever distances say."""
        return self._amend(looks=Looks("sensor", len(self.channels) - 1, 0.0))

    def peaking(self, peak: PeakRow) -> AlarmLog:
        """Return it with a row that is the highest of the open alarm so far."""
        return replace(self, peak=peak)._deviating()

    def _deviating(self) -> AlarmLog:
        """Return it with the deviations of the channels to blame for the open alarm."""
        return self._amend(deviations=self.peak.deviations(self.channels, _largest(self.blame)))

    def end(self, at: float, *, settled: bool = False) -> AlarmLog:
        """Return it with the open alarm ended; `settled`: readings keep to a new level."""
        alarm = self.alarms[0].over(at, settled=settled)
        return replace(self, alarms=(alarm, *self.alarms[1:]), frozen={})

    def with_ended(self, alarm: Alarm) -> AlarmLog:
        """Return it with an alarm that has ended elsewhere."""
        first = 1 if self.open is not None else 0
        alarms = (*self.alarms[:first], alarm, *self.alarms[first:])
        return replace(self, alarms=alarms[: REMEMBERED + 1])

    def quiet_causes(self, before: AlarmLog) -> frozenset[str]:
        """Return the causes of provisional alarms that have ended since, without a verdict."""
        if self.alarms is before.alarms:
            return frozenset()
        known = {each.number for each in before.alarms if not each.is_open}
        ended = (each for each in self.alarms if each.provisional and not each.is_open)
        return frozenset(e.cause for e in ended if not e.verdict and e.number not in known)

    def with_verdict(self, number: int, verdict: Verdict) -> AlarmLog:
        """Return it with a verdict on an alarm; the log itself if nothing changes."""
        alarms, beside = (
            tuple(replace(a, verdict=verdict) if a.number == number else a for a in known)
            for known in (self.alarms, self.beside)
        )
        if (alarms, beside) == (self.alarms, self.beside):
            return self
        confirmed = [sum(a.verdict == "rejected" for a in known) for known in (self.alarms, alarms)]
        confirmed_now = self.confirmed + confirmed[1] - confirmed[0]
        return replace(self, alarms=alarms, beside=beside, confirmed=confirmed_now)

    def _amend(self, **changes: object) -> AlarmLog:
        alarm = replace(self.alarms[0], **changes)  # type: ignore[arg-type]
        return replace(self, alarms=(alarm, *self.alarms[1:]))


def _largest(blame: Array) -> list[int]:
    """Return the channels that are most to blame, the first of them the most; none without any."""
    first: list[int] = np.argsort(-blame, kind="stable")[:TOP].tolist()
    return [j for j in first if blame[j] > 0]
