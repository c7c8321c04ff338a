"""Large fleets: their clients decide as those with matrices do, and the audit notices a mistake."""

from __future__ import annotations

from dataclasses import replace

import pytest

from submerge import UsageError
from submerge.features import RandomFourier
from submerge_lab.simulator import Faults, Plan, run
from submerge_lab.simulator.large import needed_bytes, refuse_unsupported, run_large
from submerge_lab.simulator.large.leaf import LeafNode, Taken

PLAN = Plan(
    nodes=6,
    fan_in=3,
    depth=2,
    hours=0.5,
    reading_every_s=30.0,
    report_every_s=120.0,
    dim=30,
    rank=2,
    oversample=2,
    faults="none",
)


@pytest.mark.slow
@pytest.mark.parametrize("faults", ["none", "network", "kills", "swarm-1"])
def test_each_client_sends_what_it_would_send_with_all_its_matrices(faults):
    """Whatever fails: equal stamps, counts, scores and trails, and subspaces to rounding."""
    outcome = run_large(replace(PLAN, faults=faults), seed=2, sampled=6)

    assert [] == outcome.violations
    assert outcome.sample is not None
    assert (6, True) == (outcome.sample.clients, outcome.sample.reports > 6)
    assert outcome.sample.worst < 1e-9


@pytest.mark.slow
def test_same_seed_same_trace():
    """A run depends on its plan and seed alone."""
    plan = replace(PLAN, nodes=3, hours=0.2)

    assert run_large(plan, seed=5).trace == run_large(plan, seed=5).trace
    assert run_large(plan, seed=6).trace != run_large(plan, seed=5).trace


@pytest.mark.slow
def test_its_figures_are_those_of_a_fleet_with_matrices():
    """The same plan without faults: all readings counted, and reports of the same size."""
    large, small = run_large(PLAN, seed=3), run(PLAN, seed=3)

    assert (large.generated, []) == (large.counted, large.violations)
    assert small.generated == pytest.approx(large.generated, abs=2 * PLAN.nodes)
    assert small.largest_report == pytest.approx(large.largest_report, rel=0.05)


# -- mistakes are noticed ------------------------------------------------------------


class Forgetful(LeafNode):
    """A client that learns a few readings, and then no more."""

    def take(self, taken, models):
        if self.current.counts.learnt <= 3:
            super().take(taken, models)


class Doubling(LeafNode):
    """A client that counts a reading twice."""

    def take(self, taken, models):
        super().take(taken, models)
        self.current.counts = replace(self.current.counts, learnt=self.current.counts.learnt + 1)


class Late(LeafNode):
    """A client that reports a second after it should."""

    @property
    def wakes_at(self):
        return super().wakes_at + 1.0


class Ahead(LeafNode):
    """A client that learns the reading after the one that it has taken."""

    def take(self, taken, models):
        numbers = range(taken.numbers.start + 1, taken.numbers.stop + 1)
        super().take(Taken(taken.stream, numbers, taken.walls, taken.now), models)


@pytest.mark.parametrize(
    ("client", "noticed"),
    [(Forgetful, "I4"), (Doubling, "I1"), (Late, "sample"), (Ahead, "sample")],
)
def test_a_client_with_a_mistake_is_noticed(client, noticed):
    """Each mistake breaks the rule that it should, or the comparison with real nodes."""
    plan = replace(PLAN, nodes=3, hours=0.2)

    assert noticed in dict(run_large(plan, seed=1, client=client).violations)


# -- borders -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "faults", "said"),
    [
        (replace(PLAN, dim=0), Faults(), "expected --dim"),
        (replace(PLAN, half_life_s=60.0), Faults(), "no --half-life"),
        (replace(PLAN, learns_scaling=True), Faults(), "no --learn-scaling"),
        (replace(PLAN, features=RandomFourier(features=8)), Faults(), "no --kernel"),
        (PLAN, Faults(alarms=1.0), "no fault alarms"),
        (PLAN, Faults(twin=0.1), "no fault twin"),
    ],
)
def test_what_it_does_not_stand_in_for_is_refused(plan, faults, said):
    """One line says what to leave out."""
    with pytest.raises(UsageError, match=said):
        refuse_unsupported(plan, faults)


def test_a_larger_fleet_needs_more():
    """What is said before a run grows with clients, channels and readings."""
    more = replace(PLAN, nodes=60), replace(PLAN, dim=60), replace(PLAN, hours=5.0)

    assert all(needed_bytes(PLAN) < needed_bytes(each) for each in more)
