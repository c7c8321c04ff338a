"""AlarmDetector: what one node detects alarms with; `detect` takes it from block to block.

It holds the alarms that a node tells of, its hours, its channels and its limits, and answers for
reports and for an operator. `Watched` is the part that outlives the process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.client.alarm_hours import WatchedHours
from submerge.client.alarm_limits import AlarmLimits, Hours
from submerge.client.alarm_log import AlarmLog
from submerge.client.channels import ChannelState
from submerge.protocol.alarm_status import Alarm, AlarmStatus, State
from submerge.protocol.machine import Now
from submerge.protocol.settings import AlarmSettings
from submerge.stats.block_maxima import BlockMaxima, By


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """What a detector remembers, for its next process.

    Attributes
    ----------
    alarms : tuple of Alarm
        The open one, and those that were over last.
    held_s : float
        For how long the open one has withheld rows.
    frozen : mapping of kind to float
        Limits of the open one, since rows are learnt in spite of it; else empty.
    blame : (channels,)
        Of the open one, in shares.
    excused : tuple of int
        Channels that were accepted as they are, until they move.
    raised, confirmed : int
        As in `AlarmStatus`.
    hours : Hours
    """

    alarms: tuple[Alarm, ...] = ()
    held_s: float = 0.0
    frozen: Mapping[By, float] = field(default_factory=dict)
    blame: Array = field(default_factory=lambda: np.zeros(0))
    excused: tuple[int, ...] = ()
    raised: int = 0
    confirmed: int = 0
    hours: Hours = field(default_factory=Hours)

    @property
    def under_another_schema(self) -> Watched:
        """What stays where scores mean something else: what is told to people."""
        hours = Hours(watched_s=self.hours.watched_s, allowed=self.hours.allowed)
        alarms = tuple(each.over(each.peaked) for each in self.alarms)
        return Watched(alarms, raised=self.raised, confirmed=self.confirmed, hours=hours)


class Situation(NamedTuple):
    """What holds for all rows of a block.

    now : Now
    version : int, of the model that made the scores
    ready, settled : whether the node's own mean is to be believed, for a moment and for a day
    paused : whether an operator has stopped learning
    """

    now: Now
    version: int
    ready: bool = True
    settled: bool = True
    paused: bool = False


class RecentScores(NamedTuple):
    """Scores (kinds, rows) of a span of rows, which levels of the next rows need."""

    kinds: tuple[By, ...] = ()
    scores: Array = np.zeros((0, 0))


@dataclass(frozen=True, slots=True, eq=False)
class AlarmDetector:
    """What one node detects alarms with.

    Attributes
    ----------
    settings : AlarmSettings
    log : AlarmLog
    hours : WatchedHours
    channels : ChannelState
    limits : AlarmLimits
    judged_by : mapping of kind to float
        The limits that the open alarm was held to last.
    recent : scores of the rows before
    """

    settings: AlarmSettings
    log: AlarmLog
    hours: WatchedHours
    channels: ChannelState
    limits: AlarmLimits = field(default_factory=AlarmLimits)
    judged_by: Mapping[By, float] = field(default_factory=dict)
    recent: RecentScores = field(default_factory=RecentScores)

    @classmethod
    def of(
        cls,
        node: str,
        settings: AlarmSettings,
        names: tuple[str, ...],
        kept: Watched | None = None,
        channels: ChannelState | None = None,
    ) -> AlarmDetector:
        """Return the detector of a node whose channels have these names.

        kept, channels : what the process before remembered
        """
        kept, n = kept or Watched(), len(names)
        log = AlarmLog(
            node,
            names,
            settings.max_withheld_s,
            kept.alarms,
            kept.held_s,
            dict(kept.frozen),
            kept.blame if len(kept.blame) == n else np.zeros(n),
            frozenset(kept.excused),
            kept.raised,
            kept.confirmed,
        )
        channels = ChannelState.none(n) if channels is None else channels
        return cls(settings, log, WatchedHours.of(kept.hours), channels, judged_by=log.frozen)

    @property
    def kept(self) -> Watched:
        """What the next process has to know."""
        log = self.log
        return Watched(
            log.alarms,
            log.held_s,
            log.frozen,
            log.blame,
            tuple(sorted(log.excused)),
            log.raised,
            log.confirmed,
            self.hours.kept,
        )

    @property
    def stuck(self) -> tuple[int, ...]:
        """Channels that are stuck, and not accepted as they are."""
        stuck = np.flatnonzero(self.channels.habits.stuck).tolist()
        return tuple(each for each in stuck if each not in self.log.excused)

    def limit(self, kind: By, *, settled: bool) -> float:
        """Return what levels of a statistic may come to now."""
        if self.log.frozen:
            return self.log.frozen.get(kind, math.inf)
        return self.limits.limit(kind, self.hours.spared, settled=settled)

    def with_peaks(self, maxima: BlockMaxima | None) -> AlarmDetector:
        """Return it with the limits that the group's newest peaks ask for."""
        return replace(self, limits=AlarmLimits.of(maxima, self.settings))

    def state(self, *, ready: bool, paused: bool, stale: bool) -> State:
        """Return which state the node is in; an alarm goes before all."""
        if self.log.open is not None:
            return "alarm"
        if paused:
            return "paused"
        if not self.limits.known or not ready:
            return "learning"
        return "stale" if stale else "armed"

    def alarm_status(self, state: State, desired: int) -> AlarmStatus:
        """Return what a report says of alarms."""
        return AlarmStatus(
            states=AlarmStatus.at(state),
            alarms=self.log.alarms,
            open=int(self.log.open is not None),
            watched_s=self.hours.watched_s,
            allowed=self.hours.allowed,
            raised=self.log.raised,
            confirmed=self.log.confirmed,
            armed_in_s=0.0 if self.limits.known else self.limits.armed_in_s,
            desired=desired,
        )

    def decide(self, number: int, *, accept: bool, at: float) -> AlarmDetector:
        """Return it with what a person makes of an alarm; itself if that is no news."""
        log = self.log.judged(number, "accepted" if accept else "rejected")
        if log is self.log:
            return self
        alarm = self.log.open
        if not accept or alarm is None or alarm.number != number:
            return replace(self, log=log)
        # Whatever it was raised by: all of it is to be normal now.
        return replace(
            self,
            log=replace(log, excused=log.excused | frozenset(self.stuck)).end(at),
            hours=self.hours.spare(alarm.worst, self.judged_by, self.limits),
        )
