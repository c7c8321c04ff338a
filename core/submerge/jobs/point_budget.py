"""PointBudget: how many readings may leave a client as they are, in any 24 hours.

1. What is shared is kept before it is sent: a process that dies has counted too many if any.
2. A contribution that is sent again is not counted again: it is made once.
3. Time is that of the wall; within a process it has to pass on the steady clock as well. A wall
   clock that goes back gives nothing back; one that was far ahead holds readings against the budget
   for 24 hours of the right time.
4. A record that cannot be read counts as a budget that is spent now.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from submerge.errors import UsageError, whole
from submerge.protocol.machine import Key, Now

DAY_S = 86400.0
MOST_PER_DAY = 1_000_000
TOGETHER_MS = 600_000
"""Contributions within ten minutes are one entry: at most 145 are kept."""

NO_ONE_SHARES = (
    "no participant may share readings now: set share_points at clients, or wait where it is set:"
    " what has left counts for 24 hours"
)
"""Why a job of points fails for which no client supplies any."""

RECORD: Key = ("shared_points",)
"""The key of its record."""


class _Shared(NamedTuple):
    """Readings that were shared at a time; steady only of this process."""

    points: int
    wall_ms: int
    steady: float | None


class PointBudget:
    """A client's budget: readings that may leave in any 24 hours; 0: none."""

    def __init__(self, per_day: int) -> None:
        self.per_day = whole("share_points", per_day, least=0, most=MOST_PER_DAY)
        self._shared: list[_Shared] = []

    def load(self, record: bytes | None, now: Now) -> None:
        """Take what earlier processes have shared."""
        if record is None:
            return
        try:
            kept = [(int(points), int(wall)) for points, wall in json.loads(record)]
        except (ValueError, TypeError, OverflowError, RecursionError):
            kept = []
        # `spend` keeps one entry at least: what has none is damaged.
        kept = kept or [(self.per_day, now.wall_ms)]
        # A time that is still to come was of a clock that went back: it counts from now.
        self._shared = [_Shared(max(0, n), min(wall, now.wall_ms), None) for n, wall in kept]

    def left(self, now: Now) -> int:
        """Return how many readings may still leave."""
        held = [each for each in self._shared if not _is_over(each, now)]
        return max(0, self.per_day - sum(each.points for each in held))

    def spend(self, points: int, now: Now) -> bytes:
        """Count readings before they leave, return the record to keep; UsageError if too many."""
        if points > (left := self.left(now)):
            raise UsageError(f"at most {left} readings may leave this client now, got {points}")
        self._shared = [each for each in self._shared if not _is_over(each, now)]
        newest = self._shared[-1] if self._shared else None
        if newest is not None and 0 <= now.wall_ms - newest.wall_ms < TOGETHER_MS:
            # The later time of both: nothing is given back early.
            self._shared[-1] = _Shared(newest.points + points, now.wall_ms, now.steady)
        else:
            self._shared.append(_Shared(points, now.wall_ms, now.steady))
        return json.dumps([[each.points, each.wall_ms] for each in self._shared]).encode()


def _is_over(shared: _Shared, now: Now) -> bool:
    """Return whether 24 hours have passed since, by all clocks that know."""
    by_wall = now.wall_ms - shared.wall_ms >= DAY_S * 1000
    return by_wall and (shared.steady is None or now.steady - shared.steady >= DAY_S)
