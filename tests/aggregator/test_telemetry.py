"""Telemetry by OTLP: what a collector gets of metrics, alarms and models."""

from __future__ import annotations

import socket
import sys
import threading
from types import SimpleNamespace

import msgspec
import pytest

pytest.importorskip("opentelemetry.sdk", reason="not installed: pip install 'submerge[otel]'")

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

from submerge.protocol.alarm_changes import AlarmEvent
from submerge_aggregator.batch import All, Down, Refuse
from submerge_aggregator.telemetry import MOST_REPORTS, telemetry_of
from submerge_client.alarms.event import event_facts
from support.collector import Collector, plain
from support.golden_parts import alarms


@pytest.fixture
def collector():
    found = Collector()
    yield found
    found.close()


@pytest.fixture
def telemetry(collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    return telemetry_of({"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}, "root")


def came(node: str, kind: str = "report") -> SimpleNamespace:
    return SimpleNamespace(kind=kind, data=b"12345", who=node)


@pytest.mark.parametrize(
    "environ",
    [{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}],
)
def test_it_is_off_unless_an_endpoint_is_named(environ):
    assert telemetry_of(environ, "root") is None


def test_without_opentelemetry_it_says_what_to_install(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    environ = {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://127.0.0.1:1"}

    with caplog.at_level("WARNING", "submerge"):
        assert telemetry_of(environ, "root") is None
    assert ["no telemetry: OpenTelemetry is not installed"] == caplog.messages


def test_an_alarm_is_a_log_record(telemetry, collector):
    alarm = alarms("press-8", "channel")[0]
    facts = event_facts(AlarmEvent("start", alarm), "presses")
    telemetry.alarms.write(msgspec.json.encode(facts) + b"\n")
    telemetry.close()
    (record,) = collector.got["/v1/logs"]
    said = plain(record.attributes)

    assert "submerge.alarm" == record.event_name
    assert ("press-8", "presses", "start") == tuple(
        said[f"alarm.{name}"] for name in ("node", "group", "event")
    )
    assert next(iter(facts["first"] or facts["top"])) == said["alarm.channel"]
    assert msgspec.json.decode(record.body.string_value) == msgspec.json.decode(
        msgspec.json.encode(facts)
    )
    assert {"service.instance.id": "root"}.items() <= collector.resources[0].items()


def test_a_model_is_a_trace_with_the_reports_that_are_new_in_it(telemetry, collector):
    first, second, refused, other = came("a"), came("b"), came("c"), came("d", "join")
    for each in (first, second, refused, other):
        telemetry.arrive(each)
    telemetry.follow(Down(first, "a", "pumps", "answer", b""))
    telemetry.follow(Down(other, "d", "pumps", "joined", b""))
    telemetry.follow(Refuse(refused, "no", "busy"))
    telemetry.follow(Down(second, "b", "presses", "answer", b""))
    telemetry.follow(All("pumps", b""))
    telemetry.follow(All("pumps", b""))  # with nothing new
    telemetry.close()
    model, report = sorted(collector.got["/v1/traces"], key=lambda each: each.name)

    assert ("model", "report") == (model.name, report.name)
    assert report.trace_id == model.trace_id
    assert report.parent_span_id == model.span_id
    assert {"group": "pumps", "reports": 1} == plain(model.attributes)
    assert {"node": "a", "group": "pumps", "bytes": 5} == plain(report.attributes)
    assert model.start_time_unix_nano == report.start_time_unix_nano
    assert report.end_time_unix_nano <= model.end_time_unix_nano


def test_metrics_are_those_that_can_be_scraped(telemetry, collector):
    gauge = GaugeMetricFamily("submerge_clients", "Clients.", labels=["group"])
    gauge.add_metric(["pumps"], 7)
    counter = CounterMetricFamily("submerge_messages_total", "Messages.")
    counter.add_metric([], 3)
    telemetry._take([gauge, counter])
    gauge.samples.clear()
    gauge.add_metric(["pumps"], 8)
    telemetry._take([counter])
    telemetry._take([gauge, counter])  # back again: as one instrument
    telemetry._metrics.force_flush()
    telemetry.close()
    got = {each.name: each for each in collector.got["/v1/metrics"]}
    assert len(got) == len(collector.got["/v1/metrics"])
    (point,) = got["submerge_clients"].gauge.data_points

    assert (8, {"group": "pumps"}) == (point.as_double or point.as_int, plain(point.attributes))
    assert got["submerge_messages"].sum.is_monotonic
    assert "Clients." == got["submerge_clients"].description


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_METRIC_EXPORT_INTERVAL", "60s"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "9999"),
        ("OTEL_BLRP_MAX_QUEUE_SIZE", "0"),
    ],
)
def test_a_variable_that_is_none_keeps_no_root_from_its_start(monkeypatch, caplog, name, value):
    """It may be set for a whole cluster."""
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", name: value}
    monkeypatch.setenv(name, value)

    with caplog.at_level("WARNING", "submerge"):
        assert telemetry_of(environ, "root") is None
    assert ["no telemetry: a variable OTEL_... is none"] == caplog.messages


def test_a_signal_without_an_endpoint_goes_nowhere(collector, monkeypatch):
    """Not to the port that exporters take by themselves."""
    http = "opentelemetry.exporter.otlp.proto.http."
    monkeypatch.setattr(f"{http}metric_exporter.OTLPMetricExporter", None)
    monkeypatch.setattr(f"{http}trace_exporter.OTLPSpanExporter", None)
    telemetry = telemetry_of({"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": collector.url}, "root")

    assert telemetry is not None
    telemetry.close()


def test_a_collector_that_never_answers_holds_up_no_end(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        telemetry = telemetry_of({"OTEL_EXPORTER_OTLP_ENDPOINT": url}, "root")
        telemetry._trace("pumps", [("a", 5, 1, 2)], 1)
        telemetry.close()
        alive = [each for each in threading.enumerate() if each.name == "telemetry"]

    assert alive
    assert all(each.daemon for each in alive)


def test_while_no_model_comes_a_trace_keeps_few_reports(telemetry):
    for _ in range(MOST_REPORTS + 10):
        report = came("a")
        telemetry.arrive(report)
        telemetry.follow(Down(report, "a", "pumps", "answer", b""))

    assert MOST_REPORTS == len(telemetry._reports["pumps"])
    assert MOST_REPORTS + 10 == telemetry._counts["pumps"]
    assert not telemetry._arrived
    telemetry.close()
