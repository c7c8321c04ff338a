"""The world that is fuzzed: nodes, and what liars might say to each as it stands just now.

What is drawn is what an honest node could say then, or nearly: the damage is done to it after.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from submerge import Schema, Subspace
from submerge.aggregator.group import GroupPlan
from submerge.protocol.alarm_status import MOST_ALARMS, Alarm, AlarmStatus, chosen
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import Reading, SetQuarantine
from submerge.protocol.messages import (
    Answer,
    Census,
    Counts,
    EarlierSums,
    Hello,
    Join,
    Joined,
    Left,
    Message,
    Model,
    Reason,
    Report,
    ScoreSketches,
    Stamp,
)
from submerge.protocol.score_trail import MINUTE_S, MINUTES, NO_TRAIL, ScoreTrail
from submerge.protocol.summaries import KernelSummary, Subspaces, Summary
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.moments import Moments, Reservoir
from submerge.stats.quantile_sketch import FINE, QuantileSketch
from submerge.stats.score_limits import Limits
from support.nodes import EPOCH, GROUP, Host, new_incarnation
from support.wild_factors import wild_factors
from support.wire import kernel_schema, subspace_of, whole_of
from support.wired import WiredTable

CHILDREN, BELOW = ("x", "y", "z"), "below"
"""Clients, by the certificates that they have; and an aggregator."""

PARENT, STORES = "p", (new_incarnation(-1, 1), new_incarnation(-2, 2))
"""A parent that is not there: it is played. And the stores that it claims to have."""


class World:
    """Four nodes among liars.

    A root `r`, and a site `a` below it, whose children lie; a site `b` and a client `c` below a
    parent that lies. An honest client `d` reads on below `a`.
    """

    def __init__(self, seed: int, *, schema: Schema | None = None) -> None:
        self.rng = rng = np.random.default_rng(seed)
        width = int(rng.integers(1, 10))
        center, half_life = rng.choice(["own", "fleet"]), rng.choice([None, 3600.0])
        given, schema = schema, Schema(width, half_life=half_life, center=str(center))
        if given is not None:
            schema = given
        elif rng.random() < 0.4:
            gamma = rng.choice([None, 0.25])
            schema = replace(schema, features=kernel_schema(width, 6, gamma).features)
        kind, learns = Subspaces(2, oversample=1), bool(rng.random() < 0.3)
        self.table = WiredTable(kind, schema, seed=seed)
        plan = GroupPlan(kind, schema, learns_scaling=learns)
        self.table.root("r", scaling_rows=200, plans={GROUP: plan})
        self.table.aggregator("a", under="r")
        self.table.aggregator("b", under=PARENT)
        fills = bool(rng.random() < 0.5)
        self.table.client("c", under=PARENT, fills_gaps=fills, learns_scaling=learns)
        self.table.client("d", under="a", learns_scaling=learns)
        self._asked: dict[str, Join] = {}
        self._said: dict[str, Report] = {}
        self._version = 1
        self.settles()

    @property
    def schema(self) -> Schema:
        """Of the fleet, as far as it is settled now."""
        return self.table.hosts["r"].ledger.schema

    def settles(self) -> None:
        """Let time pass, and readings come in; remember what was asked and said."""
        table = self.table
        for label in ("c", "d"):
            rows = self.rng.standard_normal((20, table.schema.width))
            rows[0, 0] = self.rng.choice([0, np.nan, 1e300])
            table.step(label, Reading(rows * 10.0 ** self.rng.integers(-3, 4)))
        table.passes(float(self.rng.choice([1, 30, 400, 4000])))
        for letter in table.said:
            if isinstance(letter.message, Join):
                self._asked[letter.source] = letter.message
            elif isinstance(letter.message, Report):
                self._said[letter.source] = letter.message
        # Or it would grow with what it remembers.
        for each in (table.said, table.lost, table.published, table.seen):
            each.clear()
        for host in table.hosts.values():
            host.notes.clear()

    def releases(self) -> None:
        """An operator lets everybody in again: or it would go on among the banned."""
        for label in ("r", "a", "b"):
            for node in (*CHILDREN, BELOW):
                self.table.step(label, SetQuarantine(GROUP, node, quarantined=False))

    def draws(self) -> tuple[str, Message]:
        """Return a node, and what somebody says to it."""
        if self.rng.random() < 0.6:
            label = str(self.rng.choice(["r", "a", "b"]))
            return label, self._from_below(self.table.hosts[label])
        label = str(self.rng.choice(["b", "c"]))
        return label, self._from_above(label)

    # -- from below ----------------------------------------------------------------------

    def _from_below(self, host: Host) -> Message:
        rng = self.rng
        node = str(rng.choice([*CHILDREN, BELOW]))
        fence = bytes([int(rng.choice(3, p=[0.8, 0.1, 0.1]))]) * 16 if node == BELOW else b""
        # A few lives at a time; for what is closed is closed.
        incarnation = new_incarnation(
            2 * (int(self.table.time) // 2000) + int(rng.choice([1, 2, 3, 90]))
        )
        # Mostly news; or late, or again.
        seq = max(0, int(self.table.time) + int(rng.choice([-5, 0, 1, 2, 3])))
        stamp = Stamp(node, GROUP, incarnation, seq)
        if rng.random() < (0.4 if fence else 0.1):
            past = tuple(Left(bytes([i]) * 16, seq) for i in range(int(rng.integers(4))))
            text = self.schema.canonical if rng.random() < 0.5 else b""
            return Join(stamp, fence, past, text)
        return self._report(stamp, fence, host)

    def _report(self, stamp: Stamp, fence: bytes, host: Host) -> Report:
        rng, schema = self.rng, self.schema
        # Hardly ever fewer than it said before.
        more = int(rng.choice([100, 110, 10, 2**40], p=[0.6, 0.37, 0.02, 0.01]))
        learnt = int(self.table.time) + more
        ages = tuple(int(n) for n in rng.integers(0, 9, int(rng.integers(20))))
        sketch = QuantileSketch.of(np.abs(rng.standard_normal(int(rng.integers(40)))))
        said = Report(
            stamp,
            final=bool(rng.random() < 0.05),
            pinned=host.node.incarnation,
            fence=fence,
            fingerprint=schema.fingerprint,
            summary=self._summary(float(min(learnt, 1000)), reported=True)
            if rng.random() < 0.8
            else None,
            moments=self._moments(learnt) if rng.random() < 0.4 else None,
            counts=Counts(learnt, int(rng.integers(9)), int(rng.integers(9))),
            as_of=EPOCH + self.table.time,
            synced=bool(rng.random() < 0.7),
            version=int(rng.choice([0, 1, EPOCH * 1000])),
            lifetime=learnt + 5,
            census=Census(3, ages) if rng.random() < 0.3 else None,
            scores=ScoreSketches(sketch, sketch, None, self._peaks())
            if rng.random() < 0.5
            else None,
            alarm_status=self._vigil(stamp.node, above=bool(fence)) if rng.random() < 0.5 else None,
            trail=NO_TRAIL if fence or rng.random() < 0.5 else self._trail(),
        )
        if not fence or said.summary is not None or not schema.linear:
            return said
        return replace(said, earlier=self._earlier(said, host))

    def _earlier(self, said: Report, host: Host) -> EarlierSums:
        """Return sums under a schema that a parent knows, if any, or under one that it does not.

        From the report alone: nothing is drawn for it, or other draws would change.
        """
        fingerprint = ("ab" * 32, *(() if host.ledger is None else host.ledger.read))[-1]
        weight = float(min(said.counts.learnt, 1000))
        first = replace(subspace_of(self.schema.dim, [3.0], weight=weight), schema=fingerprint)
        whole = said.stamp.seq % 2 and said.counts.withheld % 2
        return EarlierSums(fingerprint, whole_of(first, rest=1.0) if whole else first, said.counts)

    def _trail(self) -> ScoreTrail:
        rng, minute = self.rng, int((EPOCH + self.table.time) // MINUTE_S)
        return ScoreTrail(minute, rng.bytes(int(rng.integers(1, MINUTES + 1))))

    def _peaks(self) -> BlockMaxima | None:
        rng = self.rng
        if rng.random() < 0.5:
            return None
        spe, t2, linear, channel = (
            QuantileSketch.of(rng.lognormal(0, rng.choice([0.1, 9]), int(rng.integers(300))), FINE)
            for _ in range(4)
        )
        return BlockMaxima(spe, t2, linear, int(rng.choice([0, 24, 200, 2**40])), channel)

    def _vigil(self, node: str, *, above: bool) -> AlarmStatus:
        rng = self.rng
        alarms = tuple(
            Alarm(
                str(rng.choice(CHILDREN)) if above else node,
                int(EPOCH * 1000) + i,
                EPOCH,
                EPOCH + 1,
                float(rng.choice([0, EPOCH + 2])),
                float(rng.uniform(0, 9)),
                "t2",
                (("c0", 0.5), ("c1", 0.5)),
                self._version,
                int(rng.integers(100)),
                "rejected" if rng.random() < 0.3 else "",
            )
            for i in range(int(rng.integers(70 if above else 4)))
        )
        states = tuple(rng.integers(0, 9, 5).tolist()) if above else AlarmStatus.at("alarm")
        opened = sum(alarm.is_open for alarm in alarms)
        times = (float(t) for t in rng.uniform(0, 1e6, 2))
        counts, wait = rng.integers(0, 9, 2).tolist(), float(rng.choice([-1, 0, 3600]))
        return AlarmStatus(
            states,
            chosen([alarms], MOST_ALARMS),
            opened,
            *times,
            *counts,
            wait,
            self._wish(node).number,
        )

    def _wish(self, node: str) -> DesiredState:
        rng = self.rng
        number = int(rng.choice([0, self.table.time, EPOCH * 1000 + self.table.time]))
        verdicts = tuple((int(EPOCH * 1000) + i, bool(i % 2)) for i in range(int(rng.integers(4))))
        paused = (None, False, True)[int(rng.integers(3))]
        return DesiredState(node, number, paused, verdicts)

    def _summary(self, weight: float, *, reported: bool = False) -> Summary | None:
        """Return what a child could have learnt; `reported`: a whole scatter, perhaps."""
        schema = self.schema
        if not schema.features.settled:
            return None
        first = self._subspace(schema.dim, weight)
        if schema.linear:
            whole = reported and self.rng.random() < 0.4
            return whole_of(first, rest=float(self.rng.choice([0, 1]))) if whole else first
        return KernelSummary(first, self._subspace(schema.width, weight))

    def _subspace(self, dim: int, weight: float) -> Subspace:
        rng = self.rng
        sigma = np.sort(rng.uniform(0.1, 9, int(rng.integers(0, min(dim, 4) + 1))))[::-1]
        size, seed = 10.0 ** rng.integers(-6, 7), int(rng.integers(1000))
        return subspace_of(
            dim,
            sigma * size,
            weight=weight,
            schema=self.schema,
            seed=seed,
            energies=bool(rng.random() < 0.5),
        )

    def _moments(self, count: int) -> Moments:
        rng, width = self.rng, self.schema.width
        size = 10.0 ** rng.integers(-150, 139) if rng.random() < 0.1 else 1.0
        sample = None
        if width >= 8:
            drawn = np.unique(rng.integers(0, 2**63, 5).astype(np.uint64))
            sample = Reservoir(drawn, rng.standard_normal((len(drawn), 4)).astype(np.float32))
        mean, m2 = size * rng.uniform(-1, 1, width), size**2 * count * rng.uniform(0, 2, width)
        return Moments(count, mean, m2, sample)

    # -- from above ----------------------------------------------------------------------

    def _from_above(self, label: str) -> Message:
        rng = self.rng
        asked, said = self._asked.get(label), self._said.get(label)
        reason = Reason.ACK if rng.random() < 0.6 else list(Reason)[int(rng.integers(12))]
        store, top = STORES[int(rng.random() < 0.1)], bool(rng.random() < 0.5)
        draw = rng.random()
        if asked is not None and draw < 0.35:
            newest = int(rng.choice([0, asked.stamp.seq, asked.stamp.seq + 1], p=[0.5, 0.4, 0.1]))
            stamp, schema = asked.stamp._replace(seq=newest), self._text()
            whole = bool(rng.random() < 0.5)
            parent = reason, asked.fence, store, top, self._floor(), schema, ("so",)
            return Joined(stamp, *parent, whole_scatter=whole)
        if said is not None and draw < 0.6:
            seq = said.stamp.seq
            newest = int(rng.choice([0, seq, seq + 1], p=[0.2, 0.7, 0.1]))
            held: dict[str, Any] = {"newest": newest, "root": store, "durable": newest}
            nodes = [*CHILDREN, label][: int(rng.integers(5))]
            held["desired_states"] = tuple(map(self._wish, nodes)) if rng.random() < 0.3 else ()
            return Answer(said.stamp, reason, said.fence, store, top, floor=self._floor(), **held)
        if draw < 0.7:
            return Hello(PARENT, store, top, int(rng.integers(3)))
        return self._model()

    def _text(self) -> bytes:
        """Return the fleet's schema, or now and then one of other channels, or none."""
        width, rng = self.schema.width, self.rng
        if rng.random() < 0.9:
            return self.schema.canonical
        others = [b"", kernel_schema(width, 4).canonical, Schema(width + 1).canonical]
        return others[int(rng.integers(3))]

    def _floor(self) -> int:
        return int(self.rng.choice([0, EPOCH * 1000, 2**60]))

    def _model(self) -> Model:
        rng = self.rng
        self._version += int(rng.integers(-1, 1000))
        values = tuple(float(v) for v in np.sort(rng.uniform(0, 9, 2)))
        linear = () if self.schema.linear else values
        summary = self._summary(1000.0)
        factors = wild_factors(rng, summary) if rng.random() < 0.6 else ()
        return Model(
            GROUP,
            self._version,
            self.schema.canonical,
            self.schema.fingerprint,
            summary,
            Limits((0.9, 1.0), values, values, 9, linear, values) if rng.random() < 0.5 else None,
            Counts(5, 5, 5),
            5,
            (1.0, 2.0, 3.0),
            created=EPOCH,
            expires=EPOCH + 1e6,
            maxima=self._peaks(),
            factors=factors,
        )
