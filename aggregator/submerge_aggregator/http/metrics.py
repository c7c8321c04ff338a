"""The status endpoints (/healthz, /readyz, /metrics), and the metrics for Prometheus.

Counters are of this process. The figures of a group follow from its rows, and fall when a node
is forgotten, so they are gauges.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

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
from submerge.protocol.alarm_status import MOST_ALARMS
from submerge_aggregator.batch import Tallies
from submerge_aggregator.http.serving import as_json, ask, unknown_path
from submerge_aggregator.questions.health import metrics_of_groups, not_ready
from submerge_aggregator.questions.views import GroupMetrics
from submerge_aggregator.server import Server
from submerge_proto.wire.parts import SOFTWARE


def of_alarms(groups: Sequence[GroupMetrics]) -> Iterator[Metric]:
    nodes = gauge("watch_nodes", "Nodes by alarm status, as last reported.", "state")
    watched = gauge("watched_seconds", "Time watched with limits, of all nodes together.")
    allowed = gauge("false_alarms_allowed", "Most false alarms promised for that time.")
    raised = gauge("alarms_raised", "Alarms that were raised in that time.")
    confirmed = gauge("alarms_confirmed", "Of these, alarms that a person has called faults.")
    odds = gauge(
        "false_alarms_evidence", "So many to one that more alarms come than promised, at any time."
    )
    opened = gauge("alarms_open", "Open alarms, here and below.")
    over = gauge(
        "alarm_over_limit",
        f"Worst score of an open alarm, over its limit; {MOST_ALARMS} alarms at most.",
        *("node", "channel", "cause"),
    )
    hidden = gauge(
        "alarms_hidden",
        "Open alarms without a sample of submerge_alarm_over_limit: there are too many.",
    )
    contradicted = CounterMetricFamily(
        "submerge_alarms_contradicted",
        "Alarms that a child reported and that were left out: others report otherwise.",
        labels=("group",),
    )
    for each in groups:
        watch, group = each.watch, each.group
        contradicted.add_metric((group,), each.contradicted)
        if watch is None:
            continue
        for state, count in watch.states.items():
            nodes.add_metric((group, state), count)
        watched.add_metric((group,), watch.watched_s)
        allowed.add_metric((group,), watch.allowed)
        raised.add_metric((group,), watch.raised)
        confirmed.add_metric((group,), watch.confirmed)
        odds.add_metric((group,), watch.evidence)
        opened.add_metric((group,), watch.open)
        shown = each.alarms[:MOST_ALARMS]
        hidden.add_metric((group,), max(watch.open - len(shown), 0))
        # Two children may report of one node; of alarms that have equal labels, the worst counts.
        worst: dict[tuple[str, str, str], float] = {}
        for alarm in shown:
            labels = alarm.node, next(iter(alarm.top), ""), alarm.cause
            worst[labels] = max(worst.get(labels, 0.0), alarm.worst)
        for (node, channel, cause), value in worst.items():
            over.add_metric((group, node, channel, cause), value)
    yield from (nodes, watched, allowed, raised, confirmed, odds, opened, over, hidden)
    yield contradicted


def gauge(name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
    """Return a gauge of groups, without samples."""
    return GaugeMetricFamily(f"submerge_{name}", meaning, labels=("group", *labels))


COUNTED = {
    "reports": "Reports that came in, taken or not.",
    "joins": "Joins that came in, taken or not.",
    "commits": "Transactions on the store's disk.",
    "failed_writes": "Batches that the store's disk refused; each is taken back whole.",
    "bugs": "Errors of submerge itself that a batch survived; please report them.",
    "model_rejected": "Models, and reports upward, that were not sent as they were: none could have"
    " read them.",
}
"""The tallies of a commit worker, which are metrics by their names, and what they mean."""

UNANSWERED = {
    "bytes": "Bytes that messages being read, or awaited on streams, may come to, and of those that"
    " wait.",
    "limit_bytes": "The most of these bytes: [listen] max_unanswered_bytes.",
}

TIMES = {
    "certificate_expiry_timestamp_seconds": "When the first of its own certificates ends; renewed"
    " files are read in place.",
    "backup_timestamp_seconds": "When the newest copy of the store was made that was fetched"
    " whole.",
}

QUANTILES = ("0.5", "0.99", "1")


class Numbers(NamedTuple):
    """All metrics at one time.

    refused : messages that were not taken, by reason: all reasons that there are
    broker : the brokers between here and the children can be reached; None without any
    certified_until : when the first of its own certificates ends; 0 without any
    groups : None while the machine cannot be asked
    unanswered : bytes of messages that are being read, may begin on a stream, or wait; and the most
    denied : requests of operators that were refused, by reason: all reasons that there are
    backup : when the newest copy of the store was made that was fetched whole; 0 if none is known
    """

    tallies: Tallies
    audit_dropped: int
    refused: Mapping[str, int]
    why_not: str | None
    parted: bool
    broker: bool | None
    certified_until: float
    groups: Sequence[GroupMetrics] | None
    legacy_kits: int = 0
    unanswered: tuple[int, int] = (0, 0)
    denied: Mapping[str, int] = MappingProxyType({})
    history: tuple[int, int] | None = None
    backup: float = 0.0
    jobs: tuple[int, int, int] = (0, 0, 0)


def exposition(numbers: Numbers, accept: str) -> tuple[bytes, str]:
    """Return the metrics in a format that `accept` asks for, and its content type."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Collected(numbers))
    encoder, content_type = choose_encoder(accept)
    return encoder(registry), content_type


class _Collected(Collector):
    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def collect(self) -> Iterator[Metric]:
        numbers = self._numbers
        yield InfoMetricFamily(
            "submerge_build", "The running version.", value={"version": __version__}
        )
        yield GaugeMetricFamily(
            "submerge_ready", "Whether it serves children.", value=numbers.why_not is None
        )
        yield GaugeMetricFamily(
            "submerge_parent_reachable",
            "Whether the parent can be reached; 1 at a root.",
            value=not numbers.parted,
        )
        if numbers.broker is not None:
            yield GaugeMetricFamily(
                "submerge_broker_reachable",
                "Whether the broker between here and the children can be reached.",
                value=numbers.broker,
            )
        times = (numbers.certified_until, numbers.backup)
        for (name, meaning), each_time in zip(TIMES.items(), times, strict=True):
            if each_time:  # what is not there has no sample: a zero would raise an alarm
                yield GaugeMetricFamily(f"submerge_{name}", meaning, value=each_time)
        yield GaugeMetricFamily(
            "submerge_legacy_kits",
            "Distinct names that have shown a certificate without a role since the start.",
            value=numbers.legacy_kits,
        )
        for name, meaning in COUNTED.items():
            value = getattr(numbers.tallies, name)
            yield CounterMetricFamily(f"submerge_{name}", meaning, value=value)
        yield CounterMetricFamily(
            "submerge_audit_dropped",
            "Entries of the audit log that could not be written.",
            value=numbers.audit_dropped,
        )
        yield from _of_history(numbers.history)
        yield from _of_jobs(numbers.jobs)
        refused = CounterMetricFamily(
            "submerge_refused_messages",
            "Messages that were not taken; nothing but this counter changed.",
            labels=("reason",),
        )
        for reason, count in numbers.refused.items():
            refused.add_metric((reason,), count)
        yield refused
        denied = CounterMetricFamily(
            "submerge_operator_requests_denied",
            "Requests to the operators' address, or the socket, that were refused.",
            labels=("reason",),
        )
        for reason, count in numbers.denied.items():
            denied.add_metric((reason,), count)
        yield denied
        for (name, meaning), value in zip(UNANSWERED.items(), numbers.unanswered, strict=True):
            yield GaugeMetricFamily(f"submerge_unanswered_{name}", meaning, value=value)
        if numbers.groups is not None:
            yield from _of_groups(numbers.groups)
            yield from of_alarms(numbers.groups)


def _of_jobs(jobs: tuple[int, int, int]) -> Iterator[Metric]:
    under_way, sent, heard = jobs
    yield GaugeMetricFamily("submerge_jobs", "Jobs that are under way here.", value=under_way)
    traffic = CounterMetricFamily(
        "submerge_job_bytes",
        "Bytes of jobs' messages, to and from children and the parent.",
        labels=("direction",),
    )
    traffic.add_metric(("sent",), sent)
    traffic.add_metric(("heard",), heard)
    yield traffic


def _of_history(history: tuple[int, int] | None) -> Iterator[Metric]:
    if history is None:
        return
    size, dropped = history
    yield GaugeMetricFamily(
        "submerge_history_bytes", "Bytes of the history on disk, at its last write.", value=size
    )
    yield CounterMetricFamily(
        "submerge_history_dropped",
        "Entries of the history that could not be written; nothing else is lost.",
        value=dropped,
    )


def _of_groups(groups: Sequence[GroupMetrics]) -> Iterator[Metric]:
    rows = gauge("rows", "Live rows: incarnations that have reported here.", "kind")
    clients = gauge("clients", "Clients here and below.")
    readings = gauge(
        "readings", "Readings of the rows in the model: learnt, withheld or lost.", "state"
    )
    coverage = gauge(
        "coverage_ratio",
        "Learnt readings over all known readings. What a store that was lost or given up had not"
        " reported is in neither.",
    )
    certified = gauge(
        "children_certificate_expiry_timestamp_seconds",
        "When the first certificate of a child ends, as children report.",
    )
    silences = gauge(
        "staleness_seconds",
        "The silence that this share of the clients stays below, to a power of two.",
        "quantile",
    )
    version = gauge("model_version", "Version of the newest model.")
    age = gauge("model_age_seconds", "Time since the root made the newest model.")
    early = CounterMetricFamily(
        "submerge_readings_before_join",
        "Readings that clients had learnt before they joined here for the first time.",
        labels=("group",),
    )
    for each in groups:
        early.add_metric((each.group,), each.early)
        for kind, count in each.rows.items():
            rows.add_metric((each.group, kind), count)
        clients.add_metric((each.group,), each.clients)
        if each.certified_until:
            certified.add_metric((each.group,), each.certified_until)
        for state in ("learnt", "withheld", "lost"):
            readings.add_metric((each.group, state), getattr(each.counts, state))
        # What is unknown has no sample: a zero would raise an alarm.
        if each.counts.generated:
            coverage.add_metric((each.group,), each.counts.learnt / each.counts.generated)
        if each.clients:
            for quantile, seconds in zip(QUANTILES, each.staleness, strict=True):
                silences.add_metric((each.group, quantile), seconds)
        if each.version is not None and each.model_age_s is not None:
            version.add_metric((each.group,), each.version)
            age.add_metric((each.group,), each.model_age_s)
    yield from (rows, clients, certified, readings, coverage, silences, version, age, early)
    yield from _of_nodes(groups)


def _of_nodes(groups: Sequence[GroupMetrics]) -> Iterator[Metric]:
    """Yield how many nodes are kept out, or need a person's eye."""
    quarantined = gauge(
        "quarantined_nodes", "Nodes whose rows are kept out of the model.", "reason"
    )
    banned = gauge("banned_nodes", "Nodes that an operator has banned.")
    outliers = gauge("outlier_nodes", "Nodes left out for being far from the others (robust).")
    bounded = gauge("bounded_nodes", "Nodes that weigh less in the model than they report.")
    twice = gauge("nodes_twice", "Nodes as which two machines report in turns.")
    lacking = gauge("nodes_without_energies", "Nodes whose rows stay out of the channels' noise.")
    for each in groups:
        for cause, count in each.quarantined.items():
            quarantined.add_metric((each.group, cause.replace(" ", "_")), count)
        banned.add_metric((each.group,), each.banned)
        outliers.add_metric((each.group,), each.outliers)
        bounded.add_metric((each.group,), each.bounded)
        twice.add_metric((each.group,), each.twice)
        lacking.add_metric((each.group,), each.without_energies)
    yield from (quarantined, banned, outliers, bounded, twice, lacking)


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
        body, content_type = exposition(await _numbers(server), accept)
        return Response(body, headers={"content-type": content_type})

    return Starlette(
        routes=[
            Route("/healthz", health),
            Route("/readyz", readiness),
            Route("/metrics", metrics),
        ],
        exception_handlers={HTTPException: unknown_path},
    )


async def _numbers(server: Server) -> Numbers:
    worker = server.worker
    groups = None
    # Without the groups too: the counters say that the store fails, and matter most then.
    with suppress(SubmergeError):
        groups = await ask(server, metrics_of_groups)
    return Numbers(
        worker.tallies,
        server.audit.dropped,
        server.refusals.counts,
        not_ready(server),
        server.parted,
        server.broker,
        0.0 if worker.credentials is None else worker.credentials.until,
        groups,
        worker.admission.legacy_kits,
        server.unanswered,
        server.order_log.denials.counts,
        (server.history.bytes, server.history.dropped) if server.history.is_kept else None,
        server.last_backup.made_s,
        server.jobs.metrics,
    )
