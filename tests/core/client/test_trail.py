"""A client's trail of scores: in its reports, and nowhere else."""

from __future__ import annotations

from submerge.client.pending_finals import CHECKPOINT
from submerge.protocol.machine import Flush
from submerge.protocol.messages import Report
from submerge.protocol.score_trail import MINUTE_S, NO_TRAIL, NOTHING, UNLIMITED
from support.nodes import EPOCH, Table


def fleet() -> Table:
    """Return a root, a site and a client that has joined: of ids, which have no limits."""
    table = Table()
    table.root("r")
    table.aggregator("a", report_every_s=60.0)
    table.client("c", under="a", report_every_s=60.0)
    table.run()
    table.passes(60.0)
    return table


def reported(table: Table, node: str = "c") -> Report:
    """Return the newest report of a node after what it has."""
    table.step(node, Flush())
    table.run()
    return table.reports(node)[-1]


def test_a_report_has_the_minutes_in_which_rows_came():
    """Of the node's clock; a minute without a row is told as such."""
    table = fleet()
    table.reads("c", 3)
    first = reported(table).trail
    table.passes(2 * MINUTE_S)
    table.reads("c", 1)
    trail = reported(table).trail

    assert bytes([UNLIMITED]) == first.levels
    assert bytes([UNLIMITED, NOTHING, UNLIMITED]) == trail.levels
    assert int((EPOCH + table.time) // MINUTE_S) == trail.last


def test_an_aggregator_reports_none():
    """It is of one node; whoever wants it has it from the node's own parent."""
    table = fleet()
    table.reads("c", 3)
    reported(table)
    table.passes(300.0)

    assert any(report.trail.levels for report in table.reports("c"))
    assert {NO_TRAIL} == {report.trail for report in table.reports("a")}


def test_it_is_lost_with_the_process():
    """No checkpoint has it, nor has the final that is made of one; the next process begins anew."""
    table = fleet()
    table.reads("c", 3)
    table.step("c", Flush())
    table.run()
    assert NO_TRAIL == table.hosts["c"].disk[CHECKPOINT].report.trail
    table.restarts("c")
    (final,) = [report for report in table.reports("c") if report.final]
    table.passes(120.0)
    table.reads("c", 3)

    assert NO_TRAIL == final.trail
    assert bytes([UNLIMITED]) == reported(table).trail.levels


def test_another_incarnation_of_the_process_goes_on_with_it():
    """Its minutes are the node's, whatever its readings are counted under."""
    table = fleet()
    table.reads("c", 3)
    before = reported(table)
    table.hosts["a"].disk.clear()  # another store: another incarnation of the parent
    table.restarts("a")
    table.passes(60.0)
    table.reads("c", 3)
    after = reported(table)

    assert before.stamp.incarnation != after.stamp.incarnation
    assert before.trail.last < after.trail.last
    assert before.trail.first == after.trail.first
