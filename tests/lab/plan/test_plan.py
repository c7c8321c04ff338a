"""`submerge lab plan`: levels hold all clients, costs add up, each unit cost names its source."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import UsageError
from submerge.protocol.messages import Report
from submerge_lab.plan.levels import (
    DAY_S,
    FleetPlan,
    Prices,
    core_of_child,
    monthly_cost,
    needs,
)
from submerge_lab.plan.measure import CHILDREN, Measured, Sizes, measured, sizes
from submerge_lab.plan.units import INSIDE_BYTES, INSIDE_CORE_S, recorded, remeasured
from support.commands import shell

UNITS = recorded(Sizes(4800, 100, 5000), "grpc")


@pytest.fixture
def submerge(monkeypatch, capsys):
    """Run the command as a shell would: exit status, standard output, standard error."""
    return shell(monkeypatch, capsys, "lab", "plan")


@given(st.integers(1, 10**7), st.integers(2, 5000), st.sampled_from(["grpc", "mqtt"]))
def test_each_level_holds_the_one_below_and_one_root_is_left(leaves, fan_in, transport):
    """However many clients: none has more children than asked for, and one has no parent."""
    plan = FleetPlan(leaves, transport=transport, fan_in=fan_in)
    levels = needs(plan, UNITS).levels

    below = leaves
    for level in levels:
        assert level.children <= fan_in
        assert (level.aggregators - 1) * level.children < below <= level.aggregators * fan_in
        below = level.aggregators
    assert 1 == levels[-1].aggregators


def test_no_aggregator_is_busier_than_planned():
    """Without a fan-in, children are as many as the share of a core allows."""
    plan = FleetPlan(10**6, report_every_s=5.0, model_every_s=5.0, busy=0.4)

    need = needs(plan, UNITS)
    assert all(level.core_share <= 0.4 for level in need.levels)
    assert need.cores >= 10**6 * core_of_child(plan, UNITS)


def test_twice_as_many_reports_are_twice_as_many_bytes():
    """Traffic is counted by messages."""
    plan = FleetPlan(1000)
    twice = needs(replace(plan, report_every_s=150.0), UNITS)

    assert 2 * needs(plan, UNITS).up_bytes_day == twice.up_bytes_day
    assert DAY_S / 300 * 4900 == needs(plan, UNITS).up_bytes_day


def test_a_broker_passes_reports_answers_and_models():
    """Three clients and a root: a report and an answer each in 300 s, a model each in 60 s."""
    need = needs(FleetPlan(3, transport="mqtt"), recorded(Sizes(1, 1, 1), "mqtt"))

    assert 3 * (2 / 300 + 1 / 60) == pytest.approx(need.broker_messages_s)
    assert (1, 0) == (need.brokers, needs(FleetPlan(3), UNITS).brokers)


def test_costs_add_up():
    """A month is what cores, memory and bytes cost, at the prices given."""
    plan = FleetPlan(1000)
    need = needs(plan, UNITS)
    cost = monthly_cost(plan, need, Prices(core=2.0, gb_up=0.5))

    assert cost.cores == pytest.approx(2.0 * need.cores / 0.5)
    assert cost.up == pytest.approx(0.5 * 1000 * 30 * need.up_bytes_day / 1e9)
    assert (0.0, cost.cores + cost.up) == (cost.memory, cost.total)


def test_what_no_core_can_serve_is_refused():
    """A second is too short for so many children."""
    with pytest.raises(UsageError, match="longer intervals"):
        needs(FleetPlan(10**6, report_every_s=1.0, fan_in=5000), UNITS)


def test_a_machine_twice_as_slow_is_planned_with_twice_the_time():
    """What is not measured here, a transport and a broker, grows with what is."""
    slow = remeasured(UNITS, Measured(2 * INSIDE_CORE_S, 1e-4, INSIDE_BYTES))

    assert slow.report_core_s.value == pytest.approx(2 * UNITS.report_core_s.value)
    assert slow.broker_core_s.value == pytest.approx(2 * UNITS.broker_core_s.value)
    assert (1e-4, UNITS.row_bytes.value) == (slow.merge_core_s.value, slow.row_bytes.value)


def test_bytes_grow_with_channels_and_directions():
    """They are those of encoded messages: 4 bytes a number of a direction."""
    small, wide, deep = sizes(64, 8, 5), sizes(128, 8, 5), sizes(64, 16, 5)

    assert wide.report - small.report > 4 * 64 * 13
    assert deep.report - small.report >= 4 * 64 * 8
    assert small.model > 4 * 64 * 13


@pytest.mark.slow
def test_what_a_report_costs_is_measured_here():
    """Each round ends, and each figure is above zero."""
    rounds = list[int]()
    found = measured(8, 2, 2, rounds.append)

    assert all(value > 0 for value in found)
    assert found.row_bytes < 100_000
    assert sum(rounds) > 1 < CHILDREN


def test_the_command_prints_a_plan_of_a_million(submerge):
    """A table for people; with --json the same for machines, each unit cost with its source."""
    status, out, err = submerge("--price-core", 20)
    assert (0, "") == (status, err)
    assert "1,000,000 clients over grpc" in out
    assert "benchmarks/footprint.py" in out

    status, out, err = submerge("--transport", "mqtt", "--price-gb-up", 0.1, "--json")
    found = json.loads(out)
    assert (0, "", 1_000_000) == (status, err, found["plan"]["leaves"])
    assert all(cost["source"] for cost in found["units"].values())
    assert sum(each["aggregators"] for each in found["levels"]) == found["aggregators"]
    assert found["monthly_cost"]["total"] == found["monthly_cost"]["up"] > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--rank", 60, "--channels", 64), "lower one of them"),
        (("--report-every", "10ms"), "at least 1s"),
        (("--busy", "0"), "above 0"),
    ],
)
def test_what_makes_no_plan_is_refused(submerge, options, said):
    """One line, and status 2."""
    status, out, err = submerge(*options)

    assert (2, "") == (status, out)
    assert said in err


def test_a_report_of_the_plan_is_a_report():
    """Its size is that of a message that nodes accept."""
    import numpy as np

    from submerge.protocol.messages import Incarnation
    from submerge.protocol.summaries import Subspaces
    from submerge.schema import Schema
    from submerge_lab.plan.measure import WALL, report_of, summary_of_rows
    from submerge_proto.wire import codec

    schema, summaries = Schema.anonymous(20), Subspaces(3)
    summary = summary_of_rows(schema, summaries, np.random.default_rng(0))
    report = report_of("n", 2, summary, schema, incarnation=Incarnation(1, 2), at=WALL)
    back = codec.decode("report", codec.encode(report))

    assert isinstance(back, Report)
    assert (report.stamp, report.scores) == (back.stamp, back.scores)
