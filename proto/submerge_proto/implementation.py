"""Which protobuf runs here: the one in C, or the one in pure Python.

The slow one is enough for a device without a wheel. In an aggregator a hostile message took 60
times as long with it, and nine times the memory (benchmarks/bombs.md).
"""

from __future__ import annotations

from google.protobuf.internal import api_implementation

from submerge import UsageError


def implementation() -> str:
    """Return "upb" or "cpp", both in C, or "python"."""
    return str(api_implementation.Type())


def check_compiled() -> None:
    """Refuse protobuf in pure Python."""
    if implementation() == "python":
        raise UsageError(
            "an aggregator needs protobuf's C implementation (upb), got the one in pure Python:"
            " unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION, or install a wheel of protobuf"
            " for this platform"
        )
