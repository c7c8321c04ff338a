"""What a leaf in C reports is read as any client's report, and counted once."""

from __future__ import annotations

import numpy as np
import pytest

from c_leaf import CLeaf, Now
from submerge import Schema, nodes
from submerge.protocol.messages import Hello, Model
from submerge.schema import Scaling
from submerge_proto.wire import codec

WALL = 1.7e9


def at(steady: float) -> Now:
    return Now(steady, WALL + steady, 1)


def kind_of(message) -> str:
    """Return the kind by which a leaf takes a message: a watch brings hellos and models."""
    watched = {Hello: "hello", Model: "model"}
    return watched.get(type(message)) or codec.kind_of(message)


class Root:
    """A root in memory, and the way to it, as bytes."""

    def __init__(self, schema: Schema, **settings: float) -> None:
        plan = nodes.GroupPlan(nodes.Subspaces(3), schema)
        rng = np.random.default_rng(0)
        known = nodes.AggregatorSettings("root", None, **settings)
        self.node = nodes.AggregatorNode(known, {"g": plan}, rng)
        self.heard = []
        self.step(nodes.Start({}), 0.0)

    def step(self, event, steady: float) -> list:
        now = nodes.Now(steady=steady, wall=WALL + steady)
        effects = self.node.step(event, now)
        return [e.message for e in effects if isinstance(e, nodes.Send | nodes.Publish)]

    def talk(self, leaf: CLeaf, steady: float) -> list[int]:
        """Carry all that is due, either way; return what the leaf made of what came."""
        found = []
        for message in self.step(nodes.Tick(), steady):
            found.append(leaf.receive(kind_of(message), codec.encode(message), at(steady)))
        while (sent := leaf.send(at(steady))) is not None:
            self.heard.append(codec.decode(*sent))
            for message in self.step(nodes.Received(self.heard[-1]), steady):
                found.append(leaf.receive(kind_of(message), codec.encode(message), at(steady)))
        return found

    @property
    def model(self) -> Model:
        return self.node.model("g")


def plant(n: int, dim: int, seed: int = 0) -> np.ndarray:
    """Rows of three causes, with noise, about a mean."""
    rng = np.random.default_rng(seed)
    causes = np.random.default_rng(99).standard_normal((3, dim))
    return rng.standard_normal((n, 3)) @ causes + 0.1 * rng.standard_normal((n, dim)) + 5


@pytest.mark.parametrize("dim", [1, 2, 20, 23])
def test_a_report_holds_what_the_leaf_has_learnt(library, dim):
    """The root's decoder reads weight, mean and scatter; the scatter is off by less than it says."""
    schema = Schema(dim, scaling=Scaling((1.0,) * dim, (2.0,) * dim))
    root, leaf = Root(schema), CLeaf(library, schema, "leaf", at=at(0))
    rows = plant(500, dim)
    leaf.learn(rows, at(1))
    root.talk(leaf, 1)
    root.talk(leaf, 400)
    (report,) = [each for each in root.heard if codec.kind_of(each) == "report"]
    summary, sums = report.summary, leaf.sums
    scaled = schema.scaled(rows)

    assert 500 == summary.weight == report.counts.learnt == leaf.state.delivered
    assert np.array_equal(sums.mean, summary.mean)
    np.testing.assert_allclose(scaled.mean(axis=0), summary.mean, rtol=1e-14)
    off = np.abs(np.linalg.eigvalsh(summary.scatter - sums.scatter)).max()
    assert off <= summary.spectral_bound <= 3e-7 * summary.energy
    root.talk(leaf, 500)
    assert 500 == root.model.counts.learnt
