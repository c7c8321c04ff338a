"""What an operator sees of alarms and of alarm status: plain values, as in `views`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from submerge.aggregator.alarm_disputes import LeftOutWhy
from submerge.protocol.alarm_status import STATES, AlarmStatus, Cause, State, Verdict

Wanted = Literal["", "pause", "resume"]
"""What a node is to do, and has not confirmed in a report."""


@dataclass(frozen=True, slots=True)
class AlarmView:
    """An alarm of a node, here or further down; its id is the one in the client's lines.

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
        At most three channels to blame, and their shares, the largest first.
    model : int
        Version of the model that raised it.
    withheld : int
        Readings that were not learnt during it.
    verdict : {"", "accepted", "rejected"}
        The operator's verdict that the node has confirmed.
    wanted : {"", "accepted", "rejected"}
        The operator's verdict that the node has not confirmed yet.
    reported_by : str
        Which child reported it here: the node itself, or an aggregator above it.
    silent_s : float
        Since that child was heard, or the node by it.
    denied_by : tuple of str
        Other children that report it as ended, or otherwise than the node itself. They are not
        believed.
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
    denied_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOutView:
    """An alarm as a child reports it that is not believed.

    Attributes
    ----------
    id, node : str
    open : bool
    by : str
        The child.
    why : str
    """

    id: str
    node: str
    open: bool
    by: str
    why: LeftOutWhy


@dataclass(frozen=True, slots=True)
class WatchView:
    """The alarm status of a node, or of all nodes below, as last reported.

    Attributes
    ----------
    states : dict of str to int
        Nodes in each state.
    open : int
        Open alarms.
    watched_s : float
        Time watched with limits, of all nodes together.
    allowed : float
        False alarms that were promised for that time, at most.
    raised, confirmed : int
        Alarms that were raised in it; those that a person has called faults.
    armed_in_s : float or None
        Estimated time until the limits are known; 0 where they are; None where unknown.
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
        """Return the view of a reported alarm status."""
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
        """Number of nodes that raise alarms, or will."""
        return sum(self.states.values())


@dataclass(frozen=True, slots=True)
class GroupWatch:
    """How a group is watched.

    Attributes
    ----------
    clients : int
        Known here and below; those that raise no alarms are not in `watch`.
    watch : WatchView or None
        None while no node reports an alarm status.
    left_out : tuple of LeftOutView
        Alarms that a child reports, and that are not believed.
    """

    group: str
    clients: int
    watch: WatchView | None
    left_out: tuple[LeftOutView, ...] = ()


@dataclass(frozen=True, slots=True)
class DesiredStateView:
    """The desired state of a node, and how it gets there.

    Attributes
    ----------
    paused : bool
        It is to learn nothing.
    verdicts : dict of str to {"accepted", "rejected"}
        On its newest eight alarms, by id.
    reported_by : str or None
        Which child gets it first, with its next report: the node itself, or an aggregator above
        it. None where no report here names the node, and all aggregators below get it.
    silent_s : float or None
        Since that child was heard.
    """

    group: str
    node: str
    paused: bool
    verdicts: dict[str, Verdict]
    reported_by: str | None
    silent_s: float | None
