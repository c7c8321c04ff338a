"""Telemetry of a real root: it reaches a collector, and one that is away holds up nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("opentelemetry.sdk", reason="not installed: pip install 'submerge[otel]'")

from support.collector import Collector, plain
from support.kills.configs import OverGrpc, aggregator, client
from support.patience import until
from support.programs import Programs, free_port

pytestmark = pytest.mark.slow

NAMES = "abc"


def test_metrics_and_the_trace_of_a_model_come(monkeypatch):
    collector, way = Collector(), OverGrpc.on_free_ports()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "300")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
    with Programs() as programs:
        text = aggregator("root", None, way, NAMES, programs.folder / "root.store")
        root = programs.start("aggregator", "--config", programs.file("root.toml", text))
        root.until("serving")
        given = client("n1", "root", way, NAMES, programs.folder / "n1.state")
        node = programs.start("client", "--config", programs.file("n1.toml", given))
        rows = np.random.default_rng(0).normal(size=(50, 3)).tolist()
        node.write("".join(f"{json.dumps(row)}\n" for row in rows).encode())
        until(lambda: collector.got["/v1/traces"], lambda: f"a trace in {collector.got}")
        until(
            lambda: (
                {"submerge_readings", "submerge_commits"}
                <= {each.name for each in collector.got["/v1/metrics"]}
            ),
            lambda: f"metrics in {sorted({each.name for each in collector.got['/v1/metrics']})}",
        )
        spans = list(collector.got["/v1/traces"])
    collector.close()

    assert {"model", "report"} == {span.name for span in spans}
    assert "n1" in {plain(span.attributes).get("node") for span in spans}


def test_a_collector_that_is_away_is_said_once_and_holds_up_no_end(monkeypatch):
    way = OverGrpc.on_free_ports()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
    with Programs() as programs:
        text = aggregator("root", None, way, NAMES, programs.folder / "root.store")
        root = programs.start("aggregator", "--config", programs.file("root.toml", text))
        root.until("serving")
        root.until("telemetry not sent, trying on")
        status = root.end()

    assert 0 == status
    assert [] == [line for line in root.lines if line.level == "error"]
