"""Quarantine: a node's rows are kept, and left out of all that follows from rows."""

from __future__ import annotations

from submerge.aggregator.operators.quarantine import QuarantineEntry
from submerge.protocol.machine import Forget, SetQuarantine
from support.nodes import EPOCH, GROUP, Table


def fleet():
    """Two clients under a root that has heard both."""
    table = Table()
    table.aggregator("r", under=None)
    for name in ("a", "b"):
        table.client(name, under="r")
        table.reads(name, 5)
    table.passes(600)
    return table


def learnt(table):
    return table.hosts["r"].node.ledger(GROUP).counts().learnt


def rows(table):
    return len(table.hosts["r"].node.ledger(GROUP).rows)


def test_rows_set_apart_are_kept_and_do_not_count():
    """The model is what it would be without them; released, it is as before."""
    table = fleet()
    before = table.hosts["r"].node.ledger(GROUP).summary()
    table.step("r", SetQuarantine(GROUP, "a"))
    quarantined = learnt(table), rows(table)
    table.step("r", SetQuarantine(GROUP, "a", quarantined=False))

    assert (5, 2) == quarantined
    assert 10 == learnt(table)
    assert before == table.hosts["r"].node.ledger(GROUP).summary()


def test_a_node_set_apart_is_acknowledged_as_before():
    """It learns nothing of it: its reports are taken, and do not count."""
    table = fleet()
    table.step("r", SetQuarantine(GROUP, "a"))
    table.reads("a", 7)
    table.passes(600)

    assert 12 == table.hosts["a"].node.current.delivered
    assert 5 == learnt(table)


def test_it_outlives_a_restart():
    """What an operator has said is kept with the rows."""
    table = fleet()
    table.step("r", SetQuarantine(GROUP, "a"))
    table.restarts("r")

    assert 5 == learnt(table)
    assert "a" in table.hosts["r"].node.excluded(GROUP)[1]


def test_released_is_no_longer_banned():
    """A ban is lifted by the same word."""
    table = fleet()
    table.step("r", Forget(GROUP, "a", ban=True))
    banned = table.hosts["r"].node.excluded(GROUP)[0]
    table.step("r", SetQuarantine(GROUP, "a", quarantined=False))

    assert {"a"} == banned
    assert frozenset() == table.hosts["r"].node.excluded(GROUP)[0]


def test_a_store_that_belongs_to_nobody_yet_keeps_what_was_said():
    """An aggregator below a parent that is away: a ban and a quarantine survive its restart."""
    table = Table()
    table.aggregator("a", under="r")
    table.step("a", Forget(GROUP, "x", ban=True))
    table.step("a", SetQuarantine(GROUP, "y"))
    table.restarts("a")

    banned, quarantined = table.hosts["a"].node.excluded(GROUP)
    assert ({"x"}, {"y": QuarantineEntry("operator", EPOCH)}) == (banned, quarantined)
    assert not table.hosts["a"].node.settled
