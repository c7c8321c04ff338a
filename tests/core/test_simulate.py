"""A simulated fleet: the machines that ship, under every fault, with an oracle watching."""

from __future__ import annotations

import pytest

from submerge.simulate import Faults, Plan, run


@pytest.mark.parametrize("seed", range(3))
def test_without_faults_every_reading_is_counted(seed):
    """Nothing goes wrong, nothing is missing."""
    outcome = run(Plan(faults="none", hours=1), seed)

    assert [] == outcome.violations
    assert outcome.generated == outcome.counted > 0


def test_the_same_seed_runs_the_same_way():
    """Every delivery, payload bytes included, is a function of the seed."""
    first, again, other = (run(Plan(hours=1), seed).trace for seed in (5, 5, 6))

    assert first == again != other


@pytest.mark.slow
def test_no_seed_of_the_swarm_breaks_a_rule():
    """300 seeds of everything that can go wrong, four levels deep: no invariant breaks."""
    bad = [(seed, v) for seed in range(300) if (v := run(Plan(), seed).violations)]

    assert [] == bad


@pytest.mark.slow
def test_a_network_alone_loses_nothing():
    """Messages may be lost, doubled, late and out of order: after healing all is counted."""
    for seed in range(40):
        outcome = run(Plan(faults="network"), seed)

        assert [] == outcome.violations, seed
        assert outcome.generated == outcome.counted, seed


@pytest.mark.slow
def test_short_memories_cost_nothing(monkeypatch):
    """With few rows and names remembered floors rise all the time, and nothing is lost by it."""
    for name, number in {"CLOSED": 2, "CLIENT_ROWS": 2, "AGGREGATOR_ROWS": 2}.items():
        monkeypatch.setattr(f"submerge.ledger.{name}", number)
    often = Faults(kill=4.0, down_s=60.0, loss=0.2, duplicate=0.2, reorder=0.1)

    bad = [v for seed in range(15) if (v := run(Plan(hours=3, faults=often), seed).violations)]

    assert [] == bad


@pytest.mark.slow
@pytest.mark.parametrize("faults", ["network", "swarm-1"])
def test_fleets_that_scale_and_forget_come_to_rest(faults):
    """Real subspaces: a restart says the same bytes, nobody stays behind, nobody storms."""
    plan = Plan(
        hours=2, dim=6, rank=2, oversample=2, learns_scaling=True, half_life_s=3600, faults=faults
    )

    assert [] == [v for seed in range(12) if (v := run(plan, seed).violations)]


@pytest.mark.slow
def test_real_subspaces_end_near_the_truth():
    """Eight clients, three levels of merging, no faults: what is shown is the pooled PCA."""
    outcome = run(Plan(hours=2, dim=12, rank=3, faults="none"), seed=1)

    assert [] == outcome.violations
    assert outcome.angle < 0.5
