"""What an operator sees of a machine: values for JSON and tables, which commands read back."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from submerge.aggregator.alarms.disputes import LeftOutWhy
from submerge.aggregator.operators import quarantine
from submerge.protocol.alarm_status import STATES, AlarmStatus, Cause, State, Verdict
from submerge.stats.block_maxima import count_interval, evidence, share_interval

Kind = Literal["client", "aggregator"]

Age = Literal["current", "old"]
"""Whether a schema is in use: rows of an old one are kept, and are not in the model."""


@dataclass(frozen=True, slots=True)
class ShownRank:
    """The rank that nodes score a group with, by its model or an aggregator's configuration."""

    rank: int
    # of the readings, in a kernel group; None leaves it to `Subspaces`
    linear_rank: int | None = None


@dataclass(frozen=True, slots=True)
class About:
    node: str
    incarnation: str
    top: bool  # it has no parent
    settled: bool  # its store belongs to a parent, or to a root: it may answer children
    groups: tuple[str, ...]
    shown: dict[str, ShownRank]


@dataclass(frozen=True, slots=True)
class NodesPage:
    """Some of the nodes that report to one aggregator, in the order of their names."""

    aggregator: str
    group: str
    nodes: list[NodeView]
    more: bool


@dataclass(frozen=True, slots=True)
class RowView:
    """A live incarnation: its newest report; times in Unix seconds."""

    incarnation: str
    created_s: float  # by its own clock
    seq: int
    learnt: int  # readings; none of those that only measured an earlier schema
    withheld: int
    lost: int
    lifetime: int
    silent_s: float  # since it was heard, or this process began
    as_of_s: float  # of the report, by our clock
    software: str
    model_version: int  # of the newest in use, there or below
    final: bool
    schema: Age
    certified_until_s: float = 0.0
    moved: int = 0  # measured the schema, and counted by another incarnation since
    algorithm: str = ""  # as in `Method`, with the three that follow
    rank: int = 0
    own_share: float = 0.0
    unlike: float = 0.0


@dataclass(frozen=True, slots=True)
class SealedView:
    """The sum over a node's closed incarnations, under one schema, without what only measured."""

    learnt: int
    withheld: int
    lost: int
    as_of_s: float
    schema: Age


@dataclass(frozen=True, slots=True)
class NodeView:
    group: str
    node: str
    kind: Kind | None
    rows: tuple[RowView, ...]  # the latest heard first
    sealed: tuple[SealedView, ...]
    banned: bool  # an operator refuses it
    quarantined: bool  # its rows are kept out of the model
    cause: quarantine.Cause | None = None
    since_s: float | None = None  # of the quarantine, Unix seconds
    outlier: str = ""  # how far it is from the others, if left out for that (`robust`)
    watch: WatchView | None = None  # its alarm status, or that of all below it
    paused: bool = False
    wanted: Wanted = ""  # what an operator set, and the node has not confirmed yet
    bounded: str = ""  # how much of its readings counts in the model, and why, if not all
    at_once: int = 0  # incarnations that report in turns: machines with its kit; 0 if one


def socket_of(store: str | os.PathLike[str]) -> Path:
    return Path(f"{os.path.realpath(store)}.sock")


Wanted = Literal["", "pause", "resume"]  # what a node is to do, and has not confirmed in a report


@dataclass(frozen=True, slots=True)
class AlarmView:
    """An alarm of a node here or below, as JSON has it (`event.facts`), and what is known of it."""

    group: str
    id: str
    node: str
    open: bool
    began: float
    peaked: float
    ended: float | None
    worst: float  # 0 where a channel is stuck, and no score is over its limit
    cause: Cause
    top: dict[str, float]
    model: int
    withheld: int
    verdict: Verdict  # an operator's, that the node has confirmed
    wanted: Verdict  # an operator's, that it has not confirmed yet
    reported_by: str  # the node itself, or an aggregator above it
    silent_s: float  # since that child was heard, or the node by it
    denied_by: tuple[str, ...] = ()  # other children that report it otherwise, and are not believed
    first: dict[str, float] = field(default_factory=dict)
    deviations: dict[str, dict[str, float]] = field(default_factory=dict)
    settled: bool = False
    provisional: bool = False
    repeated: bool = False
    looks: Literal["", "sensor", "process"] = ""  # "" where it cannot be told
    evidence: str = ""  # for that, in words
    twins: list[str] = field(default_factory=list)  # channels of which either may be to blame
    incident: str = ""  # the id of the incident that it is a part of
    parts: list[dict[str, Any]] = field(default_factory=list)  # of an incident, the first first
    words: str = ""  # on an incident, in a sentence

    @property
    def is_quiet(self) -> bool:
        return self.provisional or self.repeated


@dataclass(frozen=True, slots=True)
class LeftOutView:
    """An alarm as a child reports it that is not believed."""

    id: str
    node: str
    open: bool
    by: str
    why: LeftOutWhy


Likely = tuple[float, float, float]
"""A figure, and the ends of its 95 % interval."""


@dataclass(frozen=True, slots=True)
class WatchView:
    """The alarm status of a node, or of all nodes below, as last reported."""

    states: dict[State, int]
    open: int
    watched_s: float  # with limits, of all nodes together
    allowed: float  # false alarms that were promised for that time, at most
    raised: int  # alarms in that time
    confirmed: int  # of these, as faults, by a person
    armed_in_s: float | None  # estimated, until limits keep the promise; None: unknown
    evidence: float = 0.0  # so many to one that more alarms come than promised, at any time
    provisional_rows: float = 0.0  # for one false alarm by provisional limits, where most; or 0
    waiting: str = ""  # what a node without limits waits for, in words
    missing: int = 0  # rows that it still needs for that, where it is known
    missed: int = 0  # faults that raised no alarm, as a person says
    # the share of known faults that were found, and its 95 % interval; None while none is known
    recall: Likely | None = None
    # alarms a week and node that no person has confirmed, with its interval
    false_weekly: Likely | None = None
    by_verdicts: tuple[str, ...] = ()  # both in words, once a person has said what was a fault

    @classmethod
    def of(cls, alarm_status: AlarmStatus, missed: int = 0) -> WatchView:
        waiting = alarm_status.waiting
        found, weeks = alarm_status.confirmed, alarm_status.watched_s / 604_800.0
        known, false = found + missed, max(alarm_status.raised - found, 0)
        recall = (found / known, *share_interval(found, known)) if known else None
        low, high = count_interval(false)
        weekly = (false / weeks, low / weeks, high / weeks) if weeks else None
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
            "" if waiting is None else waiting.words,
            0 if waiting is None else max(waiting.of - waiting.rows, 0),
            missed,
            recall,
            weekly,
            _by_verdicts(found, known, recall, weekly),
        )

    @property
    def nodes(self) -> int:
        """Number of nodes that raise alarms, or will."""
        return sum(self.states.values())


def _by_verdicts(
    found: int, known: int, recall: Likely | None, weekly: Likely | None
) -> tuple[str, ...]:
    if recall is None:
        return ()
    share, low, high = recall
    said = f"found {found:,} of {known:,} known faults: {share:.0%} ({low:.0%} to {high:.0%})"
    if weekly is None:
        return (said,)
    rate, low, high = weekly
    false = f"{rate:.3g} alarms per week and node are no known faults ({low:.3g} to {high:.3g})"
    return said, false


@dataclass(frozen=True, slots=True)
class GroupWatch:
    group: str
    clients: int  # known here and below; those that raise no alarms are not in `watch`
    watch: WatchView | None  # None while no node reports an alarm status
    left_out: tuple[LeftOutView, ...] = ()
    widened: float = 1.0  # factor on the limits of the group, 1 or more
    waiting: str = ""  # what the group waits for, in words; "" once it has a model
    missing: int = 0  # rows that it still needs for that


Outcome = Literal["raised", "not raised", "cannot be told"]
"""What an alarm would have been at another rate of false alarms."""


@dataclass(frozen=True, slots=True)
class WhatIfAlarm:
    id: str
    verdict: Verdict
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class WhatIfView:
    """What another rate of false alarms would have done to the newest alarms of a group."""

    group: str
    promised_per_s: float  # the rate now, of one node; 0 while none is promised
    alarms: list[WhatIfAlarm]
    more: float = 0.0  # blocks of the group that would exceed a limit, and do not now
    span_s: float = 0.0  # time of all its blocks


@dataclass(frozen=True, slots=True)
class RelationView:
    """A channel that follows the others otherwise than on other machines."""

    channel: str
    partner: str  # the channel that tells the most of it
    ratio: float  # 1 where it follows as elsewhere
    times: float  # how much further off than is usual from machine to machine
    words: str


@dataclass(frozen=True, slots=True)
class UnlikeView:
    """Machines that report here by how unlike the others their relations are."""

    group: str
    nodes: dict[str, RelationView]  # the most unlike first
    left_out: list[str]  # machines with too few rows to say
    aggregators: list[str]  # whose machines are compared there
    second: list[str]  # machines of a second kind; none where all are of one
    differs: RelationView | None  # how these differ from the first kind


@dataclass(frozen=True, slots=True)
class DesiredStateView:
    group: str
    node: str
    paused: bool
    verdicts: dict[str, Verdict]  # on its newest eight alarms, by id
    reported_by: str | None  # which child gets it first; None: no report names the node
    silent_s: float | None
    missed: list[dict[str, Any]] = field(default_factory=list)  # its newest eight missed faults
