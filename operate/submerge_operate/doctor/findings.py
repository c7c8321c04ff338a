"""Findings: results of checks, a line each, with hints."""

from __future__ import annotations

import platform
import textwrap
from collections.abc import Iterator, Sequence
from importlib import metadata, util
from typing import Literal, NamedTuple

from submerge_files.console.units import printable

State = Literal["ok", "warning", "fails"]

WIDTH = 80
INDENT = 21

DAY_S = 86400.0


class Finding(NamedTuple):
    check: str
    state: State  # with "fails" the program cannot work; with "warning" it can, for now
    # what was found, in a line; what to do, empty if all is well
    message: str
    hint: str = ""


def ok(check: str, message: str) -> Finding:
    return Finding(check, "ok", message)


def warning(check: str, message: str, hint: str) -> Finding:
    return Finding(check, "warning", message, hint)


def fails(check: str, message: str, hint: str) -> Finding:
    return Finding(check, "fails", message, hint)


def text_of(finding: Finding) -> str:
    """Return a finding for a terminal of 80 columns."""
    lines = _wrapped(finding.message)
    if finding.hint:
        lines += [
            ("-> " if i == 0 else "   ") + line for i, line in enumerate(_wrapped(finding.hint))
        ]
    head = f"{finding.state:<8} {finding.check:<12}"
    return "\n".join(f"{head if i == 0 else '':<{INDENT}}{line}" for i, line in enumerate(lines))


def summary_of(findings: Sequence[Finding]) -> str:
    failed, warned = (
        sum(each.state == state for each in findings) for state in ("fails", "warning")
    )
    counts = [f"{failed} fail{'s' * (failed == 1)}"] if failed else []
    counts += [f"{warned} warning{'s' * (warned > 1)}"] if warned else []
    checks = f"{len(findings)} check{'s' * (len(findings) != 1)}"
    return f"{checks}: {', '.join(counts) or 'all fine'}"


def _wrapped(text: str) -> list[str]:
    # Text of a certificate or a broker could contain terminal commands.
    return textwrap.wrap(printable(" ".join(text.split())), WIDTH - INDENT - 3) or [""]


class Need(NamedTuple):
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
    needs = [GRPC for scheme in schemes if scheme.startswith("grpc")]
    return needs + [MQTT for scheme in schemes if scheme.startswith(("mqtt", "ws"))]


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
