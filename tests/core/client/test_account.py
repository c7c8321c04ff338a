"""Each row of a process has one fate, whatever happens to its incarnations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.client.incarnation import RowAccount, advice
from submerge.protocol.machine import Flush, Reading
from submerge.protocol.settings import AlarmSettings
from submerge.protocol.summaries import Subspaces
from support.nodes import GROUP, IDS, Table

ROWS = 10
"""Readings from which the root settles the scaling."""

HAPPENINGS = st.lists(
    st.one_of(
        st.tuples(st.just("reads"), st.integers(1, 12)),
        st.tuples(st.just("passes"), st.sampled_from([0.5, 2.0, 150.0])),
        st.tuples(st.sampled_from(["cut", "back", "new store"]), st.just(0)),
    ),
    max_size=14,
)


def account(table: Table, **more: bool) -> RowAccount:
    """The account of the client `c`."""
    node = table.hosts["c"].node
    return node.finals.account(node.current, **more)


@given(HAPPENINGS)
def test_the_fates_add_up_to_the_rows(happenings):
    """After each event: rows that were measured, moved, lost with a parent's store, or wait."""
    table, read = Table(), 0
    plans = {GROUP: GroupPlan(table.summaries, IDS, learns_scaling=True)}
    known = {"plans": plans, "scaling_rows": ROWS, "report_every_s": 60, "model_every_s": 1}
    table.root("r", **known)
    table.client("c", under="r", learns_scaling=True, report_every_s=20, checkpoint_every_s=50)
    for what, much in happenings:
        match what:
            case "reads":
                table.reads("c", much)
                read += much
            case "passes":
                table.passes(much)
            case "cut":
                table.hosts["c"].cut = True
            case "back":
                table.back("c")
            case "new store":
                table.dies("r")
                table.hosts["r"].disk.clear()
                table.starts("r")
        assert read == account(table).rows == account(table, ends=True).rows
    table.back("c")
    table.step("c", Flush())
    table.passes(600)
    done = account(table)
    assert read == done.rows
    if read >= ROWS and ("new store", 0) not in happenings:
        assert RowAccount(learnt=read) == done
        assert read == table.hosts["r"].ledger.counts().learnt


@pytest.mark.slow
def test_rows_of_an_alarm_have_a_fate_of_their_own():
    """They are withheld, and all rows are in the sum."""
    rng, schema, kind = np.random.default_rng(3), Schema(3, center="own"), Subspaces(8, rank_max=16)
    alarms = AlarmSettings(at_most_per_s=1 / 7.2e6, settle_s=86400.0, period_s=3600.0)
    table = Table(kind, schema)
    plan = GroupPlan(kind, schema, chooses_rank=True)
    table.root("r", plans={GROUP: plan}, report_every_s=60)
    table.client("c", under="r", report_every_s=100, min_rows=10, alarms=alarms)
    mixed = rng.standard_normal((3, 3))
    for _ in range(80):
        table.step("c", Reading(rng.standard_normal((25, 3)) @ mixed.T + 5))
        table.passes(150)
    before = account(table)
    faulty = rng.standard_normal((30, 3)) @ mixed.T + 5
    faulty[:, 0] += 20 * np.linalg.norm(mixed[0])
    for row in faulty:
        table.step("c", Reading(row[None]))
    after = account(table)

    # In the first days false alarms withhold some rows, too.
    assert RowAccount(learnt=2000 - before.withheld, withheld=before.withheld) == before
    assert before.withheld < 100
    assert 2030 == after.rows
    assert 20 <= after.withheld - before.withheld <= 30


def test_what_no_parent_was_ever_asked_to_keep_is_lost_at_the_end():
    """While the process runs, it waits."""
    table = Table()
    table.client("c", under="r", report_every_s=20)
    table.reads("c", 5)

    assert RowAccount(waiting=5) == account(table)
    assert RowAccount(lost=5) == account(table, ends=True)


def test_a_line_shows_three_fates_and_those_of_any_row():
    """Zeros say that nothing is lost; fates that do not occur are left out."""
    assert {"learnt": 3, "waiting": 0, "lost": 0, "gaps": 1} == RowAccount(learnt=3, gaps=1).shown


def test_an_end_while_scales_are_measured_promises_no_number_of_rows():
    """It is 200 on a box and 1,000 in a fleet, and the client does not know."""
    said = advice(RowAccount(waiting=6), has_parent=True, unsettled=6)

    assert said.startswith("the scaling is still measured")
    assert not any(letter.isdigit() for letter in said)
