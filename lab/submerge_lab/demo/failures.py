"""Failures that the demo injects: it kills a process and starts it again a moment later.

The signal is SIGKILL: the process cannot write anything more. Recovery is timed from the start of
the new process: for a client until its parent acknowledges readings again; for an aggregator until
it serves, and until all its children are acknowledged again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from submerge_lab.demo.site import SiteMember

CLIENT_KILLED, AGGREGATOR_KILLED = 6 / 14, 9 / 14
"""Times of the kills, as shares of the run: days 6 and 9 of two weeks."""

DOWN_S = 0.5
"""Time until the restart: about that of a supervisor."""

State = Literal["to come", "down", "starting", "over"]


@dataclass(slots=True)
class ProcessFailure:
    """The kill and restart of one process.

    waits_for : Nodes that have to be acknowledged before it is over: the node itself, or its
        children.
    ready_s, back_s, away_s : Seconds from the restart until it serves or reads; from the restart
        until this is over; from the kill until this is over.
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
        """Note the kill, after `dealt` snapshots."""
        self.state, self.at, self._killed = "down", dealt, now

    def is_due(self, now: float) -> bool:
        """Return whether it is time to start it again."""
        return self.state == "down" and now - self._killed >= DOWN_S

    def starts(self, now: float) -> None:
        """Note the restart."""
        self.state, self._started, self._waiting = "starting", now, set(self.waits_for)

    def note_ready(self, node: str, now: float) -> None:
        """Note that a node serves or reads."""
        if self.state == "starting" and node == self.node:
            self.ready_s = now - self._started

    def note_acknowledged(self, node: str, now: float) -> None:
        """Note that a client's parent holds all that the client has reported."""
        if self.state != "starting":
            return
        self._waiting.discard(node)
        if not self._waiting:
            self.state = "over"
            self.back_s, self.away_s = now - self._started, now - self._killed

    def figures(self) -> dict[str, Any]:
        """Return its fields for JSON."""
        names = ("node", "role", "state", "ready_s", "back_s", "away_s")
        return {name: getattr(self, name) for name in names} | {"snapshot": self.at}


def plan_failures(
    members: Sequence[SiteMember], total: int
) -> tuple[ProcessFailure, ProcessFailure]:
    """Return two kills, one after the other: of the third (or last) client and last aggregator."""
    clients = [member for member in members if member.role == "client"]
    client = clients[:3][-1]
    last = [member for member in members if member.role == "aggregator"][-1]
    children = frozenset(member.name for member in clients if member.parent == last.name)
    return (
        ProcessFailure(client.name, "client", frozenset({client.name}), int(CLIENT_KILLED * total)),
        ProcessFailure(last.name, "aggregator", children, int(AGGREGATOR_KILLED * total)),
    )
