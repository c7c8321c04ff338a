"""ScoreTrail: how close a node's rows came to an alarm, for people: a byte a minute."""

from __future__ import annotations

import math
from typing import NamedTuple

from submerge.protocol.names import LAST_SECOND

MINUTE_S = 60.0

MINUTES = 32  # most minutes in a trail: so many bytes of a report

LAST_MINUTE = LAST_SECOND // 60
"""The last minute of the year 9999, in minutes since 1970; the first is 0."""

NOTHING, UNLIMITED, LEAST, MOST = 0, 1, 2, 255
"""Levels: no row came in this minute; rows came, and there was no limit; the least and the highest
share of a limit that a level tells."""

ONE = 128  # the level of a value that is just its limit
STEPS = 16  # levels from a share to twice of it


class ScoreTrail(NamedTuple):
    """Levels of consecutive minutes, the oldest first, at most `MINUTES`, none before 1970."""

    last: int  # of the last level, which may still rise: wall time over 60, rounded down
    levels: bytes

    @property
    def first(self) -> int:
        """The minute of the first level; above `last` if there is none."""
        return self.last + 1 - len(self.levels)

    def add(self, wall: float, level: int) -> ScoreTrail:
        """Return it with a row's `level_of`; a clock that goes back a little rewrites nothing."""
        if not 0 <= wall < (LAST_MINUTE + 1) * MINUTE_S:
            return self
        minute, levels = int(wall // MINUTE_S), self.levels
        if not levels or abs(minute - self.last) >= MINUTES:
            # A clock that jumps begins another trail.
            return ScoreTrail(minute, bytes([level]))
        if minute <= self.last and level <= levels[-1]:
            return self
        last = max(minute, self.last)
        longer = bytearray(levels + bytes(last - self.last))[-MINUTES:]
        longer[-1] = max(longer[-1], level)
        return ScoreTrail(last, bytes(longer))


NO_TRAIL = ScoreTrail(0, b"")


def level_of(share: float | None) -> int:
    """Return the level of a value over its limit; None: there is no limit."""
    if share is None:
        return UNLIMITED
    if not share > 0.0:
        return LEAST
    if share == math.inf:
        return MOST
    return min(max(ONE + round(STEPS * math.log2(share)), LEAST), MOST)


def share_of(level: int) -> float | None:
    """Return the value over its limit that a level tells; None where it tells none."""
    return None if level < LEAST else 2.0 ** ((level - ONE) / STEPS)
