"""Checks of software: whether the packages that a configuration needs are installed."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from importlib import metadata, util
from typing import NamedTuple

from submerge_operate.doctor.findings import Finding, fails, ok, warning


class Need(NamedTuple):
    """A module, its distribution, and the extra that installs it."""

    module: str
    distribution: str
    extra: str


NUMPY = Need("numpy", "numpy", "client")
PROTOBUF = Need("google.protobuf", "protobuf", "client")
GRPC = Need("grpc", "grpcio", "grpc")
MQTT = Need("paho.mqtt", "paho-mqtt", "mqtt")
SERVER = (
    Need("grpc_health", "grpcio-health-checking", "aggregator"),
    Need("prometheus_client", "prometheus-client", "aggregator"),
    Need("starlette", "starlette", "aggregator"),
    Need("uvicorn", "uvicorn", "aggregator"),
)


def of_schemes(schemes: Sequence[str]) -> list[Need]:
    """Return the packages for links."""
    needs = [GRPC for scheme in schemes if scheme.startswith("grpc")]
    return needs + [MQTT for scheme in schemes if scheme.startswith("mqtt")]


def software(needs: Sequence[Need], *, in_c: bool = False) -> Iterator[Finding]:
    """Check packages; `in_c`: protobuf's C implementation is needed, as messages are large."""
    needs = list(dict.fromkeys((NUMPY, PROTOBUF, *needs)))
    missing = [need for need in needs if not _exists(need.module)]
    if missing:
        extras = ",".join(sorted({need.extra for need in missing}))
        message = f"{', '.join(need.distribution for need in missing)} not installed"
        yield fails("software", message, f"pip install 'submerge[{extras}]'")
        return
    versions = f"submerge {metadata.version('submerge')}, Python {platform.python_version()}"
    from submerge_proto.implementation import implementation

    if in_c and implementation() == "python":
        message = "protobuf runs in Python here, but an aggregator needs it in C"
        yield fails("software", message, "unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION")
    elif implementation() == "python":
        message = f"{versions}: protobuf runs in Python, which is slow and large"
        yield warning("software", message, "pip install --upgrade protobuf")
    else:
        last = needs[-1].distribution
        yield ok("software", f"{versions}, {last} {metadata.version(last)}")


def _exists(module: str) -> bool:
    try:
        return util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it is in
        return False
