"""Network: what becomes of a message between two hosts.

Two ways to a parent. *Direct* calls: an answer goes back to the process that asked, and
everything is lost while either end is down or cut off. A *shared broker*: the last message
of each topic is kept and said again to whoever (re)subscribes, to every process of that
name, also to one that the message was not meant for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submerge.protocol.messages import Hello, Join, Message, Model, Report
from submerge.simulate.hosts import Host
from submerge.simulate.plan import Faults

HELD_UP_S = 900.0
"""A message that is reordered comes up to so much later."""

RECONNECTS = 0.1
"""Share of calls that find their connection gone, where two processes answer to one name."""


class Delivery(NamedTuple):
    """A message on its way to one process of a host."""

    delay: float
    host: Host
    current: int
    message: Message
    origin: Host
    shared: bool


@dataclass(frozen=True, slots=True)
class Topic:
    """Where a broker keeps a message: at most one of each kind from each sender."""

    parent: str
    sender: str
    kind: str


class Network:
    """Ways between hosts, and what is kept at the broker.

    Attributes
    ----------
    hosts : dict of str to list of Host
        By name; a clone stands beside the one that it was copied from.
    shared : set of str
        Parents that listen on the broker.
    """

    def __init__(self, faults: Faults, rng: np.random.Generator) -> None:
        self.faults, self._rng = faults, rng
        self.hosts: dict[str, list[Host]] = {}
        self.shared: set[str] = set()
        self._kept: dict[Topic, Message] = {}
        self._connections: dict[tuple[int, str], Host] = {}

    def add(self, host: Host) -> None:
        """Connect a host."""
        self.hosts.setdefault(host.name, []).append(host)

    def remove(self, host: Host) -> None:
        """Disconnect a host for good."""
        self.hosts[host.name].remove(host)

    def send(
        self, source: Host, to: str, message: Message, asked_by: Host | None, time: float
    ) -> Iterator[Delivery]:
        """Send to a node; `asked_by`: the host that this answers."""
        up = to == source.parent
        parent = to if up else source.name
        if parent in self.shared:
            if up and isinstance(message, Report | Join):
                self._kept[Topic(to, source.name, type(message).__name__)] = message
            targets = list(self.hosts.get(to, ()))
        elif asked_by is not None and asked_by.name == to:
            targets = [asked_by]
        else:
            targets = self._connected(source, to)
        for target in targets:
            yield from self._carry(source, target, message, parent in self.shared, time)

    def publish(self, source: Host, message: Message, time: float) -> Iterator[Delivery]:
        """Send to all children."""
        if source.name in self.shared:
            self._kept[Topic(source.name, "", type(message).__name__)] = message
        for hosts in self.hosts.values():
            for host in hosts:
                if host.parent == source.name:
                    yield from self._carry(source, host, message, source.name in self.shared, time)

    def subscribed(self, host: Host) -> Iterator[Delivery]:
        """A process subscribes: the broker says again all that it keeps for it."""
        for topic, message in list(self._kept.items()):
            down = isinstance(message, Hello | Model)
            mine = topic.parent == (host.parent if down else host.name)
            if mine:
                yield Delivery(self._delay(), host, host.current, message, host, True)

    def clear(self, parent: str, sender: str) -> None:
        """Forget what a broker keeps of a node."""
        for kind in ("Report", "Join"):
            self._kept.pop(Topic(parent, sender, kind), None)

    def _carry(
        self, source: Host, target: Host, message: Message, shared: bool, time: float
    ) -> Iterator[Delivery]:
        faults, rng = self.faults, self._rng
        if max(source.cut_until, target.cut_until) > time or rng.random() < faults.loss:
            return
        for _ in range(2 if rng.random() < faults.duplicate else 1):
            delay = self._delay()
            if target.slow_until > time or source.slow_until > time:
                delay += faults.slow_s * rng.random()
            if rng.random() < faults.reorder:
                delay += HELD_UP_S * rng.random()
            yield Delivery(delay, target, target.current, message, source, shared)

    def _delay(self) -> float:
        return 0.001 + self.faults.delay_s * float(self._rng.exponential())

    def _connected(self, source: Host, to: str) -> list[Host]:
        """One of the processes of a name: the same as before, while the connection lasts."""
        hosts = self.hosts.get(to, [])
        if len(hosts) < 2:
            return list(hosts)
        host = self._connections.get((source.number, to))
        if host not in hosts or self._rng.random() < RECONNECTS:
            host = hosts[int(self._rng.integers(len(hosts)))]
            self._connections[source.number, to] = host
        return [host]
