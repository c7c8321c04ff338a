"""The leaf in simulated fleets, beside Python clients, under kills, losses and lost stores."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from c_leaf import HERE, SOURCES, CLeaf, Now, build
from submerge import Schema
from submerge.client.few_rows import no_rows
from submerge.client.node import ClientNode
from submerge.protocol.machine import Flush, Linked, Note, Reading, Received, Send, Start
from submerge.protocol.messages import (
    ANOTHER,
    BEHIND,
    Answer,
    Counts,
    Hello,
    Incarnation,
    Joined,
    Model,
    Pin,
    Reason,
    Report,
)
from submerge_lab.simulator.plan import Plan
from submerge_lab.simulator.run import run
from submerge_lab.simulator.samples import Samples
from submerge_proto.wire import codec

OFF = ("twin", "alarms", "orders", "channels", "histories", "malicious")
"""Faults that need what a leaf has not: memory that can be copied, scores of ids, other schemas."""

PLAN = Plan(checkpoint_every_s=1e9, given=tuple((name, 0.0) for name in OFF))
"""Nobody keeps anything on a disk: a kill costs what the parent had not confirmed."""


class LeafState:
    """What an oracle looks at in a client: the leaf's incarnation, and which readings it has."""

    learns, root, durable = True, None, 0
    schema = Schema.anonymous(1)
    few = no_rows(schema)  # it learns each row as it comes

    def __init__(self, leaf: CLeaf, parent: str) -> None:
        self._leaf, self._parent = leaf, parent
        self.incarnation = Incarnation(*leaf.state.incarnation)
        self.bits, self.sent, self.shown = 0, dict[int, int](), None

    @property
    def pin(self) -> Pin | None:
        state = self._leaf.state
        pinned = Incarnation(*state.pinned)
        return Pin(self._parent, pinned, bool(state.top)) if state.joined else None

    @property
    def counts(self) -> Counts:
        state = self._leaf.state
        return Counts(state.learnt, state.withheld, state.lost)

    def summary(self, _: object) -> Samples:
        return Samples(self.bits)

    def measured(self, _: object) -> None:
        return None


class LeafNode(ClientNode):
    """The C leaf in place of a Python client: what it says goes on as it is, with sets of ids."""

    library: Any

    def step(self, event: Any, now: Any) -> list[Any]:
        at, effects = Now(now.steady, now.wall, now.synced), []
        if isinstance(event, Start):
            self._start_leaf(at)
        elif isinstance(event, Reading):
            fates = self.leaf.learn(np.asarray(event.rows), at)
            for row, fate in zip(event.rows, fates, strict=True):
                self.current.bits |= 0 if fate else 1 << round(float(row[0]))
        elif isinstance(event, Linked):
            self.leaf.linked()
        elif isinstance(event, Flush):
            self.leaf.flush()
        elif isinstance(event, Received):
            self._hear(event.message, at, effects)
        while (sent := self.leaf.send(at)) is not None:
            message = codec.decode(*sent)
            if isinstance(message, Report):
                message = replace(message, summary=Samples(self.current.bits))
                self.current.sent[message.stamp.seq] = self.current.bits
            effects.append(Send(self.settings.parent, message))
        return effects

    def _start_leaf(self, at: Now) -> None:
        own, taken = self.settings, {"report_every_s": self.settings.report_every_s}
        names = {"group": own.group, "parent": own.parent, "seed": int(self._rng.integers(2**63))}
        schema = self.fleet.schema
        self.leaf = CLeaf(self.library, schema, own.node, **names, at=at, **taken, cap_s=own.cap_s)
        self._taken: Model | None = None
        self.current = LeafState(self.leaf, own.parent)

    def _hear(self, message: Any, at: Now, effects: list[Any]) -> None:
        kind = {Hello: "hello", Model: "model"}.get(type(message))
        if isinstance(message, Model):  # sets of ids have no bytes
            bare = replace(message, summary=None, limits=None, maxima=None, factors=())
            kind, message = "model", bare
        before, state = self.current, self.leaf.state
        generated, delivered, pin = before.counts.generated, state.delivered, before.pin
        if kind is None and not isinstance(message, Joined | Answer):
            return
        fate = self.leaf.receive(kind or codec.kind_of(message), codec.encode(message), at)
        if kind == "model" and not fate:
            self._taken = message
        if before.incarnation == Incarnation(*state.incarnation):
            newest = before.sent.get(state.acknowledged)
            before.shown = before.shown if newest is None else Samples(newest)
            return
        self.current = LeafState(self.leaf, self.settings.parent)
        if state.learnt or not generated:  # nobody knew it yet: it has another name, no more
            self.current.bits = before.bits
            return
        why = message.reason.name.lower()
        if isinstance(message, Joined) and message.reason is Reason.ACK:
            why = BEHIND if message.stamp.seq > max(before.sent, default=0) else ANOTHER
        stamp = message.stamp._replace(incarnation=before.incarnation)
        pinned = pin.incarnation if pin else Incarnation(0, 0)
        gone = Samples(before.bits)
        nothing = None, Counts(), 0.0, True, 0, 0
        report = Report(stamp, True, pinned, b"", "", gone, *nothing)
        facts = {"report": report, "readings": generated - delivered, "why": why}
        assert state.lost == generated - delivered
        effects.append(Note("lost", facts))

    @property
    def model(self) -> Model | None:
        return self._taken

    @property
    def all_delivered(self) -> bool:
        return self.leaf.state.delivered == self.current.counts.generated

    @property
    def wakes_at(self) -> float:
        return self.leaf.wakes_at


def mixed(library: Any, settings: Any, *args: Any) -> ClientNode:
    """Make every other client a leaf."""
    leaf = sum(settings.node.encode()) % 2
    kind = type("Leaf", (LeafNode,), {"library": library}) if leaf else ClientNode
    return kind(settings, *args)


def check(library: Any, seeds: range, **plan: Any) -> None:
    counted = 0
    for seed in seeds:
        outcome = run(replace(PLAN, **plan), seed, client=functools.partial(mixed, library))
        assert [] == outcome.violations, seed
        counted += outcome.counted
    assert counted > 100 * len(seeds)


@pytest.mark.slow
@pytest.mark.parametrize("faults", ["swarm-1", "all-1"])
def test_no_reading_is_counted_twice_or_lost_without_a_cause(library, faults):
    """Messages are lost, doubled and late, processes killed, stores lost and restored."""
    check(library, range(100, 102), faults=faults)


@pytest.mark.soak
@pytest.mark.parametrize("faults", ["swarm-1", "all-1"])
def test_no_reading_is_counted_twice_or_lost_in_two_hundred_fleets(library, faults):
    """The same of more seeds."""
    check(library, range(1000, 1200), faults=faults)


@pytest.mark.soak
def test_a_leaf_that_keeps_its_incarnation_under_another_parent_is_found(tmp_path):
    """Readings are then counted by both: a fleet that does not show it would show nothing."""
    text = (HERE / "submerge_leaf.c").read_text()
    wrong = text.replace("return end(leaf, 0, now), SUBMERGE_LEAF_TAKEN;", "leaf->joined = 1;")
    assert wrong != text
    (tmp_path / "submerge_leaf.c").write_text(wrong)
    mutant = build(tmp_path, [tmp_path / "submerge_leaf.c", *SOURCES[1:]])
    with pytest.raises(AssertionError, match="I1"):
        check(mutant, range(40))
