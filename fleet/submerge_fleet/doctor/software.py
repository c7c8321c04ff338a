"""Software: whether what a configuration needs is installed."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from importlib import metadata, util
from typing import NamedTuple

from submerge_fleet.doctor.findings import Finding, fails, ok, warning


class Need(NamedTuple):
    """A module, and the extra that brings it."""

    module: str
    distribution: str
    extra: str


NUMPY = Need("numpy", "numpy", "client")
PROTOBUF = Need("google.protobuf", "protobuf", "client")
GRPC = Need("grpc", "grpcio", "grpc")
MQTT = Need("paho.mqtt", "paho-mqtt", "mqtt")
HOST = Need("psutil", "psutil", "host")
SERVER = (
    Need("grpc_health", "grpcio-health-checking", "aggregator"),
    Need("prometheus_client", "prometheus-client", "aggregator"),
    Need("starlette", "starlette", "aggregator"),
    Need("uvicorn", "uvicorn", "aggregator"),
)


def of_schemes(schemes: Sequence[str]) -> list[Need]:
    """Return what links need."""
    needs = [GRPC for scheme in schemes if scheme.startswith("grpc")]
    return needs + [MQTT for scheme in schemes if scheme.startswith("mqtt")]


def software(needs: Sequence[Need], *, in_c: bool = False) -> Iterator[Finding]:
    """Whether it is there; `in_c`: a protobuf that reads large messages in time is needed."""
    needs = list(dict.fromkeys((NUMPY, PROTOBUF, *needs)))
    missing = [need for need in needs if not _found(need.module)]
    if missing:
        extras = ",".join(sorted({need.extra for need in missing}))
        message = f"{', '.join(need.distribution for need in missing)} not installed"
        yield fails("software", message, f"pip install 'submerge[{extras}]'")
        return
    said = f"submerge {metadata.version('submerge')}, Python {platform.python_version()}"
    from submerge_proto.implementation import implementation

    if in_c and implementation() == "python":
        message = "protobuf runs in Python here, and an aggregator needs it in C"
        yield fails("software", message, "take PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION away")
    elif implementation() == "python":
        message = f"{said}: protobuf runs in Python, which is slow and large"
        yield warning("software", message, "pip install --upgrade protobuf")
    else:
        last = needs[-1].distribution
        yield ok("software", f"{said}, {last} {metadata.version(last)}")


def _found(module: str) -> bool:
    try:
        return util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it is in
        return False
