"""The status endpoints (/healthz, /readyz, /metrics), and the metrics for Prometheus, in tables.

Figures of a group fall when a node is forgotten, so they are gauges. What is unknown has no sample:
a zero would raise an alarm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import get_args

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge import SubmergeError, __version__
from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.operators.quarantine import Cause
from submerge.aggregator.rollup import census, staleness
from submerge.aggregator.root import without_energies
from submerge.aggregator.rows.ledger import Ledger
from submerge.protocol.alarm_status import MOST_ALARMS
from submerge.protocol.machine import Now
from submerge_aggregator.http.serving import as_json, ask, unknown_path
from submerge_aggregator.questions.alarm_survey import in_order_of_places, survey_alarms, watch
from submerge_aggregator.questions.health import not_ready
from submerge_aggregator.questions.survey import kind_of
from submerge_aggregator.server import Server
from submerge_client.alarms.event import rounded
from submerge_proto.wire.parts import SOFTWARE

Samples = Mapping[str, float] | Mapping[tuple[str, ...], float] | float | None
"""A number, or one for each value of the labels; None where it is unknown."""

OF_SERVER = {
    "ready": "Whether it serves children.",
    "parent_reachable": "Whether the parent can be reached; 1 at a root.",
    "broker_reachable": "Whether the broker between here and the children can be reached.",
    "certificate_expiry_timestamp_seconds": "When the first of its own certificates ends; renewed"
    " files are read in place.",
    "backup_timestamp_seconds": "When the newest copy of the store was made that was fetched"
    " whole.",
    "legacy_kits": "Distinct names that have shown a certificate without a role since the start.",
    "reports_total": "Reports that came in, taken or not.",
    "joins_total": "Joins that came in, taken or not.",
    "commits_total": "Transactions on the store's disk.",
    "failed_writes_total": "Batches that the store's disk refused; each is taken back whole.",
    "bugs_total": "Errors of submerge itself that a batch survived; please report them.",
    "model_rejected_total": "Models, and reports upward, that were not sent as they were: none"
    " could have read them.",
    "audit_dropped_total": "Entries of the audit log that could not be written.",
    "history_bytes": "Bytes of the history on disk, at its last write.",
    "history_dropped_total": "Entries of the history that could not be written; nothing else is"
    " lost.",
    "jobs": "Jobs that are under way here.",
    "job_bytes_total": "Bytes of jobs' messages, to and from children and the parent.",
    "refused_messages_total": "Messages that were not taken; nothing but this counter changed.",
    "operator_requests_denied_total": "Requests to the operators' address, or the socket, that"
    " were refused.",
    "unanswered_bytes": "Bytes that messages being read, or awaited on streams, may come to, and"
    " of those that wait.",
    "unanswered_limit_bytes": "The most of these bytes: [listen] max_unanswered_bytes.",
}
"""What a metric of the aggregator means. One that ends in `_total` is a counter."""

OF_GROUPS = {
    "rows": "Live rows: incarnations that have reported here.",
    "clients": "Clients here and below.",
    "children_certificate_expiry_timestamp_seconds": "When the first certificate of a child ends,"
    " as children report.",
    "readings": "Readings of the rows in the model: learnt, withheld or lost.",
    "coverage_ratio": "Learnt readings over all known readings. What a store that was lost or"
    " given up had not reported is in neither.",
    "staleness_seconds": "The silence that this share of the clients stays below, to a power of"
    " two.",
    "model_version": "Version of the newest model.",
    "model_age_seconds": "Time since the root made the newest model.",
    "epsilon_spent": "What the models have told of one row so far, at delta = 1e-6 ([privacy]"
    " epsilon).",
    "readings_before_join_total": "Readings that clients had learnt before they joined here for"
    " the first time.",
    "quarantined_nodes": "Nodes whose rows are kept out of the model.",
    "banned_nodes": "Nodes that an operator has banned.",
    "outlier_nodes": "Nodes left out for being far from the others (robust).",
    "bounded_nodes": "Nodes that weigh less in the model than they report.",
    "nodes_twice": "Nodes as which two machines report in turns.",
    "nodes_without_energies": "Nodes whose rows stay out of the channels' noise.",
    "watch_nodes": "Nodes by alarm status, as last reported.",
    "watched_seconds": "Time watched with limits, of all nodes together.",
    "false_alarms_allowed": "Most false alarms promised for that time.",
    "alarms_raised": "Alarms that were raised in that time.",
    "alarms_confirmed": "Of these, alarms that a person has called faults.",
    "faults_missed": "Faults that raised no alarm, as people have said here.",
    "recall_ratio": "Alarms confirmed as faults over these and the faults missed: likely, and the"
    " ends of its 95 % interval.",
    "false_alarms_weekly": "Alarms a week and node that no person has confirmed, likewise.",
    "false_alarms_evidence": "So many to one that more alarms come than promised, at any time.",
    "alarms_open": "Open alarms, here and below.",
    "alarm_over_limit": f"Worst score of an open alarm, over its limit; {MOST_ALARMS} alarms at"
    " most.",
    "alarms_hidden": "Open alarms without a sample of submerge_alarm_over_limit: there are too"
    " many.",
    "alarms_contradicted_total": "Alarms that a child reported and that were left out: others"
    " report otherwise.",
}
"""What a metric of a group means."""

LABELS = {
    "job_bytes_total": ("direction",),
    "refused_messages_total": ("reason",),
    "operator_requests_denied_total": ("reason",),
    "rows": ("kind",),
    "readings": ("state",),
    "staleness_seconds": ("quantile",),
    "quarantined_nodes": ("reason",),
    "watch_nodes": ("state",),
    "recall_ratio": ("bound",),
    "false_alarms_weekly": ("bound",),
    "alarm_over_limit": ("node", "channel", "cause"),
}
"""The labels of metrics, beside the group's name."""


def of_server(server: Server) -> dict[str, Samples]:
    worker, (unanswered, limit) = server.worker, server.unanswered
    history, (jobs, sent, heard) = server.history, server.jobs.metrics
    tallies = {f"{name}_total": count for name, count in asdict(worker.tallies).items()}
    return tallies | {
        "ready": not_ready(server) is None,
        "parent_reachable": not server.parted,
        "broker_reachable": server.broker,
        "certificate_expiry_timestamp_seconds": worker.certified_until or None,
        "backup_timestamp_seconds": server.last_backup.made_s or None,
        "legacy_kits": worker.admission.legacy_kits,
        "audit_dropped_total": server.audit.dropped,
        "history_bytes": history.bytes if history.is_kept else None,
        "history_dropped_total": history.dropped if history.is_kept else None,
        "jobs": jobs,
        "job_bytes_total": {"sent": sent, "heard": heard},
        "refused_messages_total": server.refusals.counts,
        "operator_requests_denied_total": server.order_log.denials.counts,
        "unanswered_bytes": unanswered,
        "unanswered_limit_bytes": limit,
    }


def of_group(node: AggregatorNode, group: str, now: Now) -> dict[str, Samples]:
    ledger, model = node.ledger(group), node.model(group)
    banned, quarantined = node.excluded(group)
    causes = [each.cause for each in quarantined.values()]
    found: dict[str, Samples] = {
        "rows": {"client": 0, "aggregator": 0},
        "clients": 0,
        "readings": {"learnt": 0, "withheld": 0, "lost": 0},
        "readings_before_join_total": node.early(group),
        "quarantined_nodes": {
            cause.replace(" ", "_"): causes.count(cause) for cause in get_args(Cause)
        },
        "banned_nodes": len(banned),
        **dict.fromkeys(("outlier_nodes", "bounded_nodes", "nodes_twice"), 0),
        "nodes_without_energies": 0,
        "alarms_contradicted_total": 0,
    }
    if model is not None:
        found["model_version"] = model.version
        found["model_age_seconds"] = max(0.0, now.wall - model.created)
        found["epsilon_spent"] = model.epsilon or None
    missed = sum(each.faults_missed for each in node.desired_states(group).values())
    if ledger is None:
        return found
    return found | _of_ledger(ledger, now) | _of_alarms(ledger, now, missed)


def _of_ledger(ledger: Ledger, now: Now) -> dict[str, Samples]:
    kinds, ends = list[str](), dict[str, float]()
    for (name, _), row in ledger.rows.items():
        kinds.append(kind_of(row))
        # An earlier incarnation's certificate was renewed: the latest end counts.
        ends[name] = max(ends.get(name, 0.0), row.report.certified_until)
    known, counts = census(ledger, now), ledger.counts()
    silences = dict(zip(("0.5", "0.99", "1"), staleness(known), strict=True))
    return {
        "rows": {kind: kinds.count(kind) for kind in ("client", "aggregator")},
        "clients": known.nodes,
        "children_certificate_expiry_timestamp_seconds": min(
            filter(None, ends.values()), default=None
        ),
        "readings": {each: getattr(counts, each) for each in ("learnt", "withheld", "lost")},
        "coverage_ratio": counts.learnt / counts.generated if counts.generated else None,
        "staleness_seconds": silences if known.nodes else None,
        "outlier_nodes": len(ledger.outliers()),
        "bounded_nodes": sum(each.notable for each in ledger.bounds().values()),
        "nodes_twice": len(ledger.presence.turns.nodes_at_once(now.steady)),
        "nodes_without_energies": len(without_energies(ledger)),
        "alarms_contradicted_total": ledger.disputes.contradicted,
    }


BOUNDS = ("likely", "least", "most")


def _of_alarms(ledger: Ledger, now: Now, missed: int) -> dict[str, Samples]:
    said = watch(ledger, now, missed)
    if said is None:
        return {}
    found = in_order_of_places(survey_alarms(ledger, now))
    shown = [each.alarm for each in found if each.alarm.is_serious][:MOST_ALARMS]
    # Two children may report of one node; of alarms that have equal labels, the worst counts.
    worst: dict[tuple[str, ...], float] = {}
    for alarm in shown:
        labels = alarm.node, alarm.top[0][0] if alarm.top else "", alarm.cause
        worst[labels] = max(worst.get(labels, 0.0), rounded(alarm.worst))
    return {
        "watch_nodes": {str(state): nodes for state, nodes in said.states.items()},
        "watched_seconds": said.watched_s,
        "false_alarms_allowed": said.allowed,
        "alarms_raised": said.raised,
        "alarms_confirmed": said.confirmed,
        "faults_missed": said.missed,
        "recall_ratio": said.recall and dict(zip(BOUNDS, said.recall, strict=True)),
        "false_alarms_weekly": said.false_weekly
        and dict(zip(BOUNDS, said.false_weekly, strict=True)),
        "false_alarms_evidence": said.evidence,
        "alarms_open": said.open,
        "alarm_over_limit": worst,
        "alarms_hidden": max(said.open - len(shown), 0),
    }


def server_families(server: Server) -> list[Metric]:
    """Return the metrics of an aggregator itself; those that are not there are left out."""
    build = {"version": __version__}
    known = {name: found for name, found in of_server(server).items() if found is not None}
    families = [_family(name, OF_SERVER[name], {(): found}) for name, found in known.items()]
    return [InfoMetricFamily("submerge_build", "The running version.", value=build), *families]


def group_families(node: AggregatorNode, now: Now) -> list[Metric]:
    groups = {(group,): of_group(node, group, now) for group in node.groups}
    return [
        _family(name, meaning, {group: found.get(name) for group, found in groups.items()}, "group")
        for name, meaning in OF_GROUPS.items()
    ]


def _family(name: str, meaning: str, of: Mapping[tuple[str, ...], Samples], *labels: str) -> Metric:
    """Return a metric; samples are `of` the values of `labels`, which come before its own."""
    form = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    family = form(f"submerge_{name}", meaning, labels=(*labels, *LABELS.get(name, ())))
    for first, samples in of.items():
        for rest, number in (samples if isinstance(samples, Mapping) else {(): samples}).items():
            if number is not None:
                family.add_metric((*first, *((rest,) if isinstance(rest, str) else rest)), number)
    return family


async def all_families(server: Server) -> list[Metric]:
    groups = list[Metric]()
    # Without the groups too: the counters say that the store fails, and matter most then.
    with suppress(SubmergeError):
        groups = await ask(server, group_families)
    return [*server_families(server), *groups]


class _Collected(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families


def exposition(families: Iterable[Metric], accept: str) -> tuple[bytes, str]:
    """Return the metrics in a format that `accept` asks for, and its content type."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Collected(list(families)))
    encoder, content_type = choose_encoder(accept)
    return encoder(registry), content_type


def app(server: Server, steady: Callable[[], float] = time.monotonic) -> Starlette:
    began = steady()

    async def health(_: Request) -> Response:
        return as_json({"uptime_s": round(steady() - began, 3), "software": SOFTWARE})

    async def readiness(_: Request) -> Response:
        why = not_ready(server)
        if why is not None:
            return as_json({"ready": False, "why": why}, 503)
        return as_json({"ready": True})

    async def metrics(request: Request) -> Response:
        accept = request.headers.get("accept", "")
        body, content_type = exposition(await all_families(server), accept)
        return Response(body, headers={"content-type": content_type})

    return Starlette(
        routes=[Route("/healthz", health), Route("/readyz", readiness), Route("/metrics", metrics)],
        exception_handlers={HTTPException: unknown_path},
    )
