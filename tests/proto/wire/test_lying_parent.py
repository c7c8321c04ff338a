"""What a parent says that no honest one does, and what fuzzing has found that it did to nodes."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import Schema
from submerge.protocol.machine import Reading, Scored, Tick
from submerge.protocol.messages import LATEST, Incarnation, Join, Joined, Reason
from submerge.protocol.summaries import Subspaces
from support.nodes import joined, new_incarnation
from support.wire import OF_KERNELS, kernel_schema, travelled
from support.wired import WiredTable

PARENT = new_incarnation(0)


@pytest.fixture
def table():
    """An aggregator `a` and a client `c`, below a parent that is nobody but this test."""
    table = WiredTable(Subspaces(2), Schema.anonymous(3))
    table.aggregator("a", under="p")
    table.client("c", under="p")
    table.passes(5)
    return table


def answers(table, label, **fields):
    """Answer a node's newest join."""
    asked = table.messages(label, Join)[-1]
    reported = joined(asked, **{"pinned": PARENT, "schema": table.schema.canonical, **fields})
    table.tell(label, reported)
    return asked


@pytest.mark.parametrize("floor", [LATEST, 2**62])
@pytest.mark.parametrize("label", ["a", "c"])
def test_a_floor_beyond_belief_spoils_no_node(table, label, floor):
    """Its next life has a name that can be said, and that its own disk gives back."""
    before = answers(table, label, reason=Reason.STALE, floor=floor)
    table.passes(60)
    after = table.messages(label, Join)[-1]
    assert before.stamp.incarnation != travelled(after).stamp.incarnation

    answers(table, label)
    table.step("c", Reading(np.ones((20, 3))))
    table.passes(1000)
    asked = len(table.messages(label, Join))
    table.restarts(label)
    table.passes(60)
    assert asked < len(table.messages(label, Join))


def test_no_name_is_later_than_anybody_believes():
    """Whatever the floor, and whatever the clock."""
    rng = np.random.default_rng(0)

    assert LATEST == Incarnation.draw(0, 2**62, rng).created_ms
    assert LATEST == Incarnation.draw(2**70, 0, rng).created_ms


def test_an_aggregator_that_is_told_no_schema_asks_on(table):
    """Joined to a group without a schema it had nothing to say, and tried to without a pause."""
    answers(table, "a", schema=b"")
    asked = len(table.messages("a", Join))
    table.passes(600)

    assert not table.hosts["a"].node.settled
    assert 2 < len(table.messages("a", Join)) - asked < 20
    assert ["schema refused"] == [note.what for note in table.hosts["a"].notes if note.facts][-1:]


def test_a_model_of_what_is_not_settled_yet_is_not_scored_with():
    """Features need a scaling: without one a client has none to score, and stumbled over it."""
    schema = kernel_schema(9, 6)
    table = WiredTable(Subspaces(2), schema)
    client = table.client("c", under="p", learns_scaling=True)
    table.passes(5)
    answers(table, "c")
    table.tell("c", OF_KERNELS["model"])
    effects = table.step("c", Reading(np.ones((5, 9))))

    assert client.node.model is not None
    assert [] == [effect for effect in effects if isinstance(effect, Scored)]


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason is not Reason.ACK])
def test_a_parent_that_only_refuses_is_asked_in_good_time(table, reason):
    """Whatever its reason, an hour of it costs no more than an hour of silence, or a few times."""
    for label in ("a", "c"):
        for _ in range(60):
            asked = table.messages(label, Join)[-1]
            answer = Joined(asked.stamp, reason, asked.fence, PARENT, False, 0, b"")
            table.tell(label, answer)
            table.passes(60)
        table.step(label, Tick())
        assert 10 < len(table.messages(label, Join)) < 60 * 20
