"""Alarms in numbers, as Prometheus reads them.

All are gauges: they follow from what nodes said last. A client keeps its counts over restarts,
and takes them along when it is forgotten. What nobody has said has no sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from submerge.protocol.alarm_status import MOST_ALARMS
from submerge_aggregator.questions.views import GroupMetrics


def of_alarms(group_metrics_of_all: Sequence[GroupMetrics]) -> Iterator[Metric]:
    """Yield what groups tell of their alarms."""
    nodes = _gauge("watch_nodes", "Nodes by how they watch for alarms, as they said last.", "state")
    watched = _gauge("watched_seconds", "Time watched with limits, of all nodes together.")
    allowed = _gauge("false_alarms_allowed", "False alarms promised for that time, at most.")
    raised = _gauge("alarms_raised", "Alarms that were raised in that time.")
    confirmed = _gauge("alarms_confirmed", "Of these, those that a person has called faults.")
    opened = _gauge("alarms_open", "Alarms that are open, here and below.")
    over = _gauge(
        "alarm_over_limit",
        f"The worst score of an open alarm, over its limit; {MOST_ALARMS} at most, the newest.",
        *("node", "channel", "cause"),
    )
    for each in group_metrics_of_all:
        watch, group = each.watch, each.group
        if watch is None:
            continue
        for state, count in watch.states.items():
            nodes.add_metric((group, state), count)
        watched.add_metric((group,), watch.watched_s)
        allowed.add_metric((group,), watch.allowed)
        raised.add_metric((group,), watch.raised)
        confirmed.add_metric((group,), watch.confirmed)
        opened.add_metric((group,), watch.open)
        reported: set[str] = set()
        for alarm in each.alarms[:MOST_ALARMS]:
            # One at a time is open at a node; where two rows disagree, the newest is the one.
            if alarm.node not in reported:
                reported.add(alarm.node)
                channel = next(iter(alarm.top), "")
                over.add_metric((group, alarm.node, channel, alarm.cause), alarm.worst)
    yield from (nodes, watched, allowed, raised, confirmed, opened, over)


def _gauge(name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"submerge_{name}", meaning, labels=("group", *labels))
