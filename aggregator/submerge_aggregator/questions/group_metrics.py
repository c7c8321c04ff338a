"""The metrics of each group, as the status endpoint shows them. Asked as in `survey`."""

from __future__ import annotations

from typing import get_args

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.operators.quarantine import Cause
from submerge.aggregator.rollup import census, staleness
from submerge.aggregator.root.new_model import without_energies
from submerge.protocol.machine import Now
from submerge.protocol.messages import Counts
from submerge_aggregator.questions.alarm_survey import (
    in_order_of_places,
    survey_alarms,
    view_of,
    watch,
)
from submerge_aggregator.questions.survey import kind_of
from submerge_aggregator.questions.views import GroupMetrics


def metrics_of_groups(node: AggregatorNode, now: Now) -> list[GroupMetrics]:
    """Return the metrics of each group."""
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
