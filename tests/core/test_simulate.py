"""A simulated fleet: the machines that ship, under every fault, with an oracle watching."""

from __future__ import annotations

import pytest

from submerge.simulate import Plan, run


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
