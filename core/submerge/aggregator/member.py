"""Membership: what an aggregator remembers of a node beside its rows, as a value.

Closed incarnations are remembered by name, the last `CLOSED` of a node; when one falls off the
list, a floor rises above its creation time.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace

from submerge.protocol.messages import Incarnation

CLOSED, FENCES = 64, 8
"""Closed incarnations and fences that are remembered of a node."""

CLIENT_ROWS, AGGREGATOR_ROWS = 6, 4
"""Most live rows of a client, and of an aggregator."""


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """What is remembered of a node beside its rows.

    closed : closed incarnations, and the last seq of each
    floor : incarnations created before it (ms) are closed as well
    fences : for an aggregator's incarnations, the fence of the process that reports for each
    """

    closed: dict[Incarnation, int] = field(default_factory=dict)
    floor: int = 0
    fences: dict[Incarnation, bytes] = field(default_factory=dict)

    def closed_seq(self, incarnation: Incarnation) -> int | None:
        """Return the last seq of a closed incarnation; None if it is not closed."""
        if incarnation in self.closed:
            return self.closed[incarnation]
        return 0 if incarnation.created_ms < self.floor else None

    def admits(
        self,
        incarnation: Incarnation,
        fence: bytes,
        past: Mapping[bytes, int],
        newest: tuple[bytes, int] | None,
    ) -> bool:
        """Return whether an aggregator's process may report for its store from now on.

        It may if no other process has reported since: the fence that is held is its own or an
        earlier one of its store, with no report after the store left that fence. A copy of the
        store, or an old backup, does not know the reports of the other process.

        past : the earlier fences of the store, and the last seq under each
        newest : the fence and the seq of the newest report; None without one
        """
        held = self.fences.get(incarnation)
        if held is not None and held != fence and held not in past:
            return False
        return newest is None or newest[1] <= past.get(newest[0], newest[1])

    def with_closed(self, incarnation: Incarnation, seq: int) -> Membership:
        """Return it with one more closed incarnation."""
        closed, floor = {**self.closed, incarnation: seq}, self.floor
        while len(closed) > CLOSED:
            # Never the one just closed: its last message may arrive again.
            oldest = min(name for name in closed if name != incarnation)
            del closed[oldest]
            floor = max(floor, oldest.created_ms + 1)
        return replace(self, closed=closed, floor=floor, fences=self._fences_of_others(incarnation))

    def with_fence(
        self, incarnation: Incarnation, fence: bytes, live: Container[Incarnation]
    ) -> Membership:
        """Return it with another fence for an incarnation; `live`: those that have a row."""
        fences = self._fences_of_others(incarnation)
        spare = [name for name in fences if name not in live]
        for name in spare[: max(0, len(spare) + 1 - FENCES)]:
            del fences[name]
        return replace(self, fences={**fences, incarnation: fence})

    def _fences_of_others(self, incarnation: Incarnation) -> dict[Incarnation, bytes]:
        return {name: fence for name, fence in self.fences.items() if name != incarnation}
