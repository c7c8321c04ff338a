"""What time a row is of: by its node's clock, by ours, or by what most rows say."""

from __future__ import annotations

import math
from collections.abc import Iterable

from submerge.aggregator.pool import Row
from submerge.protocol.machine import Now
from submerge.protocol.messages import Report

AHEAD_S = 30.0
"""A clock may run ahead by so much before it is not believed."""


def time_of(report: Report, now: Now, max_age_s: float) -> float:
    """Return the wall time that a report is of."""
    if not report.synced:
        # A clock that nobody vouches for counts as "when it came"; unless it is ours.
        return now.wall
    if not now.synced:
        return report.as_of
    return min(max(report.as_of, now.wall - max_age_s), now.wall + AHEAD_S)


def seen_from(now: Now, rows: Iterable[Row]) -> float:
    """Return the wall time that the rows are to be seen from.

    Now; but a clock that nobody vouches for may be years behind what synced children say, and
    rows must not gain weight for coming from its future. Then it is the time that half of the
    rows say it is, or later: one that lies moves it little.
    """
    if now.synced:
        return now.wall
    times = sorted(row.as_of for row in rows)
    return max(now.wall, times[len(times) // 2] if times else -math.inf)
