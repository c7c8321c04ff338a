"""Turns: which nodes are run by two machines at once.

A client's incarnation is one run of one process. After a restart the new incarnation reports, and
the old one does not: its final report closes it, and a report that was on its way may come late.
If both go on and report in turns, two machines run with one kit.

Only reports with a new number count, and no final ones. A broker that sends a retained report
again changes nothing. Clocks have no part in it.
"""

from __future__ import annotations

from submerge.protocol.machine import Note
from submerge.protocol.messages import Incarnation

RETURNS = 3
"""So many times an incarnation reports after another one has: A, B, A, B, A, B, A. Without a
second machine there are two at most: A, B, late A, B, C, late B."""

INTERVALS = 6.0
"""Two machines count as one again so many report intervals after the last return."""


class Turns:
    """Which incarnations of each node report in turns.

    interval_s : A report interval. Machines that report less often are recognised as well. They
        count as one again after twice the time that their last returns took.
    """

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._named: set[str] = set()
        self._last: dict[str, Incarnation] = {}
        # Times of the last returns of each, on the steady clock.
        self._returns: dict[str, dict[Incarnation, tuple[float, ...]]] = {}

    def take(self, node: str, incarnation: Incarnation, steady: float) -> None:
        """Note that a report with a new number has come."""
        last, self._last[node] = self._last.get(node, incarnation), incarnation
        if last == incarnation:
            return
        returns = self._returns.setdefault(node, {last: ()})
        known = returns.get(incarnation)
        returns[incarnation] = () if known is None else (*known, steady)[-RETURNS:]

    def end(self, node: str, incarnation: Incarnation) -> None:
        """Forget an incarnation: its row is gone."""
        returns = self._returns.get(node, {})
        returns.pop(incarnation, None)
        if not returns:
            self._returns.pop(node, None)
            self._named.discard(node)
        if self._last.get(node) == incarnation:
            del self._last[node]

    def at_once(self, node: str, steady: float) -> tuple[Incarnation, ...]:
        """Return the incarnations of a node that run at once; none, if it is one machine."""
        returns = [
            (incarnation, times)
            for incarnation, times in self._returns.get(node, {}).items()
            if len(times) >= RETURNS - 1
            and steady - times[-1] <= max(INTERVALS * self._interval_s, 2 * (times[-1] - times[0]))
        ]
        if len(returns) < 2 or max(len(times) for _, times in returns) < RETURNS:
            return ()
        return tuple(incarnation for incarnation, _ in returns)

    def nodes_at_once(self, steady: float) -> tuple[str, ...]:
        """Return the nodes that several machines run, by name."""
        return tuple(node for node in sorted(self._returns) if self.at_once(node, steady))

    def notes(self, group: str, node: str, steady: float) -> list[Note]:
        """Return a note if a second machine reports as this node, once."""
        several = self.at_once(node, steady)
        if not several:
            self._named.discard(node)
        if not several or node in self._named:
            return []
        self._named.add(node)
        facts = {
            "group": group,
            "node": node,
            "incarnations": tuple(map(str, several)),
            "meaning": "both have one kit; all their readings count",
            "todo": "find the second machine, and give it a kit of its own",
        }
        return [Note("two machines report as one", facts)]
