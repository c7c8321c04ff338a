"""Orders go down at once: a node three levels down gets one within seconds, and loses none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from submerge.aggregator.operators.orders import FORGET_WITHIN_S
from submerge.protocol.alarm_status import AlarmStatus
from submerge.protocol.machine import Forget, Received, SetBan, SetDesired, SetQuarantine
from submerge.protocol.messages import Answer
from support.nodes import GROUP, Table

SOON, REJOINED, INTERVAL = 5.0, 60.0, 300.0 * 1.2
"""Children of a parent that begins again join at times of their own."""


def chain() -> Table:
    """A root, two aggregators below each other, and two clients that have reported."""
    table = Table()
    table.root("r")
    table.aggregator("a")
    table.aggregator("b", under="a")
    for name in ("c", "d"):
        table.client(name, under="b")
    for n in (1, 1, 1, 1, 0, 0):
        for name in ("c", "d"):
            table.reads(name, n)
        table.passes(INTERVAL)
    assert 8 == table.hosts["r"].counted
    return table


def paused(table: Table, name: str = "c") -> bool:
    return bool(table.hosts[name].node.monitor.desired.paused)


def test_an_order_at_the_root_is_at_work_within_seconds():
    table = chain()
    for wanted in (True, False):
        table.step("r", SetDesired(GROUP, "c", paused=wanted))
        table.passes(SOON)
        assert wanted == paused(table)
    assert not paused(table, "d")


def test_each_parent_hears_that_it_has_arrived():
    table = chain()
    table.step("r", SetDesired(GROUP, "c", paused=True))
    table.passes(SOON)

    for parent, child in (("r", "a"), ("a", "b"), ("b", "c")):
        ledger = table.hosts[parent].ledger
        (status,) = [
            row.report.alarm_status for (node, _), row in ledger.rows.items() if node == child
        ]
        assert isinstance(status, AlarmStatus)
        number = table.hosts[parent].node.desired_states(GROUP)["c"].number
        assert status.desired >= number


def test_a_child_that_confirms_nothing_is_sent_one_answer():
    """What else is ordered comes with the answer to its next report."""
    table = chain()
    table.hosts["a"].cut = True
    before = len(table.messages("r", Answer))
    for i in range(20):
        table.step("r", SetDesired(GROUP, f"x{i}", paused=True))
        table.run()
    assert before + 1 == len(table.messages("r", Answer))

    table.back("a")
    table.passes(SOON)
    assert {f"x{i}" for i in range(20)} <= set(table.hosts["a"].node.desired_states(GROUP))


@pytest.mark.parametrize("label", ["r", "a", "b", "c"])
def test_it_arrives_whatever_is_killed_on_the_way(label):
    """Also if the process dies right after it has committed the order, before it is sent."""
    table = chain()
    if label != "r":
        table.dies(label)
    table.step("r", SetDesired(GROUP, "c", paused=True))
    if label == "r":
        table.wire.clear()
        table.dies("r")
    table.run()
    table.starts(label)
    table.passes(REJOINED)
    assert paused(table)


def test_quarantine_holds_where_the_node_reports():
    """And its release; the model follows with the next reports."""
    table = chain()
    table.step("r", SetQuarantine(GROUP, "c"))
    table.passes(SOON)
    assert {"c"} == set(table.hosts["b"].node.excluded(GROUP)[1])
    table.reads("d", 1)
    table.passes(3 * INTERVAL)
    assert table.hosts["r"].ledger.summary().weight == pytest.approx(5.0)

    table.step("r", SetQuarantine(GROUP, "c", quarantined=False))
    table.passes(SOON)
    assert not table.hosts["b"].node.excluded(GROUP)[1]


def test_a_release_from_above_ends_no_ban_from_below():
    table = chain()
    table.step("b", SetBan("c"))
    for quarantined in (True, False):
        table.step("r", SetQuarantine(GROUP, "c", quarantined))
        table.passes(SOON)
    assert {"c"} == table.hosts["b"].node.excluded(GROUP)[0]


def test_a_node_is_forgotten_where_it_reports():
    table = chain()
    table.step("r", Forget(GROUP, "c"))
    table.passes(3 * INTERVAL)
    assert 4 == table.hosts["r"].counted
    notes = [each.facts["verb"] for each in table.hosts["b"].notes if "above" in each.what]
    assert ["forget"] == notes
    assert not [each for each in table.hosts["r"].notes if each.what == "unknown node"]


def test_an_old_order_to_forget_takes_nothing_from_a_new_aggregator():
    """It hears of all that was ever ordered; what the node has reported since stays."""
    table = chain()
    table.step("r", Forget(GROUP, "c"))
    table.passes(FORGET_WITHIN_S + INTERVAL)
    table.aggregator("e")
    table.client("c2", under="e")
    for _ in range(3):
        table.reads("c2", 1)
        table.passes(INTERVAL)
    assert table.hosts["e"].node.desired_states(GROUP)["c"].forget
    assert 3 == table.hosts["e"].counted


def test_a_child_that_has_not_reported_yet_gets_it_too():
    """Its join has said that it is there."""
    table = Table()
    table.root("r")
    table.aggregator("a")
    table.client("c")
    table.passes(REJOINED)
    table.reads("c", 1)
    assert not table.reports("a")
    table.step("r", SetDesired(GROUP, "c", paused=True))
    table.passes(SOON)
    assert paused(table)


def test_a_banned_child_is_sent_nothing():
    table = chain()
    table.step("a", SetBan("b"))
    table.passes(SOON)
    before = len(table.messages("a", Answer))
    table.step("r", SetDesired(GROUP, "c", paused=True))
    table.passes(SOON)
    assert before == len(table.messages("a", Answer))
    assert not paused(table)


def test_a_final_that_comes_late_does_not_hide_who_runs_now():
    """An order goes to the running incarnation, whatever a closed one still delivers."""
    table = chain()
    old = table.reports("c")[-1]
    table.restarts("c")
    table.reads("c", 1)
    table.passes(INTERVAL)
    table.step("b", Received(replace(old, final=True, stamp=old.stamp._replace(seq=99))))
    table.step("r", SetDesired(GROUP, "c", paused=True))
    table.passes(SOON)
    assert paused(table)


def test_an_aggregator_with_a_new_store_gets_the_older_orders_too():
    """What its lost store had confirmed, the new one has not: nothing is skipped."""
    table = chain()
    for name in ("c", "d"):
        table.step("r", SetDesired(GROUP, name, paused=True))
        table.passes(SOON)
    table.dies("b")
    table.step("r", SetDesired(GROUP, "d", paused=False))
    table.hosts["b"].disk.clear()
    table.starts("b")
    table.passes(3 * INTERVAL)

    states = table.hosts["b"].node.desired_states(GROUP)
    assert {"c": True, "d": False} == {name: each.paused for name, each in states.items()}
