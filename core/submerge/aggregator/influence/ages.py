"""NodeAges: for how long an aggregator has heard each node of a group, by its own time.

A node's clock says nothing about it, and ours little: the group's time is what its steady clock
has counted, and a restart adds the time that the process was down.

1. While it runs, time is steady time: a wall clock that jumps gives no node age.
2. Downtime is the difference of wall times, if the clock was synchronized before and is now,
   and at most `DOWN_S`. Until the clock is synchronized again, it waits;
   another restart before that loses it.
3. A node's age begins with its first accepted report. A restart, a new incarnation, a quarantine
   and silence leave it; forgetting the node ends it.

Writes are rare: one record for a node, once, and one for the group within `KEPT_EVERY_S`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from submerge.protocol.machine import Key, Now, Records

DOWN_S = 7 * 86400.0
"""Longest downtime that is believed: a clock that is wrong at a restart gives no more age."""

KEPT_EVERY_S = 3600.0
"""How old the kept time may be. A restart makes up for it, if the clock is synchronized."""


class GroupTime(NamedTuple):
    """The time of a group, as a store keeps it.

    elapsed : seconds since the group began here
    wall : wall time at that moment; 0 if it was not synchronized
    """

    elapsed: float
    wall: float


class NodeAges:
    """When each node of a group was first heard.

    created : Wall time at which the store was created.
    changes : Receives the records to keep.

    elapsed : The time of the group, in seconds.
    """

    def __init__(self, group: str, created: float, changes: dict[Key, Any]) -> None:
        self.elapsed = 0.0
        self._group, self._created, self._changes = group, created, changes
        self._first: dict[str, float] = {}
        self._steady: float | None = None
        self._kept_at: float | None = None
        self._down: _Down | None = None

    def load(self, records: Records, nodes: Iterable[str], now: Now) -> None:
        """Load a store's records; `nodes`: those that have rows.

        A store of an earlier version has no ages: its nodes were heard since it was created.
        """
        self._first = dict.fromkeys(nodes, 0.0)
        self._first |= {
            key[2]: first for key, first in records.items() if key[:2] == ("first", self._group)
        }
        known: GroupTime | None = records.get(("elapsed", self._group))
        elapsed, wall = known or GroupTime(0.0, self._created)
        most = DOWN_S if known else float("inf")
        self.elapsed, self._steady = elapsed, now.steady
        self._down = _Down(wall, elapsed, most, []) if wall else None
        self.advance(now)

    def advance(self, now: Now) -> None:
        """Let time pass."""
        before, self._steady = self._steady, now.steady
        self.elapsed += 0.0 if before is None else max(0.0, now.steady - before)
        down = self._down
        if down is not None and now.synced:
            passed = now.wall - down.wall - (self.elapsed - down.elapsed)
            passed, self._down = min(max(passed, 0.0), down.most), None
            self.elapsed += passed
            for node in down.heard:
                # It was first heard after the downtime, which must not make it older.
                self._put(node, self._first[node] + passed)

    def hear(self, node: str) -> None:
        """Note that a node was heard: its age begins, if it is new."""
        if node not in self._first:
            self._put(node, self.elapsed)
            if self._down is not None:
                self._down.heard.append(node)

    def forget(self, node: str) -> None:
        """Forget a node: when it is heard again, its age begins again."""
        if self._first.pop(node, None) is not None:
            self._changes["first", self._group, node] = None
            if self._down is not None and node in self._down.heard:
                self._down.heard.remove(node)

    def keep(self, now: Now) -> None:
        """Keep the group's time, if it was not for long."""
        if self._kept_at is None or self.elapsed - self._kept_at >= KEPT_EVERY_S:
            self._kept_at = self.elapsed
            wall = now.wall if now.synced else 0.0
            self._changes["elapsed", self._group] = GroupTime(self.elapsed, wall)

    def age(self, node: str) -> float:
        """Return for how long a node has been heard, in whole seconds; 0 for an unknown one."""
        # Whole: two clocks that say the same differ in their last digits.
        return float(max(0, round(self.elapsed - self._first.get(node, self.elapsed))))

    def _put(self, node: str, first: float) -> None:
        self._first[node] = self._changes["first", self._group, node] = first


class _Down(NamedTuple):
    """Downtime that is not known yet.

    wall, elapsed : when it began, by the wall clock and in the group's time
    most : the most of it that is believed
    heard : nodes that were first heard since
    """

    wall: float
    elapsed: float
    most: float
    heard: list[str]
