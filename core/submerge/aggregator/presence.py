"""Presence: which incarnations of each node have a row, and when each was heard."""

from __future__ import annotations

from collections.abc import Mapping

from submerge.aggregator.at_once import Turns
from submerge.aggregator.row_time import AHEAD_S
from submerge.protocol.machine import Now
from submerge.protocol.messages import Incarnation

SILENT_INTERVALS = 3.0
"""A child is silent after so many report intervals without a report."""


class Presence:
    """Incarnations that may still report; all times are of the steady clock.

    interval_s : A report interval.
    heard : When each was last heard.
    turns : Which incarnations of a node go on at once.
    """

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self.heard: dict[tuple[str, Incarnation], float] = {}
        self.turns = Turns(interval_s)
        self._came: dict[tuple[str, Incarnation], float] = {}
        self._live: dict[str, list[Incarnation]] = {}
        self._silent_s: dict[tuple[str, Incarnation], float] = {}
        self._gaps: dict[tuple[str, Incarnation], tuple[float, float]] = {}

    def __contains__(self, node: object) -> bool:
        return node in self._live

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes that have a row."""
        return tuple(self._live)

    def live(self, node: str) -> tuple[Incarnation, ...]:
        """Return a node's incarnations, in the order in which they were first heard."""
        return tuple(self._live.get(node, ()))

    def hear(self, node: str, incarnation: Incarnation, steady: float) -> None:
        """Note that an incarnation was heard; the first time adds it."""
        key = node, incarnation
        if key not in self.heard:
            self._live.setdefault(node, []).append(incarnation)
            self._came[key] = steady
        elif steady > self.heard[key]:
            self._gaps[key] = steady - self.heard[key], self._gaps.get(key, (0.0, 0.0))[0]
        self.heard[key] = steady
        self._silent_s.pop(key, None)

    def load(self, as_of: Mapping[tuple[str, Incarnation], float], now: Now) -> None:
        """Add the incarnations of a store's rows, each with the wall time that its row describes.

        While the store was closed nothing could be heard. So an incarnation counts as silent for
        as long as its row is older than the newest one; without a synchronized clock, from now.
        """
        newest = max((at for at in as_of.values() if at <= now.wall + AHEAD_S), default=0.0)
        for (node, incarnation), at in as_of.items():
            self.hear(node, incarnation, now.steady)
            self._silent_s[node, incarnation] = max(0.0, newest - at) if now.synced else 0.0

    def end(self, node: str, incarnation: Incarnation) -> None:
        """Forget an incarnation: its row is gone."""
        del self.heard[node, incarnation], self._came[node, incarnation]
        self._silent_s.pop((node, incarnation), None)
        self._gaps.pop((node, incarnation), None)
        self.turns.end(node, incarnation)
        self._live[node].remove(incarnation)
        if not self._live[node]:
            del self._live[node]

    def longest_silent(self, node: str, spared: Incarnation) -> Incarnation:
        """Return the longest silent incarnation of a node, except for `spared`."""
        others = [incarnation for incarnation in self._live[node] if incarnation != spared]
        return min(others, key=lambda each: (self.heard[node, each], each))

    def silence(self, node: str, incarnation: Incarnation, steady: float) -> float:
        """Return for how long an incarnation was silent while the node reported under another.

        Counted from when the other was first heard: a client that was away for days sends the
        final report of its last incarnation only after it has come back.
        """
        heard = self.heard[node, incarnation]
        others = [
            self._came[node, other] for other in self._live[node] if self.heard[node, other] > heard
        ]
        return steady - max(heard, min(others)) if others else 0.0

    def unheard(self, node: str, incarnation: Incarnation, steady: float) -> float:
        """Return for how long nothing was heard of an incarnation, also before a restart."""
        key = node, incarnation
        return max(0.0, steady - self.heard[key]) + self._silent_s.get(key, 0.0)

    def is_silent(self, node: str, incarnation: Incarnation, steady: float) -> bool:
        """Return whether nothing was heard of an incarnation for three report intervals.

        A child that reports less often has longer intervals: the longer of the last two counts.
        """
        interval_s = max(self.interval_s, *self._gaps.get((node, incarnation), (0.0, 0.0)))
        return self.unheard(node, incarnation, steady) > SILENT_INTERVALS * interval_s
