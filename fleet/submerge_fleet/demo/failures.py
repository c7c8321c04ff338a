"""What goes wrong on the way: a process is killed, and started again a moment later.

SIGKILL: it gets no chance to say or to write anything. Recovery is timed from the start of
the new process: for a client until its parent acknowledges readings again; for an aggregator
until it serves, and until all its children are acknowledged again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from submerge_fleet.demo.site import SiteMember

CLIENT_KILLED, AGGREGATOR_KILLED = 6 / 14, 9 / 14
"""When, as shares of the run: on days 6 and 9 of two weeks."""

DOWN_S = 0.5
"""A supervisor would be as quick."""

State = Literal["to come", "down", "starting", "over"]


@dataclass(slots=True)
class ProcessFailure:
    """One process that is killed and started again.

    Attributes
    ----------
    node, role : str
    waits_for : frozenset of str
        Who has to be acknowledged before it is over: itself, or its children.
    at : int
        It is killed when so many snapshots were dealt.
    state : {"to come", "down", "starting", "over"}
    ready_s, back_s, away_s : float or None
        From its start: until it serves or reads; until it is over. From the kill: likewise.
    """

    node: str
    role: str
    waits_for: frozenset[str]
    at: int
    state: State = "to come"
    ready_s: float | None = None
    back_s: float | None = None
    away_s: float | None = None
    _killed: float = 0.0
    _started: float = 0.0
    _waiting: set[str] = field(default_factory=set)

    def kills(self, now: float, dealt: int) -> None:
        """It is killed, after so many snapshots."""
        self.state, self.at, self._killed = "down", dealt, now

    def is_due(self, now: float) -> bool:
        """Whether it is time to start it again."""
        return self.state == "down" and now - self._killed >= DOWN_S

    def starts(self, now: float) -> None:
        """It is started again."""
        self.state, self._started, self._waiting = "starting", now, set(self.waits_for)

    def hear_ready(self, node: str, now: float) -> None:
        """A node says that it serves, or reads."""
        if self.state == "starting" and node == self.node:
            self.ready_s = now - self._started

    def hear_acknowledged(self, node: str, now: float) -> None:
        """A client's parent holds all that it has said."""
        if self.state != "starting":
            return
        self._waiting.discard(node)
        if not self._waiting:
            self.state = "over"
            self.back_s, self.away_s = now - self._started, now - self._killed

    def figures(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        names = ("node", "role", "state", "ready_s", "back_s", "away_s")
        return {name: getattr(self, name) for name in names} | {"snapshot": self.at}


def planned(members: Sequence[SiteMember], total: int) -> tuple[ProcessFailure, ProcessFailure]:
    """Return what befalls a fleet that is dealt so many snapshots: two kills, one after the other.

    One client, the third if there are so many; and the last aggregator.
    """
    clients = [member for member in members if member.role == "client"]
    client = clients[:3][-1]
    last = [member for member in members if member.role == "aggregator"][-1]
    children = frozenset(member.name for member in clients if member.parent == last.name)
    return (
        ProcessFailure(client.name, "client", frozenset({client.name}), int(CLIENT_KILLED * total)),
        ProcessFailure(last.name, "aggregator", children, int(AGGREGATOR_KILLED * total)),
    )
