"""Survey: an operator's questions to a machine, and the values that answer them.

All run on the commit worker's thread, through `Server.ask`, and change nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from submerge import SubmergeError
from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rollup import latest_row_per_node
from submerge.aggregator.rows.former_schemas import is_old
from submerge.aggregator.rows.ledger import Ledger
from submerge.aggregator.rows.pool import Row, Sealed, only_measured
from submerge.drill.drill import unpacked
from submerge.drill.merged import in_units, merged
from submerge.errors import UsageError
from submerge.pca import relations
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.alarm_status import AlarmStatus
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import Drop, Now
from submerge.protocol.messages import MOST_BODY, Counts, Incarnation, Model, Question, Report
from submerge.protocol.summaries import Subspaces
from submerge_aggregator.questions.views import (
    About,
    Age,
    Kind,
    NodesPage,
    NodeView,
    RelationView,
    RowView,
    SealedView,
    ShownRank,
    UnlikeView,
    Wanted,
    WatchView,
)


class Missing(UsageError):
    """A group, a node, an alarm or a model that is not here."""


def group_of(node: AggregatorNode, group: str) -> str:
    """Return a group's name, if it is served here; raises Missing if it is not."""
    if group not in node.groups:
        raise Missing(f"no group {group} here, but {', '.join(sorted(node.groups))}")
    return group


def about(node: AggregatorNode, only: Sequence[str] = ()) -> About:
    """Return which aggregator it is, with all of its groups, or only some."""
    groups = tuple(group for group in node.groups if not only or group in only)
    plans = {group: node.plan(group).summaries for group in groups}
    models = {group: node.model(group) for group in groups}
    return About(
        node.settings.node,
        str(node.incarnation),
        node.top,
        node.settled,
        groups,
        {
            group: ShownRank(
                (model.rank if model else 0) or summaries.rule.start, summaries.linear_rank
            )
            for (group, summaries), model in zip(plans.items(), models.values(), strict=True)
            if isinstance(summaries, Subspaces)
        },
    )


def nodes(
    node: AggregatorNode, now: Now, group: str | None = None, name: str | None = None
) -> list[NodeView]:
    """Return the nodes of one group, or of all groups; only those of one name, if given."""
    chosen = node.groups if group is None else (group_of(node, group),)
    views = [view for each in sorted(chosen) for view in _views(node, each, now)]
    # A ban holds in all groups: a node that has nothing but its ban is shown once.
    held = {view.node for view in views if not _is_only_banned(view)}
    shown = []
    for view in views:
        if _is_only_banned(view) and group is None:
            if view.node in held:
                continue
            held.add(view.node)
        shown.append(view)
    return shown if name is None else [view for view in shown if view.node == name]


def one(node: AggregatorNode, now: Now, group: str, name: str, *, anyway: bool = False) -> NodeView:
    """Return one node; `anyway`: also one that is unknown here, which may be further down."""
    ledger = node.ledger(group_of(node, group))
    known = ledger is not None and ledger.knows(name)
    if not anyway and not known and not any(name in names for names in node.excluded(group)):
        raise Missing(
            f"group {group} has no node {name} here: a node further down is listed where it reports"
        )
    shown = nodes(node, now, group, name)
    nothing = NodeView(group, name, None, (), (), banned=False, quarantined=False)
    return shown[0] if shown else nothing


def has(node: AggregatorNode, event: Drop) -> None:
    """Check that there is something to drop; raises Missing if not."""
    group, name = event.group, event.node
    ledger = node.ledger(group_of(node, group))
    if ledger is None:
        raise Missing(f"group {group} knows no schema yet, and holds nothing")
    if event.incarnation is not None and (name, event.incarnation) not in ledger.rows:
        live = [str(incarnation) for other, incarnation in sorted(ledger.rows) if other == name]
        raise Missing(
            f"{name} of group {group} has no row of incarnation {event.incarnation} here, but of"
            f" {', '.join(live) or 'none'}"
        )
    rows = (row.report for (other, _), row in ledger.rows.items() if other == name)
    sealed = (fingerprint for other, fingerprint in ledger.sealed if other == name)
    old = any(is_old(each, ledger.schema_of) for each in rows)
    if event.old and not old and all(ledger.schema_of(each) is not None for each in sealed):
        raise Missing(f"{name} of group {group} has nothing under an old schema here")


def newest_model(node: AggregatorNode, group: str) -> Model:
    """Return a group's model; raises Missing if there is none yet."""
    model = node.model(group_of(node, group))
    if model is None:
        raise Missing(f"group {group} has no model yet: it gets one once nodes have reported")
    return model


def _is_only_banned(view: NodeView) -> bool:
    return view.banned and not (view.rows or view.sealed or view.quarantined)


def _views(node: AggregatorNode, group: str, now: Now) -> list[NodeView]:
    """Return all nodes of a group that have rows, sealed sums, a ban or a quarantine."""
    ledger, (banned, quarantined) = node.ledger(group), node.excluded(group)
    desired_states = node.desired_states(group)
    rows: dict[str, list[RowView]] = {}
    sealed: dict[str, list[SealedView]] = {}
    kinds: dict[str, Kind] = {}
    outliers, bounds = ({}, {}) if ledger is None else (ledger.outliers(), ledger.bounds())
    statuses: dict[str, AlarmStatus | None] = {}
    if ledger is not None:
        statuses = {name: row.report.alarm_status for (name, _), row in latest_row_per_node(ledger)}
        for (name, incarnation), row in ledger.rows.items():
            rows.setdefault(name, []).append(_row_view(ledger, name, incarnation, row, now))
            kinds[name] = kind_of(row)
        for (name, fingerprint), each in ledger.sealed.items():
            sealed.setdefault(name, []).append(_sealed_view(ledger, fingerprint, each))
    return [
        NodeView(
            group,
            name,
            kinds.get(name),
            tuple(sorted(rows.get(name, ()), key=lambda row: row.silent_s)),
            tuple(sealed.get(name, ())),
            name in banned,
            name in quarantined,
            quarantined[name].cause if name in quarantined else None,
            # Earlier versions did not store since when.
            (quarantined[name].since or None) if name in quarantined else None,
            outliers[name].words if name in outliers else "",
            None
            if (status := statuses.get(name)) is None
            else WatchView.of(status, 0 if desired is None else desired.faults_missed),
            desired is not None and bool(desired.paused) and _is_applied(status, desired),
            _pending(status, desired),
            bounds[name].words if name in bounds else "",
            0 if ledger is None else len(ledger.presence.turns.at_once(name, now.steady)),
        )
        for name in sorted(rows.keys() | sealed.keys() | banned | quarantined.keys())
        for desired in (desired_states.get(name),)
    ]


def _row_view(ledger: Ledger, name: str, incarnation: Incarnation, row: Row, now: Now) -> RowView:
    report = row.report
    counts = _counted(ledger, report.fingerprint, report)
    return RowView(
        incarnation=str(incarnation),
        created_s=incarnation.created_ms / 1000,
        seq=report.stamp.seq,
        learnt=counts.learnt,
        withheld=counts.withheld,
        lost=counts.lost,
        lifetime=report.lifetime,
        silent_s=max(0.0, now.steady - ledger.presence.heard[name, incarnation]),
        as_of_s=row.as_of,
        software=report.software,
        model_version=report.version,
        final=report.final,
        schema="old" if is_old(report, ledger.schema_of) else "current",
        certified_until_s=report.certified_until,
        moved=report.counts.moved,
        **report.method._asdict(),
    )


def _sealed_view(ledger: Ledger, fingerprint: str, sealed: Sealed) -> SealedView:
    counts = _counted(ledger, fingerprint, sealed)
    age: Age = "old" if ledger.schema_of(fingerprint) is None else "current"
    return SealedView(counts.learnt, counts.withheld, counts.lost, sealed.as_of, age)


def _counted(ledger: Ledger, fingerprint: str, said: Report | Sealed) -> Counts:
    """Return a row's readings, without those that another incarnation counts, or is to count."""
    # Once its schema is settled, what was measured until then is of that schema's rows.
    if fingerprint != ledger.fingerprint and only_measured(said):
        sums = said.earlier if isinstance(said, Report) else None
        return Counts(moved=said.counts.moved) if sums is None else sums.counts
    return said.counts


def kind_of(row: Row) -> Kind:
    return "client" if row.from_client else "aggregator"


def _is_applied(status: AlarmStatus | None, desired: DesiredState) -> bool:
    return status is not None and status.desired >= desired.number


def _pending(status: AlarmStatus | None, desired: DesiredState | None) -> Wanted:
    """Return the part of the desired state that a client has not applied yet."""
    if desired is None or _is_applied(status, desired):
        return ""
    if desired.paused:
        return "pause"
    return "resume" if status is not None and status.state == "paused" else ""


MOST_BANNED = 2048
"""Bans that one aggregator gives: half of the desired states that it remembers, so that none is
forgotten for another."""


@dataclass(frozen=True, slots=True)
class BanView:
    node: str
    banned: bool  # in every group of this aggregator
    # aggregators that report here, and have not confirmed the newest order yet
    on_its_way: tuple[str, ...] = ()


def bans(node: AggregatorNode) -> list[BanView]:
    return [ban(node, name) for name in sorted(_banned(node))]


def ban(node: AggregatorNode, name: str) -> BanView:
    """Return whether a node is banned, and where the order has not arrived."""
    late = set[str]()
    for group in node.groups:
        ledger, desired = node.ledger(group), node.desired_states(group).get(name)
        if ledger is None or desired is None:
            continue
        for (child, _), row in latest_row_per_node(ledger):
            status = row.report.alarm_status
            heard = 0 if status is None else status.desired
            if not row.from_client and heard < desired.number:
                late.add(child)
    return BanView(name, name in _banned(node), tuple(sorted(late)))


def check_ban(node: AggregatorNode, name: str, *, banned: bool) -> None:
    anywhere = {each for group in node.groups for each in node.excluded(group)[0]}
    if not banned and name not in anywhere:
        banned_here = ", ".join(sorted(anywhere)) or "no node"
        raise Missing(
            f"{name} is not banned here; {banned_here} is. Take a ban back where it was given: this"
            " aggregator, or one below"
        )
    if banned and name == node.settings.node:
        raise UsageError(f"{name} is this aggregator: ban it at its parent")
    if banned and name not in anywhere and len(anywhere) >= MOST_BANNED:
        raise UsageError(
            f"at most {MOST_BANNED} nodes are banned at once: take some back, or list them in"
            " [security] revoked"
        )


def _banned(node: AggregatorNode) -> frozenset[str]:
    banned = [node.excluded(group)[0] for group in node.groups]
    return banned[0].intersection(*banned[1:])


Settings = Callable[[], bytes]
"""Returns the reply on what the program is configured with (`settings_reply`)."""


def no_settings() -> bytes:
    """Return nothing, for an aggregator that a program made without a configuration."""
    return b"{}"


def consulted(
    node: AggregatorNode, now: Now, question: Question, settings: Settings
) -> tuple[bytes, str]:
    """Return JSON, or why there is none, in one line."""
    me = node.settings.node
    if question.topic == "settings":
        return settings(), ""
    if question.topic != "nodes":
        return b"", f"{me} is an aggregator, and knows nothing of {question.topic}"
    try:
        return msgspec.json.encode(nodes_page(node, now, question)), ""
    except SubmergeError as error:
        return b"", f"{me}: {error}"


def nodes_page(node: AggregatorNode, now: Now, question: Question) -> NodesPage:
    """Return the nodes of a group that follow after a name, so many as a reply has room for."""
    about = question.about or None
    views = nodes(node, now, question.group, about)
    shown, size = list[NodeView](), 200
    for view in sorted(views, key=lambda each: each.node):
        if view.node > question.after:
            size += len(msgspec.json.encode(view)) + 1
            if size > MOST_BODY:
                return NodesPage(node.settings.node, question.group, shown, more=True)
            shown.append(view)
    return NodesPage(node.settings.node, question.group, shown, more=False)


@dataclass(frozen=True, slots=True)
class NodeDrillView:
    node: str
    reported_by: str
    at: float
    # rows at hand, tries of each fault, and rows in which it had to be found
    rows: int
    tries: int
    within: int
    at_most_per_s: float  # the promised rate of false alarms
    blind: int  # channels that it is blind for


def relations_of(node: AggregatorNode, group: str) -> Callable[[], UnlikeView]:
    """Return what compares the relations of a group's machines: for a thread, as it takes long."""
    ledger, pieces = node.ledger(group_of(node, group)), dict[str, Subspace | WholeScatter]()
    aggregators, known = set[str](), set[str]()
    for (name, _), row in () if ledger is None else ledger.rows.items():
        known.add(name)
        if not row.from_client:
            aggregators.add(name)
        elif (summary := row.report.summary) is not None and ledger is not None:
            piece = summary.pieces[-1]
            held = pieces.get(name)
            # Of a machine that began again, the incarnation that has learnt more.
            if row.report.fingerprint == ledger.fingerprint:
                pieces[name] = piece if held is None or piece.weight > held.weight else held
    names = () if ledger is None else ledger.schema.names

    def compared() -> UnlikeView:
        found = relations.unlike(pieces)
        nodes = {name: _relation(change, names) for name, change in found.nodes}
        left_out, kinds = sorted(known - aggregators - nodes.keys()), found.kinds
        second = [] if kinds is None else list(kinds.nodes)
        differs = None if kinds is None else _relation(kinds.change, names)
        return UnlikeView(group, nodes, left_out, sorted(aggregators), second, differs)

    return compared


def _relation(change: relations.Change, names: Sequence[str]) -> RelationView:
    channels = names[change.channel], names[change.partner]
    return RelationView(*channels, change.ratio, change.times, change.words(names))


@dataclass(frozen=True, slots=True)
class DrillView:
    group: str
    nodes: list[NodeDrillView]
    # as `submerge.drill.merged.in_units`: sizes in the unit of each channel; and faults of it that
    # raised no alarm, as people say, as `missed`
    channels: list[dict[str, Any]]
    missed_elsewhere: int = 0  # likewise, of no channel in particular


def drills(node: AggregatorNode, group: str) -> DrillView:
    group_of(node, group)
    ledger, views, answers = node.ledger(group), list[NodeDrillView](), []
    for report in node.drills(group).values():
        # Of an earlier schema: its channels are others.
        if ledger is None or report.fingerprint != ledger.fingerprint:
            continue
        channels = unpacked(report.channels)
        answers.append(channels)
        views.append(
            NodeDrillView(
                report.node,
                report.stamp.node,
                report.at,
                report.rows,
                2 * report.spans,
                report.within,
                report.at_most_per_s,
                sum(each.blind for each in channels),
            )
        )
    if ledger is None or not answers:
        return DrillView(group, [], [])
    # All have as many channels: lags, which follow from the names, are those of the schema.
    fewest = min(map(len, answers))
    together = in_units(merged([each[:fewest] for each in answers]), ledger.schema)
    said = [each for state in node.desired_states(group).values() for each in state.missed]
    missed = Counter(each.channel for each in said if not each.withdrawn)
    shown = [{**each, "missed": missed[each["channel"]]} for each in together]
    return DrillView(group, sorted(views, key=lambda view: view.node), shown, missed[""])
