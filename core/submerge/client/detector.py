"""AlarmDetector: the state of alarm detection at one node; `detect` takes it from block to block.

It holds the alarms of a node, its hours, its channels and its limits, makes the alarm status of
reports and takes verdicts. `DetectorState` is the part that outlives the process.
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
class DetectorState:
    """What a detector keeps for the next process.

    Attributes
    ----------
    alarms : tuple of Alarm
        The open one, and those that ended last.
    held_s : float
        For how long the open one has withheld rows.
    frozen : mapping of kind to float
        Limits that the open one keeps while its rows are learnt; else empty.
    blame : (channels,)
        Blame for the open one, in shares.
    excused : tuple of int
        Stuck channels that a person accepted, until they move.
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
    def under_another_schema(self) -> DetectorState:
        """The part that stays valid under another schema: alarms, counts and monitored time."""
        hours = Hours(watched_s=self.hours.watched_s, allowed=self.hours.allowed)
        alarms = tuple(each.over(each.peaked) for each in self.alarms)
        return DetectorState(alarms, raised=self.raised, confirmed=self.confirmed, hours=hours)


class Situation(NamedTuple):
    """What holds for all rows of a block.

    now : Now
    version : int, of the model that made the scores
    ready, settled : whether the node's own mean covers a moment, and a day
    paused : whether an operator has paused learning
    """

    now: Now
    version: int
    ready: bool = True
    settled: bool = True
    paused: bool = False


class RecentScores(NamedTuple):
    """Scores (kinds, rows) of earlier rows, which the k-of-m statistics of the next rows need."""

    kinds: tuple[By, ...] = ()
    scores: Array = np.zeros((0, 0))


@dataclass(frozen=True, slots=True, eq=False)
class AlarmDetector:
    """The state of alarm detection at one node.

    Attributes
    ----------
    settings : AlarmSettings
    log : AlarmLog
    hours : WatchedHours
    channels : ChannelState
    limits : AlarmLimits
    judged_by : mapping of kind to float
        The limits that the open alarm was last compared with.
    recent : RecentScores
        Of the rows before.
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
        kept: DetectorState | None = None,
        channels: ChannelState | None = None,
    ) -> AlarmDetector:
        """Return the detector of a node whose channels have these names.

        kept, channels : from the process before
        """
        kept, n = kept or DetectorState(), len(names)
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
    def kept(self) -> DetectorState:
        """What the next process has to know."""
        log = self.log
        return DetectorState(
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
        """Channels that are stuck, and not excused."""
        stuck = np.flatnonzero(self.channels.habits.stuck).tolist()
        return tuple(each for each in stuck if each not in self.log.excused)

    def limit(self, kind: By, *, settled: bool) -> float:
        """Return the limit of a statistic now."""
        if self.log.frozen:
            return self.log.frozen.get(kind, math.inf)
        return self.limits.limit(kind, self.hours.spared, settled=settled)

    def with_maxima(self, maxima: BlockMaxima | None) -> AlarmDetector:
        """Return it with the limits by the group's newest block maxima."""
        return replace(self, limits=AlarmLimits.of(maxima, self.settings))

    def state(self, *, ready: bool, paused: bool, stale: bool) -> State:
        """Return the state of the node; an open alarm goes first."""
        if self.log.open is not None:
            return "alarm"
        if paused:
            return "paused"
        if not self.limits.known or not ready:
            return "learning"
        return "stale" if stale else "armed"

    def alarm_status(self, state: State, desired: int) -> AlarmStatus:
        """Return the alarm status of a report."""
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
        """Return it with a person's verdict on an alarm; itself if nothing changes."""
        log = self.log.with_verdict(number, "accepted" if accept else "rejected")
        if log is self.log:
            return self
        alarm = self.log.open
        if not accept or alarm is None or alarm.number != number:
            return replace(self, log=log)
        # Everything in the alarm is normal from now on, whatever raised it.
        return replace(
            self,
            log=replace(log, excused=log.excused | frozenset(self.stuck)).end(at),
            hours=self.hours.spare(alarm.worst, self.judged_by, self.limits),
        )
