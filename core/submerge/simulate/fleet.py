"""Fleet: many nodes in one process, in virtual time.

One heap of events and one seeded generator: the same seed runs the same way, to the byte.
The nodes are the ones that ship; hosts, disks and network are pretended (`hosts`,
`network`), what goes wrong is drawn beforehand (`mishaps`), and an oracle watches every
step (`oracle`).
"""

from __future__ import annotations

import copy
import hashlib
import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.protocol.machine import (
    Effect,
    Event,
    Keep,
    Note,
    Publish,
    Reading,
    Received,
    Records,
    Send,
    Start,
    Tick,
)
from submerge.protocol.messages import Message, Report, payload
from submerge.protocol.settings import AggregatorSettings, ClientSettings
from submerge.simulate.feeds import Feed
from submerge.simulate.hosts import Host
from submerge.simulate.network import Delivery, Network
from submerge.simulate.plan import Faults, Plan
from submerge.simulate.transcript import Transcript

GROUP = "room"

RESTARTED_S = 1.0
"""After a write that failed a supervisor starts an aggregator again."""

SCALING_ROWS = 100
"""Readings behind a scaling that the fleet works out."""

CALM = 40
"""Messages that a node has to send within a minute at most, and for each node below it: some
joins, reports, answers and models, each tried again or asked for twice."""


class FleetObserver:
    """What an onlooker is told; the oracle is one."""

    def stepped(self, host: Host, event: Event, effects: list[Effect]) -> None:
        """A node has decided; nothing is performed yet."""

    def kept(self, host: Host) -> None:
        """A store has changed."""

    def failed(self, host: Host) -> None:
        """A write has failed."""

    def died(self, host: Host) -> None:
        """A process is about to die."""

    def harmed(self, host: Host, before: Records, after: Records, why: str) -> None:
        """A disk was replaced by another, or is gone."""

    def cloned(self, host: Host) -> None:
        """A disk was copied, and a second process is about to run on the copy."""

    def doubled(self, host: Host) -> None:
        """A machine was copied with its memory: two processes go on with one life."""

    def forgotten(self, node: str) -> None:
        """An operator is about to have a client forgotten."""


class SimulatedFleet:
    """A simulated fleet.

    Parameters
    ----------
    plan : Plan
    faults : Faults
        Until healing; `suffered` remembers them.
    rng : numpy.random.Generator
    feed : Feed
        Gives readings, and what summaries are.
    client, aggregator : type
        The nodes; tests put mutants in their place.

    Attributes
    ----------
    time : float
        Virtual seconds.
    watch : Watch
    bytes_up, reports : int
        What clients have sent as reports.
    storm : str
        A host that said more in a minute than anyone has to; empty if none did.
    trace : hashlib hash
        Of everything that was delivered.
    transcript : Transcript or None
        What happened, if that is to be kept.
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
        self.watch = FleetObserver()
        self.time = 0.0
        self.trace = hashlib.blake2b(digest_size=16)
        self.transcript: Transcript | None = None
        self.bytes_up = self.reports = self.largest = 0
        self.sensing = True
        self.storm = ""
        self._client, self._aggregator = client, aggregator
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._events = 0
        self._numbers = 0
        self.levels: list[list[Host]] = self._built()

    # -- the shape -------------------------------------------------------------

    def _built(self) -> list[list[Host]]:
        """Clients at level 0, aggregators above, one root."""
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
        """Put a machine into the field, without a process yet."""
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

    # -- time ------------------------------------------------------------------

    def at(self, time: float, action: Callable[..., None], *args: Any) -> None:
        """Have something happen."""
        self._events += 1
        heapq.heappush(self._heap, (time, self._events, action, args))

    def run_until(self, time: float, *, rest: Callable[[float], None] | None = None) -> None:
        """Let all happen that happens before a time."""
        while self._heap and self._heap[0][0] <= time:
            self.time, _, action, args = heapq.heappop(self._heap)
            action(*args)
            if rest is not None:
                rest(self.time)
        self.time = max(self.time, time)

    # -- processes -------------------------------------------------------------

    def start(self, host: Host) -> None:
        """Start a process on a machine that has none."""
        if host.node is not None or host not in self.network.hosts[host.name]:
            return
        host.current += 1
        # Its own names and waits, from the one generator.
        rng = np.random.Generator(np.random.PCG64(int(self.rng.integers(2**63))))
        host.node = self._new_client(host, rng) if host.level == 0 else self._new_parent(host, rng)
        self.log(host, "starts")
        host.wake = math.inf
        self.step(host, Start(dict(host.records)))
        for parent in {host.name, host.parent} & self.network.shared:
            if parent:
                for delivery in self.network.subscribed(host):
                    self.post(delivery)
                break
        if host.level == 0:
            self.at(
                self.time + self.plan.reading_every_s * self.rng.random(),
                self._sense,
                host,
                host.current,
            )

    def _new_client(self, host: Host, rng: np.random.Generator) -> ClientNode:
        plan = self.plan
        settings = ClientSettings(
            host.name,
            GROUP,
            str(host.parent),
            report_every_s=plan.report_every_s,
            checkpoint_every_s=plan.checkpoint_every_s,
            cap_s=plan.cap_s,
            min_rows=1,
            learns_scaling=plan.learns_scaling,
            # What is counted must not hang on what is odd: ids have no scores.
            alarms=None,
        )
        return self._client(settings, self.feed.schema, self.feed.summaries, rng)

    def _new_parent(self, host: Host, rng: np.random.Generator) -> AggregatorNode:
        plan = self.plan
        settings = AggregatorSettings(
            host.name,
            host.parent,
            report_every_s=plan.report_every_s,
            cap_s=plan.cap_s,
            scaling_rows=SCALING_ROWS,
        )
        schema = self.feed.schema if host.parent is None else None
        group = GroupPlan(self.feed.summaries, schema, plan.learns_scaling)
        return self._aggregator(settings, {GROUP: group}, rng)

    def twin(self, host: Host) -> AggregatorNode:
        """Return another process of an aggregator, started from the same disk, on no network."""
        node = self._new_parent(host, np.random.default_rng(0))
        node.step(Start(dict(host.records)), host.now(self.time))
        return node

    def double(self, host: Host) -> Host:
        """Copy a machine, and the process that runs on it: both go on."""
        twin = self.new_host(host.name, host.level, host.parent)
        twin.clone, twin.disk, twin.current = True, host.disk.clone(), 1
        twin.began, twin.clock_error, twin.synced = host.began, host.clock_error, host.synced
        # Summaries are nobody's memory; they count what is merged twice, wherever it is.
        shared = self.feed.summaries, self.feed.schema
        twin.node = copy.deepcopy(host.node, {id(each): each for each in shared})
        twin.wake = math.inf
        if twin.node is not None:
            self._wind(twin, twin.node)
        self.at(self.time + self.plan.reading_every_s, self._sense, twin, twin.current)
        return twin

    def kill(self, host: Host) -> None:
        """End a process as a power cut does."""
        if host.node is not None:
            self.log(host, "dies")
            self.watch.died(host)
            host.node = None
            host.current += 1

    # -- steps -----------------------------------------------------------------

    def step(self, host: Host, event: Event, asked_by: Host | None = None) -> None:
        """Have a node decide, and perform what it asks for, one effect after the other."""
        node, current = host.node, host.current
        if node is None:
            return
        effects = node.step(event, host.now(self.time))
        self.watch.stepped(host, event, effects)
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
                    for delivery in self.network.publish(host, effect.message, self.time):
                        self.post(delivery)
                case Note():
                    self.log(host, effect.what, effect.facts)
                case _:
                    pass
        if host.current == current:
            self._wind(host, node)

    def _write(self, host: Host, keep: Keep) -> bool:
        """Perform a write; False if the process did not survive that it failed."""
        failed = self.faults.failed_write and self.rng.random() < self.faults.failed_write
        if not failed:
            host.disk.write(keep)
            self.watch.kept(host)
            return True
        self.log(host, "write fails")
        self.watch.failed(host)
        if host.level == 0:
            return True  # a client can do without
        self.kill(host)
        self.at(self.time + RESTARTED_S, self.start, host)
        return False

    def _send(self, host: Host, send: Send, asked_by: Host | None) -> None:
        message = send.message
        self._watch_pace(host)
        if host.level == 0 and isinstance(message, Report):
            self.reports += 1
            weight = self.feed.size(message)
            self.bytes_up += weight
            self.largest = max(self.largest, weight)
        for delivery in self.network.send(host, send.to, message, asked_by, self.time):
            self.post(delivery)

    def _watch_pace(self, host: Host) -> None:
        minute = int(self.time // 60)
        host.said = (minute, host.said[1] + 1 if host.said[0] == minute else 1)
        below = min(self.plan.nodes, self.plan.fan_in**host.level) if host.level else 0
        if not self.storm and host.said[1] > CALM * (1 + max(below, host.level)):
            self.storm = f"{host} sends {host.said[1]} messages within a minute"

    def post(self, delivery: Delivery) -> None:
        """Let a message arrive."""
        self.at(self.time + delivery.delay, self._deliver, delivery)

    def _deliver(self, delivery: Delivery) -> None:
        host, message = delivery.host, delivery.message
        # A broker waits for a process to come back; a call to a dead one fails.
        if host.node is None or (not delivery.shared and host.current != delivery.current):
            return
        self._record(host, message)
        self.step(host, Received(message, delivery.shared), delivery.origin)

    def _wind(self, host: Host, node: ClientNode | AggregatorNode) -> None:
        """Have a node woken when it wants to be."""
        wakes = node.wakes_at - host.now(0.0).steady
        if wakes < host.wake:
            host.wake = max(wakes, self.time)
            self.at(host.wake, self._wake, host, host.current, host.wake)

    def _wake(self, host: Host, current: int, wake: float) -> None:
        if host.current == current and host.wake == wake:
            host.wake = math.inf
            self.step(host, Tick())

    def _sense(self, host: Host, current: int) -> None:
        if host.current != current or host.node is None or not self.sensing:
            return
        self.step(host, Reading(self.feed.reading(host, self.time, self.rng)))
        self.at(self.time + self.plan.reading_every_s, self._sense, host, current)

    # -- what is remembered of it ------------------------------------------------

    def _record(self, host: Host, message: Message) -> None:
        body = f"{self.time!r} {host.name} {host.current} {type(message).__name__}".encode()
        if isinstance(message, Report):
            body += payload(message, self.feed.summaries)
        self.trace.update(body)
        self.log(host, "hears", message)

    def log(self, host: Host, what: str, facts: object = "") -> None:
        """Add a line to the transcript, if one is kept."""
        if self.transcript is not None:
            self.transcript.add(self.time, host, what, facts)
