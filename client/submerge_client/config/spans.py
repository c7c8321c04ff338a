"""seconds(): a duration as people write it: 90s, 5m, 3h, 2d, 1y."""

from __future__ import annotations

import math
import re

from submerge import UsageError

SECONDS = {"y": 365 * 86400.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

NUMBER = r"\s*(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)\s*"
DURATION = re.compile(NUMBER + "(y|d|h|m|s|ms)")


def seconds(text: str) -> float:
    """Return the seconds of `1y` (365 days), `2d`, `3h`, `5m`, `90s` or `50ms`.

    Raises UsageError if it is no time, or an infinite one.
    """
    found = DURATION.fullmatch(text)
    if found is None or not math.isfinite(span := float(found[1]) * SECONDS[found[2]]):
        units = ", ".join(SECONDS)
        raise UsageError(
            f"expected a time such as 90s, 5m, 3h or 2d, got {text!r}; units are {units}"
        )
    return span
