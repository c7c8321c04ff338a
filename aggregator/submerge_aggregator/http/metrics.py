"""The metrics of an aggregator, for Prometheus.

Counters are of this process. The figures of a group follow from its rows, and fall when a node
is forgotten, so they are gauges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from submerge import __version__
from submerge_aggregator.batch import Tallies
from submerge_aggregator.http.alarm_metrics import gauge, of_alarms
from submerge_aggregator.questions.views import GroupMetrics

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

    tallies : of the commit worker
    audit_dropped : entries that the audit log could not write
    refused : messages that were not taken, by reason: all reasons that there are
    why_not : why it is not ready; None if it is
    parted : a parent is configured, and cannot be reached
    broker : the brokers between here and the children can be reached; None without any
    certified_until : when the first of its own certificates ends; 0 without any
    groups : None while the machine cannot be asked
    legacy_kits : names that have shown a certificate without a role
    unanswered : bytes of messages that are being read, may begin on a stream, or wait; and the most
    denied : requests of operators that were refused, by reason: all reasons that there are
    history : bytes of the history on disk, and entries that it has dropped; None without one
    backup : when the newest copy of the store was made that was fetched whole; 0 if none is known
    jobs : jobs under way, and bytes of their messages that were sent and that came
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
        for (name, meaning), time in zip(TIMES.items(), times, strict=True):
            if time:  # what is not there has no sample: a zero would raise an alarm
                yield GaugeMetricFamily(f"submerge_{name}", meaning, value=time)
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
