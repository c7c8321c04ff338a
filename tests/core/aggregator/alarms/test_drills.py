"""Answers to drills at an aggregator: who may give them, how many are held, and their way up."""

from __future__ import annotations

import math

import numpy as np
import pytest

from submerge.aggregator.alarms import drills
from submerge.aggregator.alarms.drills import PATIENCE_S, DrillAnswers
from submerge.drill.drill import ChannelAnswer, packed, unpacked
from submerge.errors import PeerError
from submerge.protocol.machine import Now, Received, Send, SetDesired
from submerge.protocol.messages import DrillReport, DrillTaken, Reason, Stamp
from support.nodes import GROUP, IDS, Table, new_incarnation

ANSWER = ChannelAnswer(1.0, 0.5, 2.0, 3.0, math.inf, 0.25, math.nan)


def answer(node: str, *, by: str | None = None, number: int = 7, **changes: object) -> DrillReport:
    """The answer of a node of one channel, sent by itself or by an aggregator above it."""
    stamp = Stamp(node if by is None else by, GROUP, new_incarnation(1), 1)
    fields = (IDS.fingerprint, 1.7e9, number, 256, 30, 60, 1e-6, packed([ANSWER]))
    return DrillReport(stamp, node, *fields)._replace(**changes)


@pytest.fixture
def table() -> Table:
    """A root, an aggregator, a client of each, which have reported."""
    table = Table()
    table.root("r")
    table.aggregator("a", under="r")
    table.client("c", under="a")
    table.client("d", under="r")
    for name in ("c", "d"):
        table.reads(name, 5)
    table.passes(900)
    return table


def hears(table: Table, at: str, message: DrillReport) -> list:
    """What an aggregator sends when it gets an answer."""
    effects = table.step(at, Received(message))
    return [effect for effect in effects if isinstance(effect, Send)]


def reason(sends: list) -> Reason:
    """What the child is told."""
    return next(each.message.reason for each in sends if isinstance(each.message, DrillTaken))


def test_an_answer_is_held_and_passed_on_as_it_is(table: Table):
    """The stamp alone is the aggregator's; the root then holds it, too."""
    sends = hears(table, "a", answer("c"))
    assert ["c", "r"] == [each.to for each in sends]
    up = sends[1].message
    assert answer("c")._replace(stamp=up.stamp) == up
    assert "a" == up.stamp.node

    assert Reason.ACK is reason(hears(table, "r", up))
    assert [up] == [*table.hosts["r"].node.drills(GROUP).values()]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (answer("stranger"), Reason.UNAVAILABLE),
        (answer("c", by="d"), Reason.DENIED),
        (answer("d", by="a"), Reason.DENIED),
        (answer("d", fingerprint="00" * 32), Reason.SCHEMA),
        (answer("d", channels=packed([ANSWER, ANSWER])), Reason.INVALID),
    ],
)
def test_an_answer_of_no_node_that_could_give_it_is_refused(
    table: Table, message: DrillReport, expected: Reason
):
    """A client answers for itself, an aggregator for none that reports here."""
    assert expected is reason(hears(table, "r", message))
    assert {} == table.hosts["r"].node.drills(GROUP)


def test_an_earlier_answer_replaces_no_later_one(table: Table):
    """And a later one replaces it."""
    assert Reason.ACK is reason(hears(table, "r", answer("d", number=7)))
    assert Reason.STALE is reason(hears(table, "r", answer("d", number=6)))
    assert Reason.ACK is reason(hears(table, "r", answer("d", number=8)))
    assert [8] == [each.number for each in table.hosts["r"].node.drills(GROUP).values()]


def test_the_oldest_are_dropped_where_there_is_no_room(table: Table, monkeypatch):
    """By number, and by bytes."""
    for name, most in (("MOST_ANSWERS", 2), ("MOST_BYTES", 32)):
        with monkeypatch.context() as patch:
            patch.setattr(drills, name, most)
            held = DrillAnswers()
            ledger = table.hosts["r"].node.ledger(GROUP)
            for i in range(5):
                assert Reason.ACK is held.take(answer(f"x{i}", by="a"), ledger)
            assert ["x3", "x4"] == [*held.by_node]


def test_answers_go_up_one_at_a_time(table: Table):
    """The next once one is answered, or was not for too long: none replaces another on its way."""
    held, ledger, now = DrillAnswers(), table.hosts["r"].node.ledger(GROUP), Now(100.0, 0.0)
    for i in range(3):
        held.take(answer(f"x{i}", by="a"), ledger)
    late = now._replace(steady=now.steady + PATIENCE_S)

    assert "x0" == held.next_up(now, answered=False).node
    assert held.next_up(now, answered=False) is None
    assert "x1" == held.next_up(now, answered=True).node
    assert "x2" == held.next_up(late, answered=False).node
    assert held.next_up(late, answered=True) is None


def test_an_operator_s_order_reaches_the_node(table: Table):
    """As a number in its desired state, which rises."""
    table.step("r", SetDesired(GROUP, "d", drill=True))
    first = table.hosts["r"].node.desired_states(GROUP)["d"].drill
    table.step("r", SetDesired(GROUP, "d", paused=True))
    assert first == table.hosts["r"].node.desired_states(GROUP)["d"].drill
    table.reads("d", 5)
    table.passes(900)
    assert first == table.hosts["d"].node._ingest.monitor.desired.drill


def test_sixteen_bytes_hold_a_channel():
    """Sizes as float32, shares in steps of 1/200; a blind channel stays blind."""
    rng = np.random.default_rng(0)
    channels = [ChannelAnswer(1.0, *row) for row in rng.random((50, 6)).tolist()]
    data = packed(channels)

    assert 16 * 50 == len(data)
    for before, after in zip(channels, unpacked(data), strict=True):
        assert (before.bias, before.noise) == pytest.approx((after.bias, after.noise), rel=1e-6)
        assert 0 <= before.r2 - after.r2 < 0.006
        assert before.blind == after.blind
    assert math.isnan(unpacked(packed([ANSWER]))[0].swap)
    assert math.inf == unpacked(packed([ANSWER]))[0].noise


@pytest.mark.parametrize(
    "data",
    [
        b"x" * 15,
        np.array([np.nan, 1, 1], "<f4").tobytes() + b"\1\1\1\0",
        np.array([-1, 1, 1], "<f4").tobytes() + b"\1\1\1\0",
        np.ones(3, "<f4").tobytes() + b"\xff\1\1\0",
        np.ones(3, "<f4").tobytes() + b"\1\xfe\1\0",
    ],
)
def test_bytes_that_no_node_sends_are_refused(data: bytes):
    """Of another length, with a size that is none, or a share above one."""
    with pytest.raises(PeerError):
        unpacked(data)
