"""Incidents: alarms that lie closer together than their rates explain, as one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.aggregator.alarms.incidents import (
    NO_RATES,
    WINDOWS_S,
    AlarmRates,
    downstream,
    incidents,
    least_nodes,
)
from support.alarmed import alarm
from support.oracle import incident_names

WEEK_S = 7 * 86400.0
RATES = AlarmRates(40, 1 / WEEK_S, 0, 40 * WEEK_S)


def test_three_of_three_within_minutes_are_one():
    (found,) = incidents([alarm("b", 40), alarm("a", 10), alarm("c", 200)], RATES._replace(nodes=3))

    assert "incident-a-a" == found.name
    assert [("a", 10), ("b", 40), ("c", 200)] == [(e.node, e.number) for e in found.parts]


@pytest.mark.parametrize(("nodes", "least"), [(3, (2, 3)), (40, (4, 5)), (1000, (10, 22))])
def test_the_least_number_follows_from_the_rates(nodes, least):
    assert least == tuple(least_nodes(nodes, 1 / WEEK_S, each) for each in WINDOWS_S)


def test_without_a_rate_nothing_is_more_than_it_explains():
    assert () == incidents([alarm("a", 1), alarm("b", 2), alarm("c", 3)], NO_RATES)


onsets = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 20_000), st.booleans(), st.booleans()),
    max_size=24,
    unique_by=lambda each: each[:2],
)


def made(drawn):
    return [
        alarm(node, number, ended=(number + 60.0) * ended, provisional=quiet)
        for node, number, ended, quiet in drawn
    ]


@given(onsets, st.integers(2, 60), st.randoms())
def test_order_and_repetitions_change_nothing(drawn, nodes, draw):
    """Nor do reports from before an alarm ended, of a node that has moved for example."""
    alarms, rates = made(drawn), RATES._replace(nodes=nodes)
    others = [*alarms, *made((n, number, False, quiet) for n, number, _, quiet in drawn)]
    draw.shuffle(others)

    assert incidents(alarms, rates) == incidents(others, rates)


@given(onsets, st.integers(2, 60))
def test_it_is_what_a_look_at_each_window_finds(drawn, nodes):
    alarms, rates = made(drawn), RATES._replace(nodes=nodes)
    found = incidents(alarms, rates)

    assert incident_names(alarms, rates, WINDOWS_S) == [
        {part.name for part in each.parts} for each in found
    ]


@pytest.mark.parametrize(("earlier_s", "first"), [(120, "early"), (3000, "a")])
def test_an_alarm_long_before_the_others_does_not_lead_them(earlier_s, first):
    """Where false alarms are rarer than such a gap of this incident, it is its first."""
    alarms = [alarm(node, 4000 + 60 * i) for i, node in enumerate("abcdefgh")]
    (found,) = incidents([alarm("early", 4000 - earlier_s), *alarms], RATES)

    assert first == found.parts[0].node


FLOW = (("intake", "a", "b", "c"), ("side", "b"), ("c", "intake"))


def test_where_the_order_is_known_the_one_upstream_of_the_others_leads():
    """Whenever its alarm began; in a loop the first of them."""
    alarms = [alarm("c", 10), alarm("b", 40), alarm("a", 70), alarm("elsewhere", 5)]
    line, loop = (RATES._replace(flow=flow) for flow in (FLOW[:2], FLOW))
    (plain,), (led,), (round_,) = (incidents(alarms, rates) for rates in (RATES, line, loop))

    assert ("elsewhere", ()) == (plain.node, plain.downstream)
    assert ("incident-a-46", ("b", "c")) == (led.name, led.downstream)
    assert (plain.parts, plain.began) == (led.parts, led.began)
    assert ("c", ("intake", "a", "b")) == (round_.node, round_.downstream)


def test_a_fault_goes_on_to_the_next_ones_first():
    assert ("a", "b", "c") == downstream("intake", FLOW[:2])
    assert () == downstream("c", FLOW[:2])
