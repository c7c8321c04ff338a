"""An operator changes a group's channels, and each reading counts once: before, after, and under
every fault."""

from __future__ import annotations

import pytest

from submerge_lab.simulator import Faults, Plan, run
from submerge_lab.simulator.operators import OTHERS, ChannelOperator
from support.seeds import seeds

CHANNELS = Faults(loss=0.1, duplicate=0.1, reorder=0.05, channels=1.0)
"""Restarts of nodes with other channels, and an ordinary network."""


@pytest.mark.parametrize("learns_scaling", [False, True])
def test_channels_come_and_go_and_no_reading_counts_twice(learns_scaling):
    """Two seeds, each with some changes: all readings count that a restart has not cost."""
    plan = Plan(hours=3, faults=CHANNELS, learns_scaling=learns_scaling)
    outcomes = [run(plan, seed) for seed in (3, 4)]

    assert [] == [each.violations for each in outcomes if each.violations]
    if not learns_scaling:
        assert all(each.counted > 0.8 * each.generated for each in outcomes)


def test_an_operator_adds_removes_and_moves_channels(monkeypatch):
    """Each change is one; channels that were there come back."""
    orders = []
    changed = ChannelOperator._changed

    def noted(operator, before):
        after = changed(operator, before)
        orders.append((before, after))
        return after

    monkeypatch.setattr(ChannelOperator, "_changed", noted)
    for seed in range(3):
        run(Plan(hours=6, nodes=2, depth=1, faults=Faults(channels=3.0)), seed)

    kinds = {len(after) - len(before) for before, after in orders}
    assert {-1, 0, 1} == kinds
    for before, after in orders:
        assert set(after) <= set(OTHERS)
        assert len(set(before) ^ set(after)) == (len(before) != len(after))


@pytest.mark.slow
@pytest.mark.parametrize("learns_scaling", [False, True])
@pytest.mark.parametrize("first", [0, 258])
def test_no_seed_of_channels_breaks_a_rule(learns_scaling, first):
    """All faults of all-1, while channels come and go. Seed 258 has broken I11 once."""
    plan = Plan(faults="channels-1", learns_scaling=learns_scaling)

    assert [] == [(seed, v) for seed in seeds(10, first) if (v := run(plan, seed).violations)]


@pytest.mark.slow
def test_an_order_without_an_answer_may_hold_or_not():
    """The root was killed between the commit and the answer: the next order decides."""
    sizes = {"nodes": 6, "fan_in": 3, "depth": 2, "learns_scaling": True}

    assert [] == run(Plan(faults="channels-1", **sizes), 5000132).violations
