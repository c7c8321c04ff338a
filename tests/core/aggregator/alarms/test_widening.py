"""When a group's limits widen, and that no machine can make them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.aggregator.alarms.below import (
    LEAST_NODES,
    typical_alarms,
    typical_allowance,
    widening,
)
from submerge.aggregator.rows.pool import Row
from submerge.protocol.alarm_status import MOST_WIDENED, AlarmStatus, TypicalAlarms, pooled
from support.wire import a_report


def status(raised, allowed, confirmed=0):
    """The status of a client."""
    return AlarmStatus((0, 1, 0, 0, 0), raised=raised, allowed=allowed, confirmed=confirmed)


def row(said, *, fence=b""):
    """A child's row."""
    report = a_report(alarm_status=said, fence=fence, scores=None)
    return Row(report, 0.0, b"")


def of(*clients, left_out=()):
    """The factor for a group of clients."""
    usual = typical_allowance(map(row, clients))
    parts = [
        replace(each, typical=typical_alarms(row(each), left_out=i in left_out, usual=usual))
        for i, each in enumerate(clients)
    ]
    return widening(pooled(parts))


def test_a_group_that_keeps_its_promise_keeps_its_limits():
    assert of(*[status(1, 1.0)] * 40) == 1.0


def test_limits_widen_where_most_nodes_raise_twice_what_was_promised():
    factor = of(*[status(4, 2.0)] * 40)

    assert 1.05 < factor < 1.2


def test_limits_never_widen_by_more_than_half():
    assert of(*[status(10_000, 500.0)] * 100) <= MOST_WIDENED


@pytest.mark.parametrize("allowed", [0.0, 0.1, 4.0])
def test_two_machines_buy_no_silence_however_many_alarms_they_raise(allowed):
    quiet = [status(0, allowed)] * 38

    assert of(*[status(10**6, allowed)] * (LEAST_NODES - 1), *quiet) == 1.0


def test_a_few_wild_machines_among_many_change_nothing():
    """Of each, no more than twice its promise counts, and one."""
    assert of(*[status(10**6, 4.0)] * 4, *[status(3, 4.0)] * 36) == 1.0


def test_a_machine_that_claims_years_of_watching_does_not_outweigh_the_others():
    """Its word on its own time would make its own rate that of the group."""
    honest = [status(2, 2.0)] * 39

    assert of(status(2001, 1000.0), *honest) == 1.0
    # One that did watch for longer counts at its own rate.
    assert of(*[status(20, 20.0)] * 10, *[status(2, 2.0)] * 30) == 1.0
    assert of(*[status(40, 20.0)] * 10, *[status(4, 2.0)] * 30) > 1.05


def test_a_confirmation_takes_it_back():
    assert of(*[status(4, 2.0)] * 40) > 1.0
    assert of(*[status(4, 2.0, confirmed=2)] * 40) == 1.0


def test_outliers_and_quarantined_nodes_do_not_count():
    noisy, quiet = [status(5, 2.0)] * 10, [status(2, 2.0)] * 30

    assert of(*noisy, *quiet, left_out=range(10)) == 1.0
    assert typical_alarms(row(noisy[0]), left_out=True) == TypicalAlarms()


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0, 20)), min_size=1, max_size=12))
def test_a_tree_counts_what_a_flat_group_counts(clients):
    """Sums of an aggregator go up as they are: only clients are counted one by one."""
    parts = [
        replace(each, typical=typical_alarms(row(each), left_out=False))
        for each in (status(*client) for client in clients)
    ]
    flat = pooled(parts)
    above = typical_alarms(row(pooled(parts), fence=bytes(16)), left_out=False)

    assert above == flat.typical
    assert 1.0 <= widening(flat) <= MOST_WIDENED
