"""All that an aggregator can show to Prometheus."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from submerge_aggregator.batch import Tallies
from submerge_aggregator.http.metrics import Numbers, exposition
from submerge_aggregator.operators.identify import DENIALS
from submerge_aggregator.questions.health import metrics_of_groups
from submerge_aggregator.refusals import REASONS
from support.alarmed import ROWS, alarm, alarm_status
from support.house import House


def scraped(folder: Path) -> dict[str, dict[str, set[str]]]:
    """Return metrics with their labels and these labels' values.

    Of an aggregator with a node, a certificate, a broker, a backup and an alarm.
    """
    with House(folder) as house:
        said = alarm_status(alarm(), watched_s=3600.0)
        house.hears("c", ROWS, alarm_status=said, certified_until=1.0)
        house.passes(61.0)
        node, now = house.server.worker.node, house.time()
        assert node is not None
        numbers = Numbers(Tallies(), 0, dict.fromkeys(REASONS, 0), None, False, True, 1.0, [])
        denied = dict.fromkeys(DENIALS, 0)
        numbers = numbers._replace(
            groups=metrics_of_groups(node, now), denied=denied, history=(0, 0), backup=1.0
        )
    found: dict[str, dict[str, set[str]]] = {}
    for family in text_string_to_metric_families(exposition(numbers, "")[0].decode()):
        if family.name.startswith("submerge_"):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = found.setdefault(name, {})
            for sample in family.samples:
                for label, value in sample.labels.items():
                    labels.setdefault(label, set()).add(value)
    return found
