"""What an operator sees of a machine: values for JSON and tables, which commands read back."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from submerge.aggregator.alarms.disputes import LeftOutWhy
from submerge.aggregator.operators import quarantine
from submerge.protocol.alarm_status import STATES, AlarmStatus, Cause, State, Verdict
from submerge.stats.block_maxima import evidence

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
    """Which aggregator it is."""

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
    """A live incarnation: its newest report; times in Unix seconds.

    created_s, as_of_s : When it began, by its own clock; the time of the report, by ours.
    learnt, withheld, lost : Readings; none of those that only measured an earlier schema.
    moved : Readings that measured the fleet's schema, and that another incarnation counts since.
    silent_s : Since it was heard; if not heard since this process began, since then.
    model_version : Of the newest model in use, there or below.
    algorithm, rank, own_share, unlike : As in `Method`.
    """

    incarnation: str
    created_s: float
    seq: int
    learnt: int
    withheld: int
    lost: int
    lifetime: int
    silent_s: float
    as_of_s: float
    software: str
    model_version: int
    final: bool
    schema: Age
    certified_until_s: float = 0.0
    moved: int = 0
    algorithm: str = ""
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
    """A node that reports here.

    rows : The latest heard comes first.
    banned, quarantined : An operator refuses it; its rows are kept out of the model.
    cause, since_s : Why it is quarantined, and since when, Unix seconds.
    outlier : How far it is from the others, if it is left out for that (`robust`); else empty.
    bounded : How much of its readings counts in the model, and why, if not all; else empty.
    watch : Its alarm status, or that of all below it; None while it reports none.
    wanted : What an operator set, and the node has not confirmed yet.
    at_once : Incarnations that report in turns: so many machines run with its kit; 0 if it is one.
    """

    group: str
    node: str
    kind: Kind | None
    rows: tuple[RowView, ...]
    sealed: tuple[SealedView, ...]
    banned: bool
    quarantined: bool
    cause: quarantine.Cause | None = None
    since_s: float | None = None
    outlier: str = ""
    watch: WatchView | None = None
    paused: bool = False
    wanted: Wanted = ""
    bounded: str = ""
    at_once: int = 0


def socket_of(store: str | os.PathLike[str]) -> Path:
    """Return the path of the admin socket of the aggregator with this store."""
    return Path(f"{os.path.realpath(store)}.sock")


Wanted = Literal["", "pause", "resume"]
"""What a node is to do, and has not confirmed in a report."""


@dataclass(frozen=True, slots=True)
class AlarmView:
    """An alarm of a node here or below, as JSON has it (`event.facts`), and what is known of it.

    worst : 0 where a channel is stuck, and no score is over its limit.
    verdict, wanted : The operator's, that the node has confirmed, and that it has not yet.
    reported_by : Which child reported it here: the node itself, or an aggregator above it.
    silent_s : Since that child was heard, or the node by it.
    denied_by : Other children that report it otherwise, and are not believed.
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

    @property
    def is_quiet(self) -> bool:
        return self.provisional


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
    armed_in_s : Estimated time until the limits keep the promise; 0 where they do; None: unknown.
    evidence : So many to one that more alarms come than promised, valid at any time.
    provisional_rows : Rows for one false alarm by provisional limits, where there are most; or 0.
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
    """How a group is watched."""

    group: str
    clients: int  # known here and below; those that raise no alarms are not in `watch`
    watch: WatchView | None  # None while no node reports an alarm status
    left_out: tuple[LeftOutView, ...] = ()
    widened: float = 1.0  # factor on the limits of the group, 1 or more
    waiting: str = ""  # what the group waits for, in words; "" once it has a model


@dataclass(frozen=True, slots=True)
class DesiredStateView:
    """The desired state of a node, and how it gets there.

    verdicts : On its newest eight alarms, by id.
    reported_by : Which child gets it first; None: no report names the node, and all get it.
    """

    group: str
    node: str
    paused: bool
    verdicts: dict[str, Verdict]
    reported_by: str | None
    silent_s: float | None
