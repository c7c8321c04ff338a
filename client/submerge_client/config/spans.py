"""seconds(), in_bytes(): durations and sizes as people write them: 90s, 3h, 1y, 800kB, 4MiB."""

from __future__ import annotations

import math
import re

from submerge import UsageError

SECONDS = {"y": 365 * 86400.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

NUMBER = r"\s*(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)\s*"
DURATION = re.compile(NUMBER + "(y|d|h|m|s|ms)")


def seconds(text: str) -> float:
    """Return the seconds of `1y` (365 days), `2d`, `3h`, `5m`, `90s` or `50ms`; or UsageError."""
    found = DURATION.fullmatch(text)
    if found is None or not math.isfinite(span := float(found[1]) * SECONDS[found[2]]):
        units = ", ".join(SECONDS)
        raise UsageError(
            f"expected a time such as 90s, 5m, 3h or 2d, got {text!r}; units are {units}"
        )
    return span


BYTES = {"B": 1, "kB": 1000, "KiB": 1 << 10, "MB": 10**6, "MiB": 1 << 20, "GB": 10**9}

SIZE = re.compile(f"{NUMBER}({'|'.join(BYTES)})")


def in_bytes(text: str) -> int:
    """Return the bytes of `500kB`, `3MB` or `4MiB`, in whole numbers; or UsageError."""
    found = SIZE.fullmatch(text)
    if found is None or not math.isfinite(size := float(found[1]) * BYTES[found[2]]):
        units = ", ".join(BYTES)
        raise UsageError(f"expected a size such as 500kB or 3MB, got {text!r}; units are {units}")
    return int(size)
