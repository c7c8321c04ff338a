"""Wishes: what an operator wants of a node, on its way down.

A wish is a state, like a report: all that is wanted of one node, under a number that only rises.
It is kept where it was said and goes down with the answers to reports, level by level; a report
says the number of the newest that has come that far. So it arrives in the end, once, whoever is
away or restarts meanwhile. Where two levels want something of one node, what comes to be known
later goes before, each thing by itself; and each level has numbers of its own, so that no clock
has to agree with another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MOST_DESIRED = 4096
"""Nodes of which something is wanted; of more, what was wanted first is forgotten."""

MOST_AT_ONCE = 16
"""In one answer; the next one brings more."""

MOST_VERDICTS = 8
"""On alarms of one node: as many as it remembers."""


@dataclass(frozen=True, slots=True)
class DesiredState:
    """What is wanted of a node.

    Attributes
    ----------
    node : str
    number : int
        Of the parent that says it: rises with every change. Milliseconds of a clock, or more.
    paused : bool or None
        It is to learn nothing; None: nobody has said.
    verdicts : tuple of (int, bool)
        On alarms, by number: true to accept, false to reject. The newest last.
    """

    node: str
    number: int
    paused: bool | None = None
    verdicts: tuple[tuple[int, bool], ...] = ()

    @property
    def judged(self) -> dict[int, bool]:
        """Verdicts by alarm."""
        return dict(self.verdicts)

    def after(self, other: DesiredState, number: int) -> DesiredState:
        """Return what is wanted once `other` is known as well, under another number."""
        paused = self.paused if other.paused is None else other.paused
        judged = {**self.judged, **other.judged}
        news = [*(each for each in judged if each not in other.judged), *other.judged]
        verdicts = tuple((each, judged[each]) for each in news[-MOST_VERDICTS:])
        return DesiredState(self.node, number, paused, verdicts)


class DesiredStates:
    """Those that an aggregator passes on, of one group.

    Parameters
    ----------
    kept : mapping of str to Wish
        By node.
    heard : int
        Number of the newest that came from above.
    """

    def __init__(self, kept: Mapping[str, DesiredState] | None = None, heard: int = 0) -> None:
        self.by_node: dict[str, DesiredState] = dict(kept or {})
        self.heard = heard

    def set_desired(
        self,
        node: str,
        wall_ms: int,
        *,
        paused: bool | None = None,
        verdict: tuple[int, bool] | None = None,
    ) -> DesiredState:
        """Want something more of a node: what is not named stays as it is."""
        more = DesiredState(node, 0, paused, () if verdict is None else (verdict,))
        return self._learn(more, wall_ms)

    def take(self, desired_states: Iterable[DesiredState], wall_ms: int) -> bool:
        """Take in what came from above, the oldest first; return whether anything is new."""
        new = False
        for desired in desired_states:
            if desired.number > self.heard:
                self.heard = desired.number
                self._learn(desired, wall_ms)
                new = True
        return new

    def _learn(self, more: DesiredState, wall_ms: int) -> DesiredState:
        newest = max((desired.number for desired in self.by_node.values()), default=0)
        held = self.by_node.get(more.node, DesiredState(more.node, 0))
        desired = held.after(more, max(wall_ms, newest + 1))
        self._keep(desired)
        return desired

    def due(self, child: str, heard: int, *, is_client: bool) -> tuple[DesiredState, ...]:
        """Return what a child has still to hear, that has heard so far."""
        desired_states = [
            desired
            for desired in self.by_node.values()
            if desired.number > heard and (not is_client or desired.node == child)
        ]
        # The oldest first: what it says it has heard of then holds for all before.
        return tuple(sorted(desired_states, key=lambda desired: desired.number)[:MOST_AT_ONCE])

    def _keep(self, desired: DesiredState) -> None:
        self.by_node.pop(desired.node, None)
        self.by_node[desired.node] = desired
        while len(self.by_node) > MOST_DESIRED:
            del self.by_node[min(self.by_node, key=lambda node: self.by_node[node].number)]
