"""DesiredState: what operators set for a node, on its way down (docs/protocol.md, 8).

It is a state, like a report: everything that is set for one node, under a number that only rises.
If two levels set something for one node, the later arrival wins, for each setting by itself. Each
level counts its own numbers, so that clocks need not agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

MOST_DESIRED = 4096
"""Nodes with a desired state, at most; of more, the oldest without a ban is forgotten."""

MOST_AT_ONCE = 16  # desired states in one answer, at most; the next answer brings more
MOST_MISSED = 8  # missed faults of one node
MOST_CERTIFICATE = 4096  # bytes of one in PEM
MOST_VERDICTS = 8  # verdicts on alarms of one node: as many as it remembers alarms


class Missed(NamedTuple):
    """A fault of a node that raised no alarm, as a person says."""

    began: float  # wall time, seconds
    ended: float
    channel: str = ""  # "" where it is not known
    withdrawn: bool = False  # there was none after all


@dataclass(frozen=True, slots=True)
class DesiredState:
    node: str
    # Counted by the parent that sends it: rises with every change. At least the wall time, ms.
    number: int
    paused: bool | None = None  # whether learning is paused; None: never set
    # On alarms, by number: true to accept, false to reject. The newest last.
    verdicts: tuple[tuple[int, bool], ...] = ()
    banned: bool | None = None  # whether aggregators refuse it, in all groups; None: never set
    drill: int = 0  # Number of the newest drill that is asked for; it rises. 0: none was.
    # whether aggregators keep its rows out of the group's model; None: never set
    quarantined: bool | None = None
    # Number of the newest order to forget what it has reported; it rises. 0: none was.
    forget: int = 0
    missed: tuple[Missed, ...] = ()  # one of each span of time; the newest last
    certificate: bytes = b""  # PEM, for the key that it has; empty: none was sent

    @property
    def accepted(self) -> dict[int, bool]:
        """Verdicts by alarm."""
        return dict(self.verdicts)

    @property
    def faults_missed(self) -> int:
        return sum(not each.withdrawn for each in self.missed)

    @property
    def is_for_the_node(self) -> bool:
        """Whether it has anything for the node itself; the rest is for aggregators above it."""
        given = self.verdicts or self.certificate
        return self.paused is not None or bool(given) or self.drill > 0

    def after(self, other: DesiredState, number: int) -> DesiredState:
        """Return this state changed by `other`, under another number."""
        paused = self.paused if other.paused is None else other.paused
        banned = self.banned if other.banned is None else other.banned
        judged = {**self.accepted, **other.accepted}
        news = [*(each for each in judged if each not in other.accepted), *other.accepted]
        verdicts = tuple((each, judged[each]) for each in news[-MOST_VERDICTS:])
        return DesiredState(
            *(self.node, number, paused, verdicts, banned),
            max(self.drill, other.drill),
            self.quarantined if other.quarantined is None else other.quarantined,
            max(self.forget, other.forget),
            _both(self.missed, other.missed),
            other.certificate or self.certificate,
        )


def _both(before: Iterable[Missed], after: Iterable[Missed]) -> tuple[Missed, ...]:
    """Return missed faults, of each span what was said last."""
    known: dict[tuple[float, float], Missed] = {}
    for each in (*before, *after):
        known.pop(each[:2], None)
        known[each[:2]] = each
    return tuple(known.values())[-MOST_MISSED:]


class News(NamedTuple):
    """A desired state that has come from above, and what was held of the node before."""

    held: DesiredState
    desired: DesiredState


class DesiredStates:
    """The desired states that an aggregator passes on, for one group."""

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
        quarantined: bool | None = None,
        forget: bool = False,
        missed: Missed | None = None,
        certificate: bytes = b"",
    ) -> DesiredState:
        """Change the desired state of a node: what is not given stays as it is."""
        verdicts = () if verdict is None else (verdict,)
        held = self.by_node.get(node, DesiredState(node, 0))
        more = DesiredState(
            *(node, 0, paused, verdicts, banned),
            max(wall_ms, held.drill + 1) if drill else 0,
            quarantined,
            max(wall_ms, held.forget + 1) if forget else 0,
            () if missed is None else (missed,),
            certificate,
        )
        return self._learn(more, wall_ms)

    def take(self, desired_states: Iterable[DesiredState], wall_ms: int) -> tuple[News, ...]:
        """Take in states from above, the oldest first; return those that are new."""
        new = []
        for desired in desired_states:
            if desired.number > self.heard:
                self.heard = desired.number
                held = self.by_node.get(desired.node, DesiredState(desired.node, 0))
                new.append(News(held, desired))
                self._learn(desired, wall_ms)
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

    def after(self, number: int) -> tuple[DesiredState, ...]:
        """Return the states with a higher number, the oldest first."""
        newer = (desired for desired in self.by_node.values() if desired.number > number)
        # A child confirms all states up to a number, so the oldest go first.
        return tuple(sorted(newer, key=lambda desired: desired.number))

    def due(self, child: str, heard: int, *, is_client: bool) -> tuple[DesiredState, ...]:
        """Return the states that a child has to receive, after those up to the number `heard`."""
        if is_client:
            own = self.by_node.get(child)
            if own is None or own.number <= heard or not own.is_for_the_node:
                return ()
            return (own,)
        return self.after(heard)[:MOST_AT_ONCE]
