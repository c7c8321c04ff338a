"""Presence: which incarnations of each node have a row, and when each was heard."""

from __future__ import annotations

from submerge.protocol.messages import Incarnation


class Presence:
    """Incarnations that may still report; all times are of the steady clock.

    Attributes
    ----------
    heard : dict of (node, incarnation) to float
        When each was last heard.
    """

    def __init__(self) -> None:
        self.heard: dict[tuple[str, Incarnation], float] = {}
        self._came: dict[tuple[str, Incarnation], float] = {}
        self._live: dict[str, list[Incarnation]] = {}

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
        self.heard[key] = steady

    def end(self, node: str, incarnation: Incarnation) -> None:
        """Forget an incarnation: its row is gone."""
        del self.heard[node, incarnation], self._came[node, incarnation]
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
