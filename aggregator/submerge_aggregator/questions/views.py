"""What an operator sees of a machine: plain values for JSON and tables.

`survey` makes them, inside the aggregator; the commands that print them read the same classes
back. Both ends share nothing else.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from submerge.aggregator.operators.quarantine import Cause
from submerge.protocol.messages import Counts
from submerge_aggregator.questions.alarm_views import AlarmView, Wanted, WatchView

Kind = Literal["client", "aggregator"]

Age = Literal["current", "old"]
"""Whether a schema is in use: rows of an old one are kept, and are not in the model."""


@dataclass(frozen=True, slots=True)
class ShownRank:
    """The rank that nodes score a group with, by its model or an aggregator's configuration.

    linear_rank : Of the readings, in a kernel group; None leaves it to `Subspaces`.
    """

    rank: int
    linear_rank: int | None = None


@dataclass(frozen=True, slots=True)
class About:
    """Which aggregator it is.

    top : It has no parent.
    settled : Its store belongs to a parent, or to a root: it may answer children.
    """

    node: str
    incarnation: str
    top: bool
    settled: bool
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
    """A live incarnation: its newest report.

    created_s, as_of_s : When it began, by its own clock; the time of the report, by ours. Unix
        seconds.
    learnt, withheld, lost : Readings; none of those that only measured a schema before the present
        one.
    moved : Readings that measured the fleet's schema, and that another incarnation counts since.
    silent_s : Since it was heard; if not heard since this process began, since then.
    model_version : Of the newest model in use, there or below.
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


@dataclass(frozen=True, slots=True)
class SealedView:
    """The sum over a node's closed incarnations, under one schema.

    What only measured a schema before the present one is not in it: other rows count that.
    """

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
    cause: Cause | None = None
    since_s: float | None = None
    outlier: str = ""
    watch: WatchView | None = None
    paused: bool = False
    wanted: Wanted = ""
    bounded: str = ""
    at_once: int = 0


@dataclass(frozen=True, slots=True)
class GroupMetrics:
    """The metrics of a group.

    counts : Readings, of the rows in the model.
    staleness : (p50, p99, max). Seconds of silence that half, 99 % and all clients stay below.
    quarantined : Nodes whose rows are kept out of the model, by cause; all causes are there.
    certified_until : When the first certificate of a child ends, as they report; 0 if none has one.
    bounded : Nodes whose readings weigh less in the model than they have reported.
    alarms : Open ones, in the order in which they get places.
    contradicted : Alarms that were left out since the start of the process.
    twice : Nodes as which two machines report, or more.
    early : Readings that clients had learnt before they joined here, since the process began.
    without_energies : Nodes whose rows stay out of the noise of each channel: they do not say its
        energy.
    """

    group: str
    rows: dict[str, int]
    clients: int
    counts: Counts
    version: int | None
    model_age_s: float | None
    staleness: tuple[float, float, float]
    banned: int
    quarantined: dict[Cause, int]
    certified_until: float = 0.0
    outliers: int = 0
    watch: WatchView | None = None
    alarms: tuple[AlarmView, ...] = ()
    bounded: int = 0
    contradicted: int = 0
    twice: int = 0
    early: int = 0
    without_energies: int = 0


def socket_of(store: str | os.PathLike[str]) -> Path:
    """Return the path of the admin socket of the aggregator with this store."""
    return Path(f"{os.path.realpath(store)}.sock")
