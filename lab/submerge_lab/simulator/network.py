"""Network: carries messages between hosts, with failures.

There are two ways to a parent. *Direct* calls return an answer to the process that asked, and
everything is lost while either end is down or cut off. A *shared broker* retains the last
message of each topic and sends it to every process of that name that (re)subscribes, even one
that the message was not meant for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from submerge.protocol.messages import Hello, Join, Message, Model, Report
from submerge_lab.simulator.faults import Faults
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.samples import Samples

HELD_UP_S = 900.0
"""Longest delay of a reordered message."""

RECONNECTS = 0.1
"""Share of calls that find their connection gone, where two processes answer to one name."""

NAME = "mallory"
"""The malicious node."""

Wire = Callable[[Message], Message | None]
"""Returns a message as its receiver decodes it; None if its bytes are refused. The core has no
codec: who runs a fleet gives it one."""


def carried(message: Message, wire: Wire) -> Message | None:
    """Return a message as its receiver decodes it, with a set of ids as it was: it has no bytes."""
    if isinstance(message, Report | Model) and isinstance(message.summary, Samples):
        found = wire(replace(message, summary=None))
        known = isinstance(found, Report | Model)
        return replace(found, summary=message.summary) if known else None  # type: ignore[type-var]
    return wire(message)


class Eavesdropper(Protocol):
    """A node that hears what honest ones send (`malicious.MaliciousNode`)."""

    sent: Counter[str]

    def overhear(self, message: Message) -> None:
        """Take a message that an honest node sends."""


class Delivery(NamedTuple):
    """A message on its way to one process of a host."""

    delay: float
    host: Host
    process: int
    message: Message
    origin: Host
    shared: bool


@dataclass(frozen=True, slots=True)
class Topic:
    """A broker's topic, which retains one message of each kind from each sender."""

    parent: str
    sender: str
    kind: str


class Network:
    """Connections between hosts, and the broker's retained messages."""

    def __init__(self, faults: Faults, rng: np.random.Generator) -> None:
        self.faults, self._rng = faults, rng
        self.hosts: dict[str, list[Host]] = {}
        self.shared: set[str] = set()
        self._retained: dict[Topic, Message] = {}
        self._connections: dict[tuple[int, str], Host] = {}
        self._order: dict[str, int] = {}
        self._below: dict[str, set[str]] = {}  # names that have, or had, a parent

    def add(self, host: Host) -> None:
        """Connect a host."""
        self.hosts.setdefault(host.name, []).append(host)
        self._order.setdefault(host.name, len(self._order))
        self.move(host, host.parent)

    def move(self, host: Host, parent: str | None) -> None:
        """Give a host another parent."""
        host.parent = parent
        if parent is not None:
            self._below.setdefault(parent, set()).add(host.name)

    def remove(self, host: Host) -> None:
        """Disconnect a host for good."""
        self.hosts[host.name].remove(host)

    def send(
        self, source: Host, to: str, message: Message, asked_by: Host | None, time: float
    ) -> Iterator[Delivery]:
        """Send to a node; `asked_by` is the host that this answers."""
        up = to == source.parent
        parent = to if up else source.name
        if parent in self.shared:
            if up and isinstance(message, Report | Join):
                self._retained[Topic(to, source.name, type(message).__name__)] = message
            targets = list(self.hosts.get(to, ()))
        elif asked_by is not None and asked_by.name == to:
            targets = [asked_by]
        else:
            targets = self._connection(source, to)
        for target in targets:
            yield from self._carry(source, target, message, parent in self.shared, time)

    def publish(self, source: Host, message: Message, time: float) -> Iterator[Delivery]:
        """Send to all children."""
        if source.name in self.shared:
            self._retained[Topic(source.name, "", type(message).__name__)] = message
        # By name as they were added: a run depends on the order.
        for name in sorted(self._below.get(source.name, ()), key=self._order.__getitem__):
            for host in list(self.hosts[name]):
                if host.parent == source.name:
                    yield from self._carry(source, host, message, source.name in self.shared, time)

    def retained_for(self, host: Host) -> Iterator[Delivery]:
        """Yield all that the broker retains for a process that subscribes."""
        for topic, message in list(self._retained.items()):
            down = isinstance(message, Hello | Model)
            if topic.parent == (host.parent if down else host.name):
                yield Delivery(self._delay(), host, host.process, message, host, True)

    def clear(self, parent: str, sender: str) -> None:
        """Remove what a broker retains of a node."""
        for kind in ("Report", "Join"):
            self._retained.pop(Topic(parent, sender, kind), None)

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
            yield Delivery(delay, target, target.process, message, source, shared)

    def _delay(self) -> float:
        return 0.001 + self.faults.delay_s * float(self._rng.exponential())

    def _connection(self, source: Host, to: str) -> list[Host]:
        """Return one process of a name: the same as before, while the connection lasts."""
        hosts = self.hosts.get(to, [])
        if len(hosts) < 2:
            return list(hosts)
        host = self._connections.get((source.number, to))
        if host not in hosts or self._rng.random() < RECONNECTS:
            host = hosts[int(self._rng.integers(len(hosts)))]
            self._connections[source.number, to] = host
        return [host]
