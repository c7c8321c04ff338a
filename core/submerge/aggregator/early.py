"""EarlyReadings: how many readings clients had learnt before they had any parent.

They are counted. If a machine was copied with its memory before its first join, and its two
processes meet two stores, they are counted twice, and no name can tell: docs/decisions/0024. This
number bounds them.
"""

from __future__ import annotations

from submerge.protocol.messages import Incarnation

REMEMBERED = 1024
"""Incarnations whose joins are known: one whose answer was lost joins again, with more readings."""


class EarlyReadings:
    """The sum over incarnations that have joined here since the process began."""

    def __init__(self) -> None:
        self.total = 0
        self._joined: dict[tuple[str, Incarnation], int] = {}

    def note(self, node: str, incarnation: Incarnation, readings: int) -> None:
        """Take the readings of an incarnation that joins; what it said before is in the sum."""
        child = node, incarnation
        known = self._joined.pop(child, 0)
        self.total += max(0, readings - known)
        self._joined[child] = max(known, readings)
        while len(self._joined) > REMEMBERED:
            del self._joined[next(iter(self._joined))]
