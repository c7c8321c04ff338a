"""How an aggregator itself is: its links, its store, and what it has refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.operators.quarantine import Cause
from submerge.aggregator.rollup import census, staleness
from submerge.aggregator.root import without_energies
from submerge.protocol.machine import Now
from submerge.protocol.messages import Counts
from submerge_aggregator.operators.identify import DENIALS
from submerge_aggregator.questions.alarm_survey import (
    in_order_of_places,
    survey_alarms,
    view_of,
    watch,
)
from submerge_aggregator.questions.survey import kind_of
from submerge_aggregator.questions.views import GroupMetrics
from submerge_aggregator.refusals import REASONS
from submerge_aggregator.server import Server
from submerge_proto.wire.parts import SOFTWARE


def metrics_of_groups(node: AggregatorNode, now: Now) -> list[GroupMetrics]:
    return [_group_metrics(node, group, now) for group in node.groups]


def _group_metrics(node: AggregatorNode, group: str, now: Now) -> GroupMetrics:
    ledger, model = node.ledger(group), node.model(group)
    rows = {"client": 0, "aggregator": 0}
    clients, counts, silences, ends = 0, Counts(), (0.0, 0.0, 0.0), dict[str, float]()
    if ledger is not None:
        for (name, _), row in ledger.rows.items():
            rows[kind_of(row)] += 1
            # An earlier incarnation's certificate was renewed: the latest end counts.
            ends[name] = max(ends.get(name, 0.0), row.report.certified_until)
        known = census(ledger, now)
        clients, counts, silences = known.nodes, ledger.counts(), staleness(known)
    banned, quarantined = node.excluded(group)
    causes = [each.cause for each in quarantined.values()]
    return GroupMetrics(
        group,
        rows,
        clients,
        counts,
        None if model is None else model.version,
        None if model is None else max(0.0, now.wall - model.created),
        silences,
        len(banned),
        {cause: causes.count(cause) for cause in get_args(Cause)},
        min((end for end in ends.values() if end), default=0.0),
        0 if ledger is None else len(ledger.outliers()),
        watch(ledger, now),
        tuple(
            view_of(group, found, None)
            for found in in_order_of_places(survey_alarms(ledger, now))
            if found.alarm.is_serious
        ),
        0 if ledger is None else sum(each.notable for each in ledger.bounds().values()),
        0 if ledger is None else ledger.disputes.contradicted,
        0 if ledger is None else len(ledger.presence.turns.nodes_at_once(now.steady)),
        node.early(group),
        0 if ledger is None else len(without_energies(ledger)),
    )


@dataclass(frozen=True, slots=True)
class RefusedView:
    """Messages or requests that were refused for one reason since this process began."""

    what: str
    reason: str
    meaning: str
    count: int


@dataclass(frozen=True, slots=True)
class HealthView:
    """How an aggregator is; counts are since this process began.

    not_ready : Why children would get no answer; empty if they do.
    broker : Whether every broker to the children can be reached; None without any.
    unanswered_bytes, most_unanswered_bytes : Of messages that are being read or wait for an answer;
        and the most of them.
    backup_s : When the newest copy of its store was made that was fetched whole, Unix seconds; 0 if
        none is known.
    """

    node: str
    software: str
    not_ready: str
    parent: str
    parted: bool
    broker: bool | None
    joins: int
    reports: int
    commits: int
    failed_writes: int
    models_rejected: int
    unanswered_bytes: int
    most_unanswered_bytes: int
    audit_dropped: int
    certified_until_s: float
    backup_s: float
    refused: list[RefusedView]


def health(server: Server) -> HealthView:
    """Return how an aggregator is; it is answered whatever the store's disk does."""
    worker = server.worker
    node, tallies = worker.node, worker.tallies
    settings = None if node is None else node.settings
    used, most = server.unanswered
    counted = (
        ("message", REASONS, server.refusals.counts),
        ("request", DENIALS, server.order_log.denials.counts),
    )
    refused = [
        RefusedView(what, reason, meanings[reason], count)
        for what, meanings, counts in counted
        for reason, count in counts.items()
        if count
    ]
    return HealthView(
        "" if settings is None else settings.node,
        SOFTWARE,
        not_ready(server) or "",
        "" if settings is None else settings.parent or "",
        server.parted,
        server.broker,
        tallies.joins,
        tallies.reports,
        tallies.commits,
        tallies.failed_writes,
        tallies.model_rejected,
        used,
        most,
        server.audit.dropped,
        0.0 if worker.credentials is None else worker.credentials.until,
        server.last_backup.made_s,
        sorted(refused, key=lambda each: -each.count),
    )


def not_ready(server: Server) -> str | None:
    """Return why children would get no answer; None if they do."""
    node = server.worker.node
    if not server.ready:
        return "it is starting or stopping"
    if node is None:
        return "the store cannot be written"
    if not node.settled:
        return f"the store belongs to no parent yet: {node.settings.parent} has not answered"
    return None
