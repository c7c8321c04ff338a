"""DesiredState: what operators set for a node, on its way down.

It is a state, like a report: everything that is set for one node, under a number that only rises.
The aggregator where it was set keeps it, and it goes down level by level with the answers to
reports; a report holds the number of the newest that has arrived. So it arrives once, whichever
node is away or restarts meanwhile. If two levels set something for one node, the later arrival
wins, for each setting by itself. Each level counts its own numbers, so that clocks need not agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MOST_DESIRED = 4096
"""Nodes with a desired state, at most; of more, the oldest without a ban is forgotten."""

MOST_AT_ONCE = 16
"""Desired states in one answer, at most; the next answer brings more."""

MOST_VERDICTS = 8
"""Verdicts on alarms of one node: as many as it remembers alarms."""


@dataclass(frozen=True, slots=True)
class DesiredState:
    """What operators set for a node.

    Attributes
    ----------
    node : str
    number : int
        Counted by the parent that sends it: rises with every change. At least the wall time, ms.
    paused : bool or None
        Whether learning is paused; None: never set.
    verdicts : tuple of (int, bool)
        On alarms, by number: true to accept, false to reject. The newest last.
    banned : bool or None
        Whether aggregators refuse it, in all groups; None: never set.
    drill : int
        Number of the newest drill that is asked for; it rises. 0: none was.
    """

    node: str
    number: int
    paused: bool | None = None
    verdicts: tuple[tuple[int, bool], ...] = ()
    banned: bool | None = None
    drill: int = 0

    @property
    def accepted(self) -> dict[int, bool]:
        """Verdicts by alarm."""
        return dict(self.verdicts)

    def after(self, other: DesiredState, number: int) -> DesiredState:
        """Return this state changed by `other`, under another number."""
        paused = self.paused if other.paused is None else other.paused
        banned = self.banned if other.banned is None else other.banned
        judged = {**self.accepted, **other.accepted}
        news = [*(each for each in judged if each not in other.accepted), *other.accepted]
        verdicts = tuple((each, judged[each]) for each in news[-MOST_VERDICTS:])
        drill = max(self.drill, other.drill)
        return DesiredState(self.node, number, paused, verdicts, banned, drill)


class DesiredStates:
    """The desired states that an aggregator passes on, for one group.

    Parameters
    ----------
    kept : mapping of str to DesiredState
        By node.
    heard : int
        Number of the newest that arrived from above.
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
        banned: bool | None = None,
        drill: bool = False,
    ) -> DesiredState:
        """Change the desired state of a node: what is not given stays as it is."""
        verdicts = () if verdict is None else (verdict,)
        more = DesiredState(node, 0, paused, verdicts, banned, wall_ms if drill else 0)
        return self._learn(more, wall_ms)

    def take(
        self, desired_states: Iterable[DesiredState], wall_ms: int
    ) -> tuple[DesiredState, ...]:
        """Take in states from above, the oldest first; return those that are new."""
        new = []
        for desired in desired_states:
            if desired.number > self.heard:
                self.heard = desired.number
                self._learn(desired, wall_ms)
                new.append(desired)
        return tuple(new)

    def _learn(self, more: DesiredState, wall_ms: int) -> DesiredState:
        newest = max((desired.number for desired in self.by_node.values()), default=0)
        held = self.by_node.get(more.node, DesiredState(more.node, 0))
        desired = held.after(more, max(wall_ms, newest + 1))
        self.by_node.pop(desired.node, None)
        self.by_node[desired.node] = desired
        while len(self.by_node) > MOST_DESIRED:
            # A ban that is forgotten would not reach an aggregator that is new.
            free = [each for each in self.by_node.values() if not each.banned]
            oldest = min(free or self.by_node.values(), key=lambda each: each.number)
            del self.by_node[oldest.node]
        return desired

    def due(self, child: str, heard: int, *, is_client: bool) -> tuple[DesiredState, ...]:
        """Return the states that a child has to receive, after those up to the number `heard`."""
        desired_states = [
            desired
            for desired in self.by_node.values()
            if desired.number > heard and (not is_client or desired.node == child)
        ]
        # The oldest first: the number that a child confirms then covers all before it.
        return tuple(sorted(desired_states, key=lambda desired: desired.number)[:MOST_AT_ONCE])
