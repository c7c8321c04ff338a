"""All that an aggregator can show to Prometheus."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from prometheus_client.parser import text_string_to_metric_families

from submerge_aggregator.http.metrics import exposition, group_families, server_families
from support.alarmed import ROWS, alarm, alarm_status
from support.house import House


def scraped(folder: Path) -> dict[str, dict[str, set[str]]]:
    """Return metrics with their labels and these labels' values.

    Of an aggregator with a node, a certificate, a broker, a backup and an alarm.
    """
    with House(folder, history_bytes=1 << 20) as house:
        said = alarm_status(alarm(), watched_s=3600.0)
        house.hears("c", ROWS, alarm_status=said, certified_until=1.0)
        house.passes(61.0)
        server = house.server
        server.downlinks = (SimpleNamespace(reachable=True, reading=None),)
        server.worker.credentials = SimpleNamespace(until=1.0)
        server.last_backup.note(1.0, 1)
        groups = house.does(server.ask(group_families))
        text, _ = exposition([*server_families(server), *groups], "")
        server.downlinks, server.worker.credentials = (), None
    found: dict[str, dict[str, set[str]]] = {}
    for family in text_string_to_metric_families(text.decode()):
        if family.name.startswith("submerge_"):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = found.setdefault(name, {})
            for sample in family.samples:
                for label, value in sample.labels.items():
                    labels.setdefault(label, set()).add(value)
    return found
