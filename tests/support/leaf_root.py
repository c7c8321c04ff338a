"""A root in memory that leaves in C talk to, as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from c_leaf import CLeaf, Now
from submerge import Schema, nodes
from submerge.protocol.messages import Hello, Model
from submerge_proto.wire import codec


def at(steady: float) -> Now:
    return Now(steady, 1.7e9 + steady, 1)


class LeafRoot:
    def __init__(self, schema: Schema, seed: int = 0, **settings: Any) -> None:
        plan = nodes.GroupPlan(nodes.Subspaces(3), schema)
        known = nodes.AggregatorSettings("root", None, **settings)
        self.node = nodes.AggregatorNode(known, {"g": plan}, np.random.default_rng(seed))
        self.heard: list[Any] = []
        self.step(nodes.Start({}), 0.0)

    def step(self, event: Any, steady: float) -> list[tuple[str, bytes]]:
        """Return the messages that follow, as a leaf takes them."""
        effects = self.node.step(event, nodes.Now(steady=steady, wall=1.7e9 + steady))
        sent = [each.message for each in effects if isinstance(each, nodes.Send | nodes.Publish)]
        names = {Hello: "hello", Model: "model"}
        return [(names.get(type(each)) or codec.kind_of(each), codec.encode(each)) for each in sent]

    def hear(self, kind: Any, data: bytes, steady: float) -> list[tuple[str, bytes]]:
        self.heard.append(codec.decode(kind, data))
        return self.step(nodes.Received(self.heard[-1]), steady)

    def talk(self, leaf: CLeaf, steady: float) -> None:
        came, sent = self.step(nodes.Tick(), steady), leaf.send(at(steady))
        while came or sent is not None:
            for kind, data in came:
                leaf.receive(kind, data, at(steady))
            came, sent = [] if sent is None else self.hear(*sent, steady), leaf.send(at(steady))
