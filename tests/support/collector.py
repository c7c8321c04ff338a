"""A collector of OTLP: it holds what real exporters send it."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {
    "/v1/logs": (ExportLogsServiceRequest, "resource_logs", "scope_logs", "log_records"),
    "/v1/metrics": (ExportMetricsServiceRequest, "resource_metrics", "scope_metrics", "metrics"),
    "/v1/traces": (ExportTraceServiceRequest, "resource_spans", "scope_spans", "spans"),
}


class Collector:
    """got : By path, what came, as messages; resources : attributes of who sent it."""

    def __init__(self) -> None:
        self.got: dict[str, list[Any]] = {path: [] for path in KINDS}
        self.resources: list[dict[str, str]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    data = gzip.decompress(data)
                kind, resources, scopes, records = KINDS[self.path]
                for each in getattr(kind.FromString(data), resources):
                    collector.resources.append(plain(each.resource.attributes))
                    for scope in getattr(each, scopes):
                        collector.got[self.path] += getattr(scope, records)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def plain(attributes: Any) -> dict[str, Any]:
    """Return attributes as a dict."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
