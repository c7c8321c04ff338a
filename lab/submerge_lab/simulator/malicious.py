"""MaliciousNode: a node with a valid key in a simulated fleet, which follows no rule.

What it sends goes the way of all messages, past the checks that a transport makes: the name in a
message is that of its certificate, its role allows the message, and its bytes can be
decoded. No process of ours runs on its machine, so nothing that it receives matters.

Its messages are drawn by a `Forger`. It knows more than an attacker can: the incarnations of the
aggregators, and what others have sent. Nothing keeps it to a rule: incarnations, seqs, fences,
counts, weights, versions, clocks, alarms and fingerprints are true, extreme, repeated, or of
others. Every message has a chance to be one that an honest node would send, for only those reach
the code behind the first check.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from submerge.aggregator.node import AggregatorNode
from submerge.pca.subspace import Subspace
from submerge.protocol.alarm_status import CAUSES, MOST_ALARMS, STATES, Alarm, AlarmStatus
from submerge.protocol.messages import (
    BELIEVED,
    HIGHEST,
    LATEST,
    Answer,
    Census,
    Counts,
    Incarnation,
    Join,
    Joined,
    Left,
    Message,
    Report,
    ScoreSketches,
    Stamp,
)
from submerge.protocol.permission import Permission, Role
from submerge.protocol.score_trail import MOST, NO_TRAIL
from submerge.protocol.summaries import Summary
from submerge.schema import Schema
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.moments import Moments
from submerge.stats.quantile_sketch import FINE, QuantileSketch
from submerge_lab.simulator.feeds import Feed, Ids
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.hosts import EPOCH
from submerge_lab.simulator.network import NAME, Wire, carried
from submerge_lab.simulator.nodes import GROUP
from submerge_lab.simulator.samples import Samples

T = TypeVar("T")

NUMBERS = (0, 1, 2**31, 2**40, 2**53, 2**62 - 1, 2**62)
READINGS = (0, 1, 100, 2**40, 2**53 - 1, 2**53)
WEIGHTS = (1.0, 1e3, 2.0**53, 1e30, 3.3e38)
SIZES = (0.0, 1e-300, 1.0, 1e12, 1e37, 1e140, 1e300)
TIMES = (0.0, -1e300, 1e300, 253402300799.0, -62135596800.0)
"""Extreme numbers, counts, weights, sizes and times; those of the years 9999 and 1 are among them.
What no decoder accepts is lost on the way."""

OVERHEARD = 64
"""Messages of others, and of its own, that it repeats."""


class Forger:
    """Draws messages."""

    def __init__(
        self, role: Role, feed: Feed, nodes: Sequence[str], rng: np.random.Generator
    ) -> None:
        self.role, self._feed, self._nodes, self._rng = role, feed, nodes, rng
        self._own: list[Incarnation] = []
        self._seqs: dict[Incarnation, int] = {}
        self._bits: dict[Incarnation, int] = {}
        self._joined: dict[Incarnation, bytes] = {}
        self._fences: list[bytes] = [rng.bytes(16) for _ in range(3)]
        self._heard: deque[Join | Report] = deque(maxlen=OVERHEARD)
        self._said: deque[Join | Report] = deque(maxlen=OVERHEARD)

    def overhear(self, message: Join | Report) -> None:
        """Take a message of another node."""
        self._heard.append(message)

    def draw(self, pinned: Incarnation, wall: float) -> list[Join | Report]:
        """Return the next messages: one, or a flood; `wall` is the true time."""
        kind = self._rng.random()
        if kind < 0.05:
            flood = range(int(self._rng.integers(5, 20)))
            return [self._say(self._message(pinned, wall, fresh=True)) for _ in flood]
        if kind < 0.15 and self._said:
            return [self._one(list(self._said))]
        if kind < 0.3 and self._heard:
            return [self._borrowed(self._one(list(self._heard)), pinned, wall)]
        return [self._say(self._message(pinned, wall))]

    # -- messages --------------------------------------------------------------

    def _say(self, message: Join | Report) -> Join | Report:
        self._said.append(message)
        return message

    def _borrowed(self, other: Join | Report, pinned: Incarnation, wall: float) -> Join | Report:
        """Return another node's message, as it is or under its own name."""
        if self._likely(0.3):
            return other
        stamp = other.stamp._replace(node=NAME)
        if isinstance(other, Join):
            return other._replace(stamp=stamp)
        # A set of ids would be the same readings again; sums do not show whose they are.
        summary = self._ids(stamp.incarnation, wall) if self._counts_ids else other.summary
        pinned = self._one([pinned, other.pinned])
        return replace(other, stamp=stamp, pinned=pinned, summary=summary)

    def _message(self, pinned: Incarnation, wall: float, *, fresh: bool = False) -> Join | Report:
        incarnation = self._incarnation(wall, fresh=fresh)
        seq = self._seq(incarnation)
        group = GROUP if self._likely(0.95) else "other"
        stamp = Stamp(NAME, group, incarnation, seq)
        if self._likely(0.25):
            fence = self._fence(incarnation)
            past = [Left(self._one(self._fences), self._number()) for _ in range(self._few())]
            if fence and self._likely(0.8):
                self._joined[incarnation] = fence
            return Join(stamp, fence, tuple(past) if fence else (), self._schema())
        return self._report(stamp, pinned, wall)

    def _report(self, stamp: Stamp, pinned: Incarnation, wall: float) -> Report:
        schema = self._feed.schema
        summary = self._summary(stamp.incarnation, wall)
        weight = 0.0 if summary is None else summary.weight
        learnt = int(min(weight, 2.0**53)) if self._likely(0.8) else self._one(READINGS)
        others = [each for each in self._heard if isinstance(each, Report)]
        right = self._likely(0.9) or not others
        report = Report(
            stamp=stamp,
            final=self._likely(0.15),
            pinned=pinned if self._likely(0.9) or not others else self._one(others).pinned,
            fence=self._fence(stamp.incarnation),
            fingerprint=self._print(schema) if right else self._one(others).fingerprint,
            summary=summary,
            moments=self._moments(schema) if self._likely(0.05) else None,
            counts=Counts(learnt, self._rarely(READINGS), self._rarely(READINGS)),
            as_of=wall if self._likely(0.5) else self._one(TIMES),
            synced=self._likely(0.5),
            version=int(wall * 1000) if self._likely(0.5) else self._version(),
            lifetime=self._number(),
            census=self._census(),
            scores=self._scores() if self._likely(0.2) else None,
            certified_until=self._one((0.0, 253402300799.0)),
            alarm_status=self._alarm_status(wall) if self._likely(0.3) else None,
        )
        if report.fence:
            return report  # an aggregator's with a trail cannot be read
        trail = NO_TRAIL.add(wall, stamp.seq % (MOST + 1))
        return replace(report, trail=trail)

    # -- parts of a message ----------------------------------------------------

    def _incarnation(self, wall: float, *, fresh: bool) -> Incarnation:
        if self._own and not fresh and self._likely(0.8):
            return self._one(self._own[-4:])
        heard = list(self._heard)
        if heard and self._likely(0.2):
            new = self._one(heard).stamp.incarnation
        else:
            extreme = self._one((0, 1, LATEST - 1, LATEST, LATEST + 1))
            created = extreme if self._likely(0.3) else int(wall * 1000)
            new = Incarnation(created, int(self._rng.integers(2**63)))
        self._own.append(new)
        return new

    def _seq(self, incarnation: Incarnation) -> int:
        last = self._seqs.get(incarnation, 0)
        jumps = (last, max(last - 1, 0), last + 2**40, 2**62)
        seq = min(self._one(jumps) if self._likely(0.25) else last + 1, 2**62)
        self._seqs[incarnation] = max(last, seq)
        return seq

    def _fence(self, incarnation: Incarnation) -> bytes:
        """Return a fence, mostly the one it joined under, or none: mostly as its role has it."""
        allowed = self.role == "aggregator"
        if allowed is not self._likely(0.9):
            return b""
        known = self._joined.get(incarnation)
        return known if known is not None and self._likely(0.8) else self._one(self._fences)

    def _schema(self) -> bytes:
        texts = (self._feed.schema.canonical, Schema.anonymous(3).canonical, b"{}")
        return self._one(texts) if self._likely(0.3) else b""

    def _print(self, schema: Schema) -> str:
        return schema.fingerprint if self._likely(0.95) else self._rng.bytes(32).hex()

    def _version(self) -> int:
        return self._one((0, 1, BELIEVED - 1, BELIEVED, BELIEVED + 1, HIGHEST))

    @property
    def _counts_ids(self) -> bool:
        return isinstance(self._feed, Ids)

    def _summary(self, incarnation: Incarnation, wall: float) -> Summary | None:
        if self._likely(0.1):
            return None
        if self._counts_ids:
            return self._ids(incarnation, wall)
        heard = [each.summary for each in self._heard if isinstance(each, Report)]
        known = [each for each in heard if each is not None]
        if known and self._likely(0.3):
            # A factor at which the sum of a few is beyond what a peer accepts.
            return self._feed.summaries.faded(self._one(known), self._one(WEIGHTS))
        schema = self._feed.schema
        return self._subspace(schema) if schema.linear else None

    def _ids(self, incarnation: Incarnation, wall: float) -> Samples:
        """Return a set of forged readings: of this incarnation, fewer, or all there are."""
        feed, bits = self._feed, self._bits.get(incarnation, 0)
        if isinstance(feed, Ids):
            if self._likely(0.6) or not bits:
                bits |= feed.forge(wall)
            if self._likely(0.1):
                bits = feed.forged
        self._bits[incarnation] = bits
        return Samples(bits & -bits if self._likely(0.1) else bits)

    def _subspace(self, schema: Schema) -> Subspace:
        rng, dim = self._rng, schema.dim
        rank = int(rng.integers(1, dim + 1))
        basis = np.linalg.qr(rng.standard_normal((dim, rank)))[0]
        basis *= np.where(basis[np.abs(basis).argmax(axis=0), np.arange(rank)] < 0, -1.0, 1.0)
        weight = self._one(WEIGHTS if self.role == "aggregator" else WEIGHTS[:3])
        scale = self._one((1.0, 1e6, 1e12, 1e18)) * np.sqrt(weight)
        sigma = np.sort(scale * (0.1 + rng.random(rank)))[::-1].astype(np.float32).astype(float)
        energy = float(np.sum(sigma**2)) * self._one((1.0, 1.1, 1e6))
        mean = rng.standard_normal(dim) * self._one((0.0, 1.0, 1e6, 1e12))
        return Subspace(schema.fingerprint, basis, sigma, mean, weight, energy, 0.0)

    def _moments(self, schema: Schema) -> Moments:
        rows = self._rng.standard_normal((2, schema.width)) * self._one(SIZES[:5])
        return replace(Moments.of(rows), count=self._one(READINGS[1:]))

    def _census(self) -> Census | None:
        if self._likely(0.5):
            return None
        return Census(self._one((0, 1, 2**40)), (2**40,) * self._few())

    def _scores(self) -> ScoreSketches:
        spe, t2 = (self._sketch() for _ in range(2))
        if self._likely(0.5):
            return ScoreSketches(spe, t2)
        fine = [self._sketch(fine=True) for _ in range(3)]
        longest = self._one((0, 1, 2**31))
        block_s, lengths = self._one((0.0, 1.0, 64.0, 2.0**24)), self._one(((), (1,), (0, 2**40)))
        maxima = BlockMaxima(fine[0], fine[1], fine[2], longest, block_s=block_s, lengths=lengths)
        return ScoreSketches(spe, t2, None, maxima)

    def _sketch(self, *, fine: bool = False) -> QuantileSketch:
        scores = np.array([self._one(SIZES) for _ in range(self._few())])
        return QuantileSketch.of(scores, FINE) if fine else QuantileSketch.of(scores)

    def _alarm_status(self, wall: float) -> AlarmStatus:
        """Return alarms of its own; an aggregator's are of honest nodes, too."""
        client = self.role == "client"
        nodes = (NAME,) if client and self._likely(0.9) else (NAME, *self._nodes)
        most = self._few() if self._likely(0.95) else MOST_ALARMS
        alarms = tuple(self._alarm(self._one(nodes), wall) for _ in range(most))
        states = AlarmStatus.at(self._one(STATES)) if client else (2**40,) * len(STATES)
        return AlarmStatus(
            states,
            alarms,
            sum(each.is_open for each in alarms) if client else self._one((0, 1, 2**40)),
            self._one(SIZES[:4]),
            self._one(SIZES[:4]),
            self._number(),
            self._number(),
            self._one((-1.0, 0.0, 1e12)),
            self._number(),
        )

    def _alarm(self, node: str, wall: float) -> Alarm:
        began = wall if self._likely(0.5) else self._one(TIMES)
        ended = 0.0 if self._likely(0.5) else max(began, wall)
        number = self._number() if self._likely(0.3) else int(wall * 1000)
        worst = self._one(SIZES)
        cause = self._one(tuple(CAUSES))
        return Alarm(node, max(1, number), began, began, ended, worst, cause, (), self._number())

    # -- chance ----------------------------------------------------------------

    def _likely(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def _few(self) -> int:
        return int(self._rng.integers(1, 9))

    def _number(self) -> int:
        return self._one(NUMBERS)

    def _rarely(self, values: Sequence[int]) -> int:
        return self._one(values) if self._likely(0.1) else 0

    def _one(self, values: Sequence[T]) -> T:
        return values[int(self._rng.integers(len(values)))]


class MaliciousNode:
    """One malicious node, below a parent that is drawn.

    wire : None decodes nothing: every message arrives as it was made.
    role : Of its certificate: half of them are clients, half of them aggregators.
    sent : Messages that were "sent", of those "denied" by name or role, and "undecodable"; answers
        to the others, by reason.
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
