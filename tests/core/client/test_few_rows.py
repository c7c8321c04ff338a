"""Rows that are learnt together: no two summaries of a node differ by fewer, whatever happens."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import Schema
from submerge.client.few_rows import FewRows
from submerge.protocol.machine import Flush, Reading, SetDesired
from submerge.protocol.messages import Reason, Report
from submerge.protocol.summaries import Subspaces
from submerge.schema import Scaling
from support.nodes import GROUP, Table, answer

LEAST = 8

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("reads"), st.integers(1, 40)),
        st.tuples(st.just("passes"), st.floats(1, 400)),
        st.tuples(st.sampled_from(["flush", "order", "restarts", "stale", "shrunk"]), st.just(0)),
    ),
    max_size=30,
)


def fleet(**more) -> Table:
    table = Table()
    table.root("r")
    table.client("c", under="r", together=LEAST, report_every_s=60, checkpoint_every_s=90, **more)
    table.passes(1)
    return table


def happens(table: Table, what: str, how: float) -> None:
    client = table.hosts["c"].node
    match what:
        case "reads":
            table.reads("c", int(how))
        case "passes":
            table.passes(how)
        case "flush":
            table.step("c", Flush())
            table.run()
        case "order":
            paused = not client.settings.alarms  # whichever: an order is confirmed at once
            table.step("r", SetDesired(GROUP, "c", paused=paused))
            table.run()
        case "restarts":
            table.restarts("c")
        case _ if table.reports("c"):
            reason = Reason.STALE if what == "stale" else Reason.SHRUNK
            table.tell(
                "c",
                answer(
                    table.reports("c")[-1],
                    reason,
                    pinned=client.current.pin and client.current.pin.incarnation,
                ),
            )
            table.run()


def by_incarnation(table: Table) -> dict[object, list[int]]:
    """The sets of ids that each incarnation has told, in its order, finals too."""
    found: dict[object, list[int]] = {}
    for report in table.reports("c"):
        bits = 0 if report.summary is None else report.summary.bits
        found.setdefault(report.stamp.incarnation, []).append(bits)
    return found


@settings(max_examples=150, deadline=None)
@given(EVENTS)
def test_no_two_summaries_differ_by_fewer_rows(events) -> None:
    """Between reports, orders, checkpoints, ends and starts."""
    table = fleet()
    for what, how in events:
        happens(table, what, how)
    table.passes(1000)

    for told in by_incarnation(table).values():
        for before, after in zip([0, *told], told, strict=False):
            assert (before ^ after).bit_count() == 0 or (before ^ after).bit_count() >= LEAST


@settings(max_examples=100, deadline=None)
@given(EVENTS)
def test_no_row_is_told_under_two_names(events) -> None:
    """A copy of the machine has the rows that wait, too: in a later life both would count them."""
    table, before = fleet(), 0
    client = table.hosts["c"].node
    for what, how in events:
        name, waits = client.current.incarnation, set(client.current.few.rows[:, 0])
        happens(table, what, how)
        if (client := table.hosts["c"].node).current.incarnation != name:
            assert not waits & set(client.current.few.rows[:, 0])
    told = by_incarnation(table).values()

    for bits in (functools.reduce(int.__or__, each) for each in told):
        assert not before & bits
        before |= bits


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_all_rows_are_told_at_the_end(blocks) -> None:
    """So many always wait that the last ones can go together; only a shorter life has too few."""
    table = fleet()
    ids = [each for n in blocks for each in table.reads("c", n)]
    table.step("c", Flush())
    table.run()

    told = table.hosts["r"].counted
    assert told == (len(ids) if len(ids) >= LEAST else 0)
    note = [note for note in table.hosts["c"].notes if note.what == "too few readings to report"]
    assert [LEAST] * (told == 0) == [each.facts["least"] for each in note]
    fates = table.hosts["c"].node.finals.account(table.hosts["c"].node.current, ends=True)
    assert (told, len(ids) - told, 0) == (fates.learnt, fates.lost, fates.waiting)


def test_an_order_is_confirmed_with_the_summary_before() -> None:
    """Under a new number: a parent that orders after each row learns none."""
    table = fleet()
    table.reads("c", 20)
    table.passes(100)
    for _ in range(6):
        table.reads("c", 1)
        table.step("r", SetDesired(GROUP, "c", drill=True))
        table.run()
    reports = table.reports("c")[-6:]

    assert 1 == len({report.summary for report in reports})
    assert 6 == len({report.stamp.seq for report in reports})


def test_one_row_at_a_time_is_learnt_as_it_comes() -> None:
    """Where that is asked for."""
    table = Table()
    table.root("r")
    table.client("c", under="r", report_every_s=60)
    table.reads("c", 1)

    assert 1 == table.hosts["c"].node.current.counts.learnt


OPEN = Schema.anonymous(2)


@pytest.mark.parametrize("to", [OPEN, replace(OPEN, scaling=Scaling((1.0, 2.0), (2.0, 4.0)))])
def test_rows_go_over_to_what_an_open_schema_settles(to) -> None:
    """In its units; and to no schema of other channels."""
    few = FewRows(
        np.array([[3.0, 6.0], [1.0, 2.0]]), np.zeros((2, 2), bool), np.zeros(2), OPEN.canonical
    )
    expected = to.scaled(few.rows)

    assert np.array_equal(expected, few.under(to).rows)
    assert 0 == len(few.under(Schema.anonymous(3)))


def test_what_is_learnt_does_not_depend_on_how_rows_wait() -> None:
    """Same rows, in batches or one by one: the same scatter, gaps too."""
    rows = np.random.default_rng(1).normal(size=(61, 5))
    rows[3::7, 2] = np.nan
    found = []
    for together in (1, LEAST):
        table = Table(Subspaces(3), Schema.anonymous(5))
        table.root("r")
        table.client("c", under="r", together=together, fills_gaps=True, alarms=None)
        for row in rows:
            table.step("c", Reading(row[None]))
        table.step("c", Flush())
        table.run()
        report: Report = table.reports("c")[-1]
        assert 61 == report.counts.learnt
        found.append(report.summary.pieces[0])
    one, many = found

    assert np.allclose(one.channel_energies, many.channel_energies, rtol=0.2)
    assert np.allclose(one.mean, many.mean, atol=0.05)


def test_rows_that_waited_have_faded() -> None:
    """Those of before a night weigh as if they had been learnt then."""
    found = []
    for together in (1, LEAST):
        table = Table(Subspaces(1), replace(Schema.anonymous(2), half_life=3600.0))
        table.root("r")
        table.client("c", under="r", together=together, alarms=None)
        table.step("c", Reading(np.full((15, 2), 100.0)))
        table.passes(86400)
        table.step("c", Reading(np.zeros((9, 2))))
        table.step("c", Flush())
        table.run()
        found.append(table.reports("c")[-1].summary.pieces[0].weight)

    assert np.isclose(*found, rtol=0.02)


def test_a_life_of_too_few_rows_is_declared_lost() -> None:
    """By the next one: each reading is counted, or declared."""
    table = fleet()
    for _ in range(3):
        table.reads("c", 5)
        table.step("c", Flush())
        table.restarts("c")
    table.reads("c", 20)
    table.step("c", Flush())
    table.run()

    counts = table.hosts["r"].ledger.counts()
    assert (20, 15) == (counts.learnt, counts.lost)


def test_a_client_whose_rows_wait_is_heard() -> None:
    """Each interval, with the rows of the report before."""
    table = fleet()
    table.reads("c", 20)
    table.passes(100)
    told = len(table.reports("c"))
    for _ in range(6):
        table.reads("c", 1)
        table.passes(80)

    assert told + 6 == len(table.reports("c"))
    assert 1 == len({report.summary for report in table.reports("c")[told - 1 :]})
