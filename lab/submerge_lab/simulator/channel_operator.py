"""ChannelOperator: gives a group other channels, at its root and at its clients.

A device comes or goes, and an operator writes it into the configuration of the root and of each
client, and restarts them: at different times, some late, in any order. Aggregators between hear of
it from above. A second order may come before the first has reached everyone.
"""

from __future__ import annotations

from submerge.protocol.machine import Flush
from submerge.schema import Channel, Schema
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.hosts import Host

OTHERS = ("heat", "flow", "power")
"""Channels that come and go, beside that of the ids."""

SOON_S, LATE_S = 300.0, 3600.0
"""Mean time until a node has its new configuration; one in five is late."""

DOWN_S = 20.0
"""Mean time that a restart takes."""


def first_schema() -> Schema:
    """Return the schema that a group of ids begins with."""
    return _schema(OTHERS[:1])


class ChannelOperator:
    """An operator who changes the channels of a group again and again."""

    def __init__(self, fleet: SimulatedFleet) -> None:
        self._fleet, self._rng = fleet, fleet.rng
        self._orders: list[tuple[str, ...]] = [OTHERS[:1]]
        self._reached: dict[str, int] = {}

    def act(self, root: Host) -> None:
        """Give the group other channels; each node gets them in its own time."""
        if isinstance(self._fleet.feed.schema.channels, int):
            return
        before = self._orders[-1]
        self._orders.append(self._changed(before))
        number, fleet = len(self._orders) - 1, self._fleet
        fleet.log(root, "is to have", ", ".join(self._orders[-1]) or "ids only")
        for host in (root, *fleet.levels[0]):
            mean = LATE_S if self._rng.random() < 0.2 else SOON_S
            delay = mean * float(self._rng.exponential())
            fleet.at(fleet.time + delay, self._configure, host, number)

    def finish(self) -> None:
        """Let the last order reach every node."""
        for host in (self._fleet.root, *self._fleet.levels[0]):
            self._configure(host, len(self._orders) - 1)

    def _changed(self, before: tuple[str, ...]) -> tuple[str, ...]:
        """Return other channels: one comes or goes, or they change places."""
        rng = self._rng
        if len(before) > 1 and rng.random() < 0.2:
            return before[::-1]
        name = OTHERS[int(rng.integers(len(OTHERS)))]
        if name in before:
            return tuple(each for each in before if each != name)
        place = int(rng.integers(len(before) + 1))
        return (*before[:place], name, *before[place:])

    def _configure(self, host: Host, number: int) -> None:
        """Restart a node with a configuration, unless it has it or a later one."""
        fleet = self._fleet
        if self._reached.get(host.name, 0) >= number:
            return
        self._reached[host.name] = number
        orderly = self._rng.random() < 0.7
        down_s = DOWN_S * float(self._rng.exponential())
        fleet.log(host, "is configured with", ", ".join(self._orders[number]) or "ids only")
        for each in dict.fromkeys((host, *fleet.network.hosts[host.name])):
            each.schema = _schema(self._orders[number])
            if each.node is None:
                continue  # it starts with it
            if orderly:
                fleet.step(each, Flush())
            fleet.kill(each)
            fleet.at(fleet.time + down_s, fleet.start, each)


def _schema(others: tuple[str, ...]) -> Schema:
    """Return the schema of ids beside other channels."""
    return Schema((Channel("id"), *map(Channel, others)))
