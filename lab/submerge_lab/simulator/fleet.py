"""SimulatedFleet: many nodes in one process, in virtual time.

It has one heap of events and one seeded generator: the same seed runs the same way, to the byte.
The nodes are those of the product; hosts, disks and network are simulated (`hosts`, `network`),
failures are drawn beforehand (`injected_failures`), and an oracle checks every step (`oracle`).
"""

from __future__ import annotations

import copy
import hashlib
import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rows.ledger import Ledger
from submerge.client.node import ClientNode
from submerge.protocol.machine import (
    Event,
    Keep,
    Note,
    Publish,
    Reading,
    Received,
    Send,
    Start,
    Tick,
)
from submerge.protocol.messages import Message, Model, Report
from submerge.protocol.names import RandomSource
from submerge.protocol.report_bytes import payload
from submerge_lab.simulator.faults import Faults
from submerge_lab.simulator.feeds import Feed
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.network import NAME, Delivery, Eavesdropper, Network, Wire, carried
from submerge_lab.simulator.nodes import GROUP, AlarmRule, NodeMaker
from submerge_lab.simulator.observer import FleetObserver
from submerge_lab.simulator.plan import Plan
from submerge_lab.simulator.samples import NumberedNoise
from submerge_lab.simulator.transcript import Transcript

RESTARTED_S = 1.0
"""Time after a failed write until a supervisor restarts an aggregator."""

ENDS = 3.0
"""An open alarm ends so many times as soon as one begins."""

CALM = 40
"""Most messages a minute of a node, and more for each node below it: some joins, reports, answers
and models, each repeated or requested twice."""


class SimulatedFleet:
    """A simulated fleet.

    faults : Rates until healing; `suffered` keeps them.
    client, aggregator : The nodes; tests put mutants in their place.
    time : Virtual seconds.
    storm, undecodable : A host that sent more than `CALM` messages in a minute, and one that sent
        what its peers cannot decode; empty if there is none.
    wire : Checks that what aggregators send can be decoded; None does not.
    copied_early : Readings in the memories of machines that were copied before their first join.
    """

    def __init__(
        self,
        plan: Plan,
        faults: Faults,
        rng: np.random.Generator,
        feed: Feed,
        *,
        client: type[ClientNode] = ClientNode,
        aggregator: type[AggregatorNode] = AggregatorNode,
    ) -> None:
        self.plan, self.faults, self.rng, self.feed = plan, faults, rng, feed
        self.suffered = faults
        self.network = Network(faults, rng)
        self.observer = FleetObserver()
        self.time = 0.0
        self.trace = hashlib.blake2b(digest_size=16)
        self.transcript: Transcript | None = None
        self.bytes_up = self.largest = 0
        self.sensing = True
        self.storm = self.undecodable = ""
        self.malicious: Eavesdropper | None = None
        self.wire: Wire | None = None
        self.copied_early = 0
        # Nothing is drawn for what the faults exclude: old seeds run as they did.
        self.robust = bool(faults.robust) and rng.random() < faults.robust
        rule = faults.alarms * plan.reading_every_s / 3600.0
        ends, upsets = (0.2, 0.05) if plan.incidents else (ENDS * rule, 0.0)
        self.noise = NumberedNoise() if plan.noise else None
        self._maker = NodeMaker(
            plan,
            feed,
            client,
            aggregator,
            AlarmRule(rule, ends, upsets) if faults.alarms else None,
            self.robust,
            self.noise,
        )
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._events = 0
        self._numbers = 0
        self.levels: list[list[Host]] = self._build()

    # -- the shape -------------------------------------------------------------

    def _build(self) -> list[list[Host]]:
        """Return hosts by level: clients at 0, aggregators above, one root."""
        plan = self.plan
        sizes = [plan.nodes]
        for level in range(1, plan.depth):
            sizes.append(max(1, -(-plan.nodes // plan.fan_in**level)))
        sizes.append(1)
        levels = []
        for level, size in enumerate(sizes):
            above = sizes[level + 1] if level + 1 < len(sizes) else 0
            hosts = []
            for i in range(size):
                parent = self.name(level + 1, i * above // size) if above else None
                host = self.new_host(self.name(level, i), level, parent)
                hosts.append(host)
                if level and self.rng.random() < self.faults.broker:
                    self.network.shared.add(host.name)
            levels.append(hosts)
        return levels

    def name(self, level: int, i: int) -> str:
        """Return a node's name."""
        if level == self.plan.depth:
            return "root"
        return f"c{i}" if level == 0 else f"a{level}.{i}"

    def new_host(self, name: str, level: int, parent: str | None) -> Host:
        """Add a machine, without a process yet."""
        self._numbers += 1
        host = Host(name, level, parent, self._numbers)
        self.network.add(host)
        return host

    @property
    def hosts(self) -> list[Host]:
        """All machines, clones included."""
        return [host for hosts in self.network.hosts.values() for host in hosts]

    @property
    def root(self) -> Host:
        """The machine of the root."""
        return self.levels[-1][0]

    @property
    def root_model(self) -> Model | None:
        """The newest model of a running root."""
        return self.root.node.model(GROUP) if isinstance(self.root.node, AggregatorNode) else None

    @property
    def root_ledger(self) -> Ledger | None:
        """The ledger of a running root."""
        return self.root.node.ledger(GROUP) if isinstance(self.root.node, AggregatorNode) else None

    # -- time ------------------------------------------------------------------

    def at(self, time: float, action: Callable[..., None], *args: Any) -> None:
        """Schedule an action."""
        self._events += 1
        heapq.heappush(self._heap, (time, self._events, action, args))

    def run_until(self, time: float, *, rest: Callable[[float], None] | None = None) -> None:
        """Run all actions up to a time."""
        while self._heap and self._heap[0][0] <= time:
            self.time, _, action, args = heapq.heappop(self._heap)
            action(*args)
            if rest is not None:
                rest(self.time)
        self.time = max(self.time, time)

    # -- processes -------------------------------------------------------------

    def start(self, host: Host) -> None:
        """Start a process on a machine that has none."""
        if host.node is not None or host.hostile or host not in self.network.hosts[host.name]:
            return
        host.process += 1
        # Its generator, for names and waits, is seeded by the fleet's.
        host.node = self._node(host, self._random(host, int(self.rng.integers(2**63))))
        self.log(host, "starts")
        host.wake = math.inf
        self.step(host, Start(dict(host.records)))
        for parent in {host.name, host.parent} & self.network.shared:
            if parent:
                for delivery in self.network.retained_for(host):
                    self.post(delivery)
                break
        if host.level == 0:
            self.at(
                self.time + self.plan.reading_every_s * self.rng.random(),
                self._sense,
                host,
                host.process,
            )

    def _random(self, host: Host, seed: int) -> RandomSource:
        """Return the generator of a new process."""
        return np.random.Generator(np.random.PCG64(seed))

    def _node(self, host: Host, rng: RandomSource) -> ClientNode | AggregatorNode:
        """Return the node of a new process."""
        return self._maker.make(host, rng)

    def twin(self, host: Host) -> AggregatorNode:
        """Return another process of an aggregator, started from the same disk, on no network."""
        node = self._maker.parent(host, np.random.default_rng(0))
        node.step(Start(dict(host.records)), host.now(self.time))
        return node

    def double(self, host: Host) -> Host:
        """Copy a machine with its running process; both continue."""
        twin = self.new_host(host.name, host.level, host.parent)
        twin.clone, twin.disk, twin.process = True, host.disk.clone(), 1
        twin.began, twin.clock_error, twin.synced = host.began, host.clock_error, host.synced
        twin.schema = host.schema
        # `summaries` is shared: it has no node's state, and counts ids merged twice anywhere.
        shared = self.feed.summaries, self.feed.schema
        twin.node = copy.deepcopy(host.node, {id(each): each for each in shared})
        twin.wake = math.inf
        if isinstance(twin.node, ClientNode) and twin.node.current.pin is None:
            self.copied_early += twin.node.current.counts.learnt
        if twin.node is not None:
            self._wind(twin, twin.node)
        self.at(self.time + self.plan.reading_every_s, self._sense, twin, twin.process)
        return twin

    def kill(self, host: Host) -> None:
        """End a process as a power cut does."""
        if host.node is not None:
            self.log(host, "dies")
            self.observer.on_death(host)
            host.node = None
            host.process += 1

    # -- steps -----------------------------------------------------------------

    def step(self, host: Host, event: Event, asked_by: Host | None = None) -> None:
        """Step a node, and perform its effects one after the other."""
        node, process = host.node, host.process
        if node is None:
            return
        effects = node.step(event, host.now(self.time))
        self.observer.on_step(host, event, effects)
        faults, rng = self.faults, self.rng
        for effect in effects:
            if faults.kill_between and rng.random() < faults.kill_between:
                self.kill(host)
                self.at(self.time + faults.down_s * float(rng.exponential()), self.start, host)
                return
            match effect:
                case Keep():
                    if not self._write(host, effect):
                        return
                case Send():
                    self._send(host, effect, asked_by)
                case Publish():
                    self._check_bytes(host, effect.message)
                    for delivery in self.network.publish(host, effect.message, self.time):
                        self.post(delivery)
                case Note():
                    self.log(host, effect.what, effect.facts)
                    self.observer.on_note(host, effect)
                case _:
                    pass
        if host.process == process:
            self._wind(host, node)

    def _write(self, host: Host, keep: Keep) -> bool:
        """Perform a write; return False if it failed and ended the process."""
        failed = self.faults.failed_write and self.rng.random() < self.faults.failed_write
        if not failed:
            host.disk.write(keep)
            self.observer.on_write(host)
            return True
        self.log(host, "write fails")
        self.observer.on_failed_write(host)
        if host.level == 0:
            return True  # a client continues without
        self.kill(host)
        self.at(self.time + RESTARTED_S, self.start, host)
        return False

    def _send(self, host: Host, send: Send, asked_by: Host | None) -> None:
        message = send.message
        if send.to != NAME:  # a flood gets as many answers
            self._check_pace(host)
        self._check_bytes(host, message)
        if self.malicious is not None:
            self.malicious.overhear(message)
        if host.level == 0 and isinstance(message, Report):
            weight = self.feed.size(message)
            self.bytes_up += weight
            self.largest = max(self.largest, weight)
        for delivery in self.network.send(host, send.to, message, asked_by, self.time):
            self.post(delivery)

    def _check_pace(self, host: Host) -> None:
        minute = int(self.time // 60)
        host.sent = (minute, host.sent[1] + 1 if host.sent[0] == minute else 1)
        below = min(self.plan.nodes, self.plan.fan_in**host.level) if host.level else 0
        if not self.storm and host.sent[1] > CALM * (1 + max(below, host.level)):
            self.storm = f"{host} sends {host.sent[1]} messages within a minute"

    def _check_bytes(self, host: Host, message: Message) -> None:
        if self.wire is None or self.undecodable or not host.level:
            return
        if carried(message, self.wire) is None:
            self.undecodable = f"{host} sends a {type(message).__name__} that no peer can decode"
            self.log(host, f"!! I10: {self.undecodable}")

    def post(self, delivery: Delivery) -> None:
        """Schedule a delivery."""
        self.at(self.time + delivery.delay, self._deliver, delivery)

    def _deliver(self, delivery: Delivery) -> None:
        host, message = delivery.host, delivery.message
        # A broker waits for a process to come back; a call to a dead one fails.
        if host.node is None or (not delivery.shared and host.process != delivery.process):
            return
        self._record(host, message)
        self.step(host, Received(message, delivery.shared), delivery.origin)

    def _wind(self, host: Host, node: ClientNode | AggregatorNode) -> None:
        """Schedule a tick for when the node asks for one."""
        wakes = node.wakes_at - host.now(0.0).steady
        if wakes < host.wake:
            host.wake = max(wakes, self.time)
            self.at(host.wake, self._wake, host, host.process, host.wake)

    def _wake(self, host: Host, process: int, wake: float) -> None:
        if host.process == process and host.wake == wake:
            host.wake = math.inf
            self.step(host, Tick())

    def _sense(self, host: Host, process: int) -> None:
        if host.process != process or host.node is None or not self.sensing:
            return
        self.step(host, Reading(self.feed.reading(host, self.time, self.rng)))
        self.at(self.time + self.plan.reading_every_s, self._sense, host, process)

    # -- trace and transcript ----------------------------------------------------

    def _record(self, host: Host, message: Message) -> None:
        body = f"{self.time!r} {host.name} {host.process} {type(message).__name__}".encode()
        if isinstance(message, Report):
            body += payload(message, self.feed.summaries)
        self.trace.update(body)
        self.log(host, "receives", message)

    def log(self, host: Host, what: str, facts: object = "") -> None:
        """Add a line to the transcript, if one is kept."""
        if self.transcript is not None:
            self.transcript.add(self.time, host, what, facts)
