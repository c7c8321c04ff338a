"""LargeFleet: a simulated fleet whose clients take their readings together, and later.

A reading of a client, and a model that reaches it, change nothing that anyone else sees until the
client sends something. So both wait, and are taken in their order before the client's next other
event. All messages but models, all failures, aggregators and the root are `SimulatedFleet`'s.

Two things differ from it. The trace has no models that reach clients, and of a report only what it
counts. A write of a model on a client's card never fails.
"""

from __future__ import annotations

import math

import numpy as np

from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.protocol.machine import Event, Keep, Received, Send, Tick
from submerge.protocol.messages import Message, Model, Report
from submerge.protocol.names import RandomSource
from submerge_lab.simulator.faults import Faults
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.hosts import EPOCH, Host
from submerge_lab.simulator.large.bank_scores import BankScores
from submerge_lab.simulator.large.leaf import LeafNode, LeafRandom, Taken
from submerge_lab.simulator.large.rows import NumberedRows
from submerge_lab.simulator.large.sample import SampledLeaf
from submerge_lab.simulator.large.spans import SpanSummaries
from submerge_lab.simulator.network import Delivery
from submerge_lab.simulator.plan import Plan

ROUNDING_S = 1e-6
"""A time on a node's clock and back is wrong by less."""


class LeafHost(Host):
    """A client's machine.

    Attributes
    ----------
    reads_at : float
        Virtual time of its next reading; infinite if none comes.
    models : list of (float, Delivery)
        Models on their way, and the times of their arrival.
    """

    __slots__ = ("models", "reads_at")

    def __init__(self, name: str, level: int, parent: str | None, number: int) -> None:
        super().__init__(name, level, parent, number)
        self.reads_at = math.inf
        self.models: list[tuple[float, Delivery]] = []


class LargeFleet(SimulatedFleet):
    """A fleet of `LeafNode`s.

    Parameters
    ----------
    summaries : SpanSummaries
    sampled : int
        Clients that run a second time, with all their matrices.
    """

    def __init__(
        self,
        plan: Plan,
        faults: Faults,
        rng: np.random.Generator,
        feed: NumberedRows,
        summaries: SpanSummaries,
        *,
        client: type[LeafNode] = LeafNode,
        sampled: int = 0,
    ) -> None:
        super().__init__(plan, faults, rng, feed)
        self._rows, self._spans = feed, summaries
        self._scores, self._leaf = BankScores(feed.bank, summaries.real), client
        leaves = self.levels[0]
        which = np.unique(np.linspace(0, len(leaves) - 1, min(sampled, len(leaves))).astype(int))
        self._wanted = {leaves[i] for i in which.tolist()}
        self.sampled: dict[Host, SampledLeaf] = {}

    def new_host(self, name: str, level: int, parent: str | None) -> Host:
        """Add a machine; that of a client has readings and models that wait."""
        if level:
            return super().new_host(name, level, parent)
        self._numbers += 1
        host = LeafHost(name, level, parent, self._numbers)
        self.network.add(host)
        return host

    # -- processes -------------------------------------------------------------

    def _random(self, host: Host, seed: int) -> RandomSource:
        return super()._random(host, seed) if host.level else LeafRandom(seed)

    def _node(self, host: Host, rng: RandomSource) -> ClientNode | AggregatorNode:
        if host.level:
            return super()._node(host, rng)
        settings, schema = self._maker.client_settings(host), self.feed.schema
        if host in self._wanted and isinstance(rng, LeafRandom):
            self._wanted.discard(host)  # its first process alone
            node = ClientNode(settings, schema, self._spans.real, rng.copy())
            self.sampled[host] = SampledLeaf(host.name, node)
        return self._leaf(settings, schema, self._spans, rng, self._scores, self._rows)

    def kill(self, host: Host) -> None:
        """End a process as a power cut does: what it has read until now is lost with it."""
        if isinstance(host, LeafHost) and host.node is not None:
            self.take(host)
            host.reads_at = math.inf
            if host in self.sampled:
                self.sampled[host].ends = True
        super().kill(host)

    def quieten(self) -> None:
        """Let all clients take what they have read: no reading comes after that."""
        for host in self.hosts:
            if isinstance(host, LeafHost):
                self.take(host)
                host.reads_at = math.inf
                if isinstance(host.node, LeafNode):
                    host.node.next_at = math.inf
                    self._wind(host, host.node)

    def taken_by(self, host: Host) -> int:
        """Return how many readings a machine has taken."""
        return self._rows.taken.get(host.number, 0)

    # -- what waits --------------------------------------------------------------

    def post(self, delivery: Delivery) -> None:
        """Schedule a delivery; a model waits at a client."""
        host = delivery.host
        if isinstance(host, LeafHost) and isinstance(delivery.message, Model):
            host.models.append((self.time + delivery.delay, delivery))
        else:
            super().post(delivery)

    def step(self, host: Host, event: Event, asked_by: Host | None = None) -> None:
        """Step a node; a client takes first what has come before."""
        if not isinstance(host, LeafHost) or host.node is None:
            super().step(host, event, asked_by)
            return
        self.take(host)
        sample = self.sampled.get(host)
        if sample is not None:
            sample.step(event, host.now(self.time))
        super().step(host, event, asked_by)
        if sample is not None:
            sample.compare()

    def take(self, host: LeafHost) -> None:
        """Let a client take the readings and models that have come until now, in their order."""
        node, sample = host.node, self.sampled.get(host)
        if not isinstance(node, LeafNode):
            return
        times, models = list[float](), list[tuple[int, Model | None]]()
        started = hasattr(node, "current")
        while started and host.models:
            at, delivery = min(host.models, key=lambda each: each[0])
            if at > self.time:
                break
            host.models.remove((at, delivery))
            if delivery.shared or delivery.process == host.process:
                models.append((self._read(host, at, times, sample), node.model))
                self._hear(host, node, at, delivery)
        models.append((self._read(host, self.time + ROUNDING_S, times, sample), node.model))
        if times:
            first = self._rows.taken.get(host.number, 0) - len(times)
            ahead = EPOCH + host.clock_error
            walls = [time + ahead for time in times]
            numbers = range(first, first + len(times))
            node.take(Taken(host.number, numbers, walls, host.now(times[-1])), models)
            node.next_at = host.reads_at + host.began

    def _hear(self, host: LeafHost, node: LeafNode, at: float, delivery: Delivery) -> None:
        model = delivery.message
        if not isinstance(model, Model):
            return
        if host in self.sampled:
            self.sampled[host].step(Received(model, delivery.shared), host.now(at))
        fingerprint = node.current.fingerprint
        for effect in node.fleet.receive(model, fingerprint, node._session):
            if isinstance(effect, Keep):
                host.disk.write(effect)

    def _read(
        self, host: LeafHost, until: float, times: list[float], sample: SampledLeaf | None
    ) -> int:
        """Add the times of a client's readings up to a time; return how many there are."""
        at, every, before = host.reads_at, self.plan.reading_every_s, len(times)
        while at <= until:
            times.append(at)
            at += every
        host.reads_at, n = at, len(times) - before
        if not n:
            return 0
        first = self._rows.take(host.number, n)
        if sample is not None:
            rows = self._rows.rows(host.number, first, first + n)
            for row, time in zip(rows, times[before:], strict=True):
                sample.read(row[None], host.now(time))
        return n

    def _sense(self, host: Host, process: int) -> None:
        if host.process != process or not isinstance(host, LeafHost) or not self.sensing:
            return
        if isinstance(host.node, LeafNode):
            host.reads_at, host.node.every_s = self.time, self.plan.reading_every_s
            self.step(host, Tick())

    def _record(self, host: Host, message: Message) -> None:
        """As `SimulatedFleet`'s, but of a report what it counts: its bytes would be made again."""
        if isinstance(message, Report):
            counts = message.stamp, message.counts, message.as_of, message.version
            self.trace.update(f"{self.time!r} {host.name} {host.process} {counts}".encode())
            self.log(host, "receives", message)
        else:
            super()._record(host, message)

    def _send(self, host: Host, send: Send, asked_by: Host | None) -> None:
        if not host.level and isinstance(send.message, Report):
            send = send._replace(message=self._spans.sent(send.message))
        if host in self.sampled:
            self.sampled[host].sent(send)
        super()._send(host, send, asked_by)
