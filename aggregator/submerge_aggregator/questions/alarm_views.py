"""What an operator sees of alarms and of alarm status: plain values, as in `views`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from submerge.aggregator.alarms.disputes import LeftOutWhy
from submerge.protocol.alarm_status import STATES, AlarmStatus, Cause, State, Verdict
from submerge.stats.block_maxima import evidence

Wanted = Literal["", "pause", "resume"]
"""What a node is to do, and has not confirmed in a report."""


@dataclass(frozen=True, slots=True)
class AlarmView:
    """An alarm of a node here or below, as JSON has it (`event.facts`), and what is known of it.

    worst : 0 where a channel is stuck, and no score is over its limit.
    verdict : The operator's verdict that the node has confirmed.
    wanted : The operator's verdict that the node has not confirmed yet.
    reported_by : Which child reported it here: the node itself, or an aggregator above it.
    silent_s : Since that child was heard, or the node by it.
    denied_by : Other children that report it as ended, or otherwise than the node itself. They are
        not believed.
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
    first: dict[str, float] = field(default_factory=dict)
    deviations: dict[str, dict[str, float]] = field(default_factory=dict)
    settled: bool = False
    provisional: bool = False


@dataclass(frozen=True, slots=True)
class LeftOutView:
    """An alarm as a child reports it that is not believed."""

    id: str
    node: str
    open: bool
    by: str
    why: LeftOutWhy


@dataclass(frozen=True, slots=True)
class WatchView:
    """The alarm status of a node, or of all nodes below, as last reported.

    watched_s : Time watched with limits, of all nodes together.
    allowed : False alarms that were promised for that time, at most.
    raised, confirmed : Alarms that were raised in it; those that a person has called faults.
    armed_in_s : Estimated time until the limits keep the promise; 0 where they do; None where
        unknown.
    evidence : So many to one that more alarms come than promised, valid at any time.
    provisional_rows : Rows for one false alarm by provisional limits, where there are most; 0 where
        there are none.
    waiting : What a node without limits waits for, in words; "" where it waits for nothing else.
    """

    states: dict[State, int]
    open: int
    watched_s: float
    allowed: float
    raised: int
    confirmed: int
    armed_in_s: float | None
    evidence: float = 0.0
    provisional_rows: float = 0.0
    waiting: str = ""

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
            evidence(max(alarm_status.raised - alarm_status.confirmed, 0), alarm_status.allowed),
            alarm_status.provisional_rows,
            "" if alarm_status.waiting is None else alarm_status.waiting.words,
        )

    @property
    def nodes(self) -> int:
        """Number of nodes that raise alarms, or will."""
        return sum(self.states.values())


@dataclass(frozen=True, slots=True)
class GroupWatch:
    """How a group is watched.

    clients : Known here and below; those that raise no alarms are not in `watch`.
    watch : None while no node reports an alarm status.
    widened : Factor on the limits of the group, 1 or more.
    waiting : What the group waits for, in words; "" once it has a model.
    """

    group: str
    clients: int
    watch: WatchView | None
    left_out: tuple[LeftOutView, ...] = ()
    widened: float = 1.0
    waiting: str = ""


@dataclass(frozen=True, slots=True)
class DesiredStateView:
    """The desired state of a node, and how it gets there.

    verdicts : On its newest eight alarms, by id.
    reported_by : Which child gets it first: the node itself, or an aggregator above it. None where
        no report here names the node, and all aggregators below get it.
    """

    group: str
    node: str
    paused: bool
    verdicts: dict[str, Verdict]
    reported_by: str | None
    silent_s: float | None
