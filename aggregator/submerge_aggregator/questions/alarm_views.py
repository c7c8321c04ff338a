"""What an operator sees of alarms, and of those who watch for them: plain values, as in `views`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from submerge.protocol.alarm_status import STATES, AlarmStatus, Cause, State, Verdict

Wanted = Literal["", "pause", "resume"]
"""What a node has been told to do, and has not said that it heard."""


@dataclass(frozen=True, slots=True)
class AlarmView:
    """An alarm of a node, here or further down; named as in the lines that clients write.

    Attributes
    ----------
    id : str
    open : bool
    began, peaked : float
        By the node's clock, Unix seconds.
    ended : float or None
        None while it is open.
    worst : float
        The highest score, over its limit; 0 where a channel is stuck, and no score is over.
    top : dict of str to float
        Channels to blame, and their shares, the guiltiest first; three at most.
    model : int
        Version of the one that raised it.
    withheld : int
        Readings that were not learnt for it.
    verdict : {"", "accepted", "rejected"}
        What a person made of it, as the node has heard.
    wanted : {"", "accepted", "rejected"}
        Likewise, where the node has not heard it yet.
    told_by : str
        Who told it here: the node itself, or an aggregator above it.
    silent_s : float
        Since that one was heard.
    """

    group: str
    id: str
    node: str
    open: bool
    began: float
    peaked: float
    ended: float | None
    worst: float
    cause: Cause
    top: dict[str, float]
    model: int
    withheld: int
    verdict: Verdict
    wanted: Verdict
    reported_by: str
    silent_s: float


@dataclass(frozen=True, slots=True)
class WatchView:
    """How a node watches, or all nodes below; each as it said last.

    Attributes
    ----------
    states : dict of str to int
        Nodes in each state.
    open : int
        Alarms that are.
    watched_s : float
        Time watched with limits, of all nodes together.
    allowed : float
        False alarms that were promised for that time, at most.
    raised, confirmed : int
        Alarms that were raised in it; those that a person has called faults.
    armed_in_s : float or None
        Until the limits are known, as it looks; 0 where they are; None where nobody can say.
    """

    states: dict[State, int]
    open: int
    watched_s: float
    allowed: float
    raised: int
    confirmed: int
    armed_in_s: float | None

    @classmethod
    def of(cls, alarm_status: AlarmStatus) -> WatchView:
        """Return what a report says, to be looked at."""
        return cls(
            dict(zip(STATES, alarm_status.states, strict=True)),
            alarm_status.open,
            alarm_status.watched_s,
            alarm_status.allowed,
            alarm_status.raised,
            alarm_status.confirmed,
            None if alarm_status.armed_in_s < 0 else alarm_status.armed_in_s,
        )

    @property
    def nodes(self) -> int:
        """How many say that they watch, or will."""
        return sum(self.states.values())


@dataclass(frozen=True, slots=True)
class GroupWatch:
    """How a group is watched.

    Attributes
    ----------
    clients : int
        Heard of, here and below; those that raise no alarms are not in `watch`.
    watch : WatchView or None
        None while nobody says anything of alarms.
    """

    group: str
    clients: int
    watch: WatchView | None


@dataclass(frozen=True, slots=True)
class DesiredStateView:
    """What is wanted of a node now, and how it comes to know.

    Attributes
    ----------
    paused : bool
        It is to learn nothing.
    verdicts : dict of str to {"accepted", "rejected"}
        On its alarms, by their ids: the newest eight.
    told_by : str or None
        Who hears of it first: the node itself, or an aggregator above it; None where nothing of
        the node was ever told here, and all aggregators below are.
    silent_s : float or None
        Since that one was heard: it hears of it with its next report.
    """

    group: str
    node: str
    paused: bool
    verdicts: dict[str, Verdict]
    reported_by: str | None
    silent_s: float | None
