"""Telemetry by OTLP, where OTEL_EXPORTER_OTLP_ENDPOINT says so: metrics, alarms, and models."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from submerge import __version__
from submerge_aggregator.batch import All, Down, Out, Refuse
from submerge_aggregator.downlink import Inbound
from submerge_client.logs import say

if TYPE_CHECKING:
    from opentelemetry._logs import Logger
    from prometheus_client.metrics_core import Metric

SIGNALS = "METRICS", "LOGS", "TRACES"
MOST_WAITING = 20_000  # reports whose answer is awaited: more are forgotten, and in no trace
MOST_REPORTS = 64  # reports of one trace; how many there were is an attribute of it
END_S = 3.0  # at the end, what waits is sent for so long


def telemetry_of(environ: Mapping[str, str], node: str) -> Telemetry | None:
    """Return what sends telemetry; None if no endpoint is named."""
    every, each = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_{}_ENDPOINT"
    signals = {x for x in SIGNALS if environ.get(every) or environ.get(each.format(x))}
    if not signals or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    try:
        every_s = float(environ.get("OTEL_METRIC_EXPORT_INTERVAL") or 60_000) / 1000
        return Telemetry(node, signals, max(1.0, every_s))
    except ImportError:
        todo = "pip install 'submerge[otel]', or unset OTEL_EXPORTER_OTLP_..."
        say("no telemetry: OpenTelemetry is not installed", level="warning", todo=todo)
    except Exception as error:  # of a variable that is set for a whole cluster: the root goes on
        say("no telemetry: a variable OTEL_... is none", level="warning", why=str(error))
    return None


class AlarmRecords:
    """An output of alarms' lines, as log records."""

    def __init__(self, logger: Logger) -> None:
        self._logger = logger

    def read(self) -> tuple[()]:
        """Return nothing: what a collector has cannot be known."""
        return ()

    def write(self, line: bytes) -> None:
        """Send an alarm's line (docs/alarm-messages.md) as a log record."""
        from opentelemetry._logs import LogRecord, SeverityNumber

        facts = json.loads(line)
        told = {name: facts[name] for name in ("event", "id", "node", "group", "cause", "worst")}
        channel = next(iter(facts["first"] or facts["top"]), "")
        begins = facts["event"] == "start"
        self._logger.emit(
            LogRecord(
                timestamp=int(1e9 * (facts["began"] if begins else facts["ended"] or time.time())),
                observed_timestamp=time.time_ns(),
                severity_number=SeverityNumber.WARN if begins else SeverityNumber.INFO,
                severity_text="WARN" if begins else "INFO",
                body=line.decode().strip(),
                attributes={f"alarm.{name}": each for name, each in told.items()}
                | {"alarm.channel": channel},
                event_name="submerge.alarm",
            )
        )

    def close(self) -> None:
        """Release nothing: other groups have the same one."""


class Telemetry:
    """Sends what it is told; threads of OpenTelemetry's do so, and drop what finds no collector."""

    def __init__(self, node: str, signals: Collection[str], every_s: float) -> None:
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        said_once(logging.getLogger("opentelemetry"))
        about = {"service.name": "submerge-aggregator", "service.version": __version__}
        resource = Resource.create(about | {"service.instance.id": node})
        self._logs = LoggerProvider(resource, shutdown_on_exit=False)
        if "LOGS" in signals:
            self._logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        if "TRACES" in signals:
            self._traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        readers = []
        if "METRICS" in signals:
            # It reads when it is told to: figures are asked for on the event loop.
            readers = [PeriodicExportingMetricReader(OTLPMetricExporter(), float("inf"))]
        self._metrics = MeterProvider(readers, resource, shutdown_on_exit=False)
        self._tracer = self._traces.get_tracer("submerge", __version__)
        self._meter = self._metrics.get_meter("submerge", __version__)
        self.alarms = AlarmRecords(self._logs.get_logger("submerge", __version__))
        self._every_s = every_s
        self._made = set[str]()  # instruments: a metric may be away for a while
        self._samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        self._arrived: dict[int, int] = {}
        self._reports: dict[str, list[tuple[str, int, int, int]]] = {}
        self._counts = Counter[str]()

    async def run(self, families: Callable[[], Awaitable[Iterable[Metric]]]) -> None:
        """Send metrics now and then, until cancelled."""
        sending = beside(lambda: None)
        while True:
            if not sending.is_alive():  # else a collector is slow: the next turn has newer figures
                try:
                    self._take([*await families()])
                except Exception as error:  # no task dies in silence
                    say("telemetry not sent, trying on", level="warning", why=f"{error}"[:200])
                sending = beside(self._metrics.force_flush)
            await asyncio.sleep(self._every_s)

    def _take(self, families: Iterable[Metric]) -> None:
        self._samples = {
            each.name: [(sample.labels, float(sample.value)) for sample in each.samples]
            for each in families
        }
        for each in families:
            if each.name not in self._made:
                self._made.add(each.name)
                counts = each.type == "counter"
                make: Callable[..., Any] = self._meter.create_observable_gauge
                make = self._meter.create_observable_counter if counts else make
                make(each.name, [self._observed(each.name)], description=each.documentation)

    def _observed(self, name: str) -> Callable[[Any], Iterable[Any]]:
        from opentelemetry.metrics import Observation

        def observed(_: Any) -> Iterable[Any]:
            return [Observation(value, labels) for labels, value in self._samples.get(name, [])]

        return observed

    def arrive(self, inbound: Inbound) -> None:
        """Note when a report came."""
        if inbound.kind == "report":
            if len(self._arrived) >= MOST_WAITING:
                self._arrived.clear()
            self._arrived[id(inbound)] = time.time_ns()

    def follow(self, out: Out) -> None:
        """Take what goes out: the answer to a report, or the model that it is in."""
        match out:
            case Refuse(inbound):
                self._arrived.pop(id(inbound), None)
            case Down(inbound, to, group) if inbound is not None:
                came = self._arrived.pop(id(inbound), None)
                if came is not None:
                    self._counts[group] += 1
                    known = self._reports.setdefault(group, [])
                    if len(known) < MOST_REPORTS:
                        known.append((to, len(inbound.data), came, time.time_ns()))
            case All(group) if group in self._reports:
                self._trace(group, self._reports.pop(group), self._counts.pop(group))

    def _trace(self, group: str, reports: list[tuple[str, int, int, int]], n: int) -> None:
        from opentelemetry.trace import set_span_in_context

        about: dict[str, Any] = {"group": group, "reports": n}
        model = self._tracer.start_span("model", start_time=reports[0][2], attributes=about)
        within = set_span_in_context(model)
        for who, size, came, committed in reports:
            said: dict[str, Any] = {"node": who, "group": group, "bytes": size}
            span = self._tracer.start_span("report", within, start_time=came, attributes=said)
            span.end(committed)
        model.end()

    def close(self) -> None:
        """Send what waits, for a moment: a collector that never answers holds up no end."""
        providers = self._traces, self._logs, self._metrics
        ending = [beside(provider.shutdown) for provider in providers]
        until = time.monotonic() + END_S
        for each in ending:
            each.join(max(0.0, until - time.monotonic()))


def beside(send: Callable[[], object]) -> threading.Thread:
    """Send something on a thread that keeps no process from its end."""

    def run() -> None:
        try:
            send()
        except Exception as error:  # no thread dies in silence
            say("telemetry not sent, trying on", level="warning", why=f"{error}"[:200])

    thread = threading.Thread(target=run, name="telemetry", daemon=True)
    thread.start()
    return thread


def said_once(logger: logging.Logger) -> None:
    """Have what OpenTelemetry warns of said in our log, each thing once."""
    known = set[str]()

    class Once(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            what = record.getMessage()
            if record.msg not in known:
                known.add(record.msg)
                say("telemetry not sent, trying on", level="warning", why=what[:200])

    logger.handlers, logger.propagate = [Once(logging.WARNING)], False
