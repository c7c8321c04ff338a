"""A simulated fleet: the machines that ship, under every fault, with an oracle watching."""

from __future__ import annotations

from dataclasses import replace

import pytest

from submerge.features import FeatureMap, Gaussian, Polynomial, RandomFourier, TensorSketch
from submerge.protocol.summaries import KernelEngine
from submerge_lab.simulator import Faults, Plan, run
from support.seeds import seeds

OPEN = RandomFourier(features=64)
"""The fleet settles its gamma."""


def curved(features: FeatureMap, **more: object) -> Plan:
    """A fleet whose readings lie about a curve."""
    return Plan(dim=8, rank=4, features=features, **more)


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
@pytest.mark.parametrize("first", range(0, 300, 100))  # in parts, which several workers share
def test_no_seed_of_the_swarm_breaks_a_rule(first):
    """Everything that can go wrong, four levels deep: no invariant breaks."""
    bad = [(seed, v) for seed in seeds(20, first) if (v := run(Plan(), seed).violations)]

    assert [] == bad


@pytest.mark.slow
def test_a_network_alone_loses_nothing():
    """Messages may be lost, doubled, late and out of order: after healing all is counted."""
    for seed in seeds(40):
        outcome = run(Plan(faults="network"), seed)

        assert [] == outcome.violations, seed
        assert outcome.generated == outcome.counted, seed


@pytest.mark.slow
def test_machines_copied_with_their_memory_are_set_apart():
    """Two processes continue one incarnation: some are quarantined, no other is; none does harm."""
    outcomes = [run(Plan(faults="twins"), seed) for seed in seeds(15)]

    assert [] == [(each.seed, each.violations) for each in outcomes if each.violations]
    assert any(each.missing.get("quarantined") for each in outcomes)


@pytest.mark.slow
def test_short_memories_cost_nothing(monkeypatch):
    """With few rows and names remembered floors rise all the time, and nothing is lost by it."""
    for name in ("CLOSED", "CLIENT_ROWS", "AGGREGATOR_ROWS"):
        monkeypatch.setattr(f"submerge.aggregator.rows.ledger.{name}", 2)
    often = Faults(kill=4.0, down_s=60.0, loss=0.2, duplicate=0.2, reorder=0.1)

    bad = [v for seed in seeds(15) if (v := run(Plan(hours=3, faults=often), seed).violations)]

    assert [] == bad


@pytest.mark.slow
@pytest.mark.parametrize("faults", ["network", "swarm-1"])
def test_fleets_that_scale_and_forget_come_to_rest(faults):
    """Real subspaces: a restart gives the same bytes, all nodes keep up, none floods."""
    plan = Plan(
        hours=2, dim=6, rank=2, oversample=2, learns_scaling=True, half_life_s=3600, faults=faults
    )

    assert [] == [v for seed in seeds(12) if (v := run(plan, seed).violations)]


MEASURING = Plan(learns_scaling=True)
"""Sample ids, while the fleet settles the scaling of their one channel."""

BETWEEN = Faults(
    loss=0.2,
    duplicate=0.2,
    reorder=0.1,
    kill=2.0,
    down_s=90.0,
    kill_between=0.04,
    failed_write=0.2,
    partition=0.3,
    outage_s=1200.0,
)
"""Clients die after one of 25 effects, and a fifth of the writes fail."""


@pytest.mark.parametrize("seed", range(2))
def test_every_reading_that_settles_a_scaling_is_counted(seed):
    """Once, in the model of the scaling that it has settled."""
    outcome = run(replace(MEASURING, hours=1, faults="network"), seed)

    assert [] == outcome.violations
    assert outcome.generated == outcome.counted > 100


@pytest.mark.slow
@pytest.mark.parametrize("faults", ["swarm-1", "kills", "copies", "fences", "all-1", BETWEEN])
def test_readings_that_settle_a_scaling_count_once_under_every_fault(faults):
    """None twice, and none is lost without a cause: I1 and I4, with kills between any two steps."""
    plan = replace(MEASURING, hours=2.5, faults=faults)

    assert [] == [(seed, v) for seed in seeds(10) if (v := run(plan, seed).violations)]


@pytest.mark.slow
def test_a_store_from_before_the_scaling_was_settled_may_refuse_what_was_learnt_in_it():
    """An aggregator is cut off from the root, and its store is rolled back by hours."""
    plan = replace(MEASURING, given=(("histories", 4.0),))

    assert [] == run(plan, 2017).violations


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "rank"), [(6, 2), (40, 1)], ids=["scatter", "rows"])
def test_measured_readings_weigh_as_many_as_they_are(dim, rank):
    """Real subspaces, kept as a scatter or as rows: messages alone lose none of them."""
    plan = replace(MEASURING, hours=1.5, dim=dim, rank=rank, oversample=2, faults="network")
    outcomes = [run(plan, seed) for seed in seeds(5)]

    assert [] == [each.violations for each in outcomes if each.violations]
    assert all(each.generated == each.counted > 0 for each in outcomes)


FADING = Plan(dim=8, rank=4, oversample=2, half_life_s=3600, hours=2)
"""Readings fade, under every fault: wrong clocks among them."""


@pytest.mark.parametrize("seed", [12, 75, 86])
def test_rows_that_a_wrong_clock_has_dated_are_read_alike_after_a_restart(seed):
    """Clocks years behind, years ahead, and put right again, with rows that came before."""
    assert [] == run(FADING, seed).violations


@pytest.mark.slow
@pytest.mark.parametrize("half_life_s", [180, 3600])
def test_fleets_that_fade_under_restless_clocks_come_to_rest(half_life_s):
    """Each clock is set wrong twice an hour, and the reference time may move between."""
    plan = replace(FADING, half_life_s=half_life_s, given=(("clock", 2.0),))

    assert [] == [(seed, v) for seed in seeds(20) if (v := run(plan, seed).violations)]


@pytest.mark.slow
def test_real_subspaces_end_near_the_truth():
    """Eight clients, three levels of merging, no faults: what is shown is the pooled PCA."""
    outcome = run(Plan(hours=2, dim=12, rank=3, faults="none"), seed=1)

    assert [] == outcome.violations
    assert outcome.angle < 0.5


@pytest.mark.slow
def test_a_scaling_that_is_settled_leaves_a_truth():
    """Of the readings that were learnt, scaled as the fleet settled it."""
    plan = Plan(hours=2, dim=12, rank=3, faults="none", learns_scaling=True)

    assert run(plan, seed=1).angle < 0.5


@pytest.mark.slow
def test_features_end_near_the_truth():
    """What is shown is the pooled PCA of features, and every reading is in it."""
    outcome = run(curved(OPEN.settled_at(0.03), hours=1, faults="none"), seed=1)

    assert [] == outcome.violations
    assert outcome.generated == outcome.counted > 0
    assert outcome.angle < 0.1


@pytest.mark.slow
def test_a_gamma_that_is_open_is_settled_on_the_way():
    """Readings that settle it are learnt as well: nothing is lost."""
    outcome = run(curved(OPEN, hours=1, faults="none"), seed=1)

    assert [] == outcome.violations
    assert 0 < outcome.counted == outcome.generated
    assert outcome.angle < 0.5


def test_an_audit_weighs_both_memories(monkeypatch):
    """A reading that is missing from one of them is seen."""
    learn = KernelEngine.learn

    def forgetful(engine, rows, features, gaps):
        learn(engine, rows, features, gaps)
        engine._linear.partial_fit(rows[:1])

    monkeypatch.setattr(KernelEngine, "learn", forgetful)
    outcome = run(curved(OPEN.settled_at(0.03), hours=0.5, faults="none"), seed=1)

    assert ["I1"] == [invariant for invariant, _ in outcome.violations]


@pytest.mark.slow
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    "features",
    [OPEN, RandomFourier(Gaussian(0.03), 64), TensorSketch(Polynomial(3), 64)],
    ids=["auto", "given", "polynomial"],
)
def test_kernel_fleets_come_to_rest(features, scaled):
    """Under every fault: readings count once in both memories, a restart gives the same bytes."""
    plan = curved(features, learns_scaling=scaled)

    assert [] == [(seed, v) for seed in seeds(8) if (v := run(plan, seed).violations)]


@pytest.mark.slow
def test_kernel_fleets_that_fade_come_to_rest():
    """A half-life fades both memories alike; also across a restart."""
    plan = curved(OPEN, half_life_s=3600, hours=2, faults="kills")

    assert [] == [v for seed in seeds(12) if (v := run(plan, seed).violations)]
