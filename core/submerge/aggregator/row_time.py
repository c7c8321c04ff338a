"""The time of a row: by its node's clock, by ours, or by the median row."""

from __future__ import annotations

import math
from collections.abc import Iterable

from submerge.aggregator.pool import Row
from submerge.protocol.machine import Now
from submerge.protocol.messages import Report

AHEAD_S = 30.0
"""The most that a believed clock may run ahead."""


def time_of(report: Report, now: Now, max_age_s: float) -> float:
    """Return the wall time that a report describes."""
    if not report.synced:
        # Without a synchronized clock a report counts from its arrival, unless ours lacks one too.
        return now.wall
    if not now.synced:
        return report.as_of
    return min(max(report.as_of, now.wall - max_age_s), now.wall + AHEAD_S)


def seen_from(now: Now, rows: Iterable[Row]) -> float:
    """Return the wall time as of which the rows are read.

    Now, by a synchronized clock. Another clock may be years behind synchronized children, and rows
    must not gain weight by coming from its future. Then it is at least the median time of the rows:
    a single wrong one moves it little.
    """
    if now.synced:
        return now.wall
    times = sorted(row.as_of for row in rows)
    return max(now.wall, times[len(times) // 2] if times else -math.inf)
