"""Alarm metrics for Prometheus.

All but one are gauges: they follow from each node's last report. A client keeps its counts over
restarts, and its counts go when it is forgotten. What no node reports has no sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from submerge.protocol.alarm_status import MOST_ALARMS
from submerge_aggregator.questions.views import GroupMetrics


def of_alarms(groups: Sequence[GroupMetrics]) -> Iterator[Metric]:
    """Yield the metrics of the alarms of groups."""
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
