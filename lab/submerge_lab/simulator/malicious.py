"""MaliciousNode: a node with a valid key in a simulated fleet, which follows no rule.

What it sends goes the way of all messages, past the checks that a transport makes: the name in a
message is that of its certificate , its role allows the message, and its bytes can be
decoded. No process of ours runs on its machine, so nothing that it receives matters.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from submerge.aggregator.node import AggregatorNode
from submerge.protocol.messages import Answer, Incarnation, Join, Joined, Message, Report
from submerge.protocol.permission import Permission, Role
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.forgeries import NAME, Forger, Wire, carried
from submerge_lab.simulator.hosts import EPOCH


class MaliciousNode:
    """One malicious node, below a parent that is drawn.

    Parameters
    ----------
    fleet : SimulatedFleet
    wire : Wire or None
        None decodes nothing: every message arrives as it was made.

    Attributes
    ----------
    role : Role
        Of its certificate: half of them are clients, half of them aggregators.
    sent : Counter of str
        Messages that were "sent", of those "denied" by name or role, and "undecodable"; answers to
        the others, by reason.
    """

    def __init__(self, fleet: SimulatedFleet, wire: Wire | None) -> None:
        rng = np.random.Generator(np.random.PCG64(int(fleet.rng.integers(2**63))))
        self._fleet, self._wire, self._rng = fleet, wire, rng
        parents = [host.name for hosts in fleet.levels[1:] for host in hosts]
        self._host = fleet.new_host(NAME, 0, parents[int(rng.integers(len(parents)))])
        self._host.hostile = True
        self.role: Role = "client" if rng.random() < 0.5 else "aggregator"
        self._permission = Permission(self.role)
        nodes = [host.name for hosts in fleet.levels[:-1] for host in hosts]
        self._forger = Forger(self.role, fleet.feed, nodes, rng)
        self.sent: Counter[str] = Counter()
        self._wait()

    def overhear(self, message: Message) -> None:
        """Take a message that an honest node sends."""
        match message:
            case Join() | Report():
                self._forger.overhear(message)
            case Joined() | Answer() if message.stamp.node == NAME:
                self.sent[message.reason.name.lower()] += 1
            case _:
                pass

    def _wait(self) -> None:
        rate = self._fleet.faults.malicious
        if rate:
            gap = 3600.0 / rate * float(self._rng.exponential())
            self._fleet.at(self._fleet.time + gap, self._act)

    def _act(self) -> None:
        fleet, host = self._fleet, self._host
        for message in self._forger.draw(self._pinned(), EPOCH + fleet.time):
            self.sent["sent"] += 1
            if message.stamp.node != NAME or self._permission.objection(message) is not None:
                self.sent["denied"] += 1
                continue
            found = message if self._wire is None else carried(message, self._wire)
            if found is None:
                self.sent["undecodable"] += 1
                continue
            for delivery in fleet.network.send(host, str(host.parent), found, None, fleet.time):
                fleet.post(delivery)
        self._wait()

    def _pinned(self) -> Incarnation:
        """Return the incarnation of a process of its parent."""
        for parent in self._fleet.network.hosts[str(self._host.parent)]:
            if isinstance(parent.node, AggregatorNode):
                return parent.node.incarnation
        return Incarnation(0, 0)
