"""Histories in a simulated fleet: pushed, forgotten, restored, and each row counts once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.operators import histories
from submerge.aggregator.rows.histories import Histories
from submerge.features import RandomFourier
from submerge.protocol.machine import ForgetHistory, PushHistory
from submerge_lab.simulator import Faults, Plan, run
from submerge_lab.simulator.oracles import history_oracle
from support.mutants import answers_first, holds_nothing, loads_nothing
from support.seeds import seeds

OFTEN = ("histories", 8.0)
"""Orders an hour."""

SMALL = Plan(nodes=4, fan_in=2, depth=2, hours=1, faults=Faults(histories=8.0))

RESTLESS = Faults(
    histories=8.0,
    loss=0.2,
    kill=2.0,
    down_s=90.0,
    kill_between=0.02,
    failed_write=0.1,
    root_lost=0.3,
    root_back=0.6,
    clock=0.3,
    robust=0.5,
)
"""The root dies after one of 50 effects, a tenth of its writes fail, and its store goes back."""


@pytest.fixture
def answers(monkeypatch) -> Counter[str]:
    """What roots have answered to orders."""
    found, on_note = Counter[str](), history_oracle.HistoryOracle.on_note

    def noting(oracle, host, note):
        if note.what in history_oracle.ANSWERS:
            found[note.what] += 1
            found[str(note.facts.get("why", "")).partition(":")[0]] += 1
        on_note(oracle, host, note)

    monkeypatch.setattr(history_oracle.HistoryOracle, "on_note", noting)
    return found


def test_orders_of_all_kinds_are_given_and_answered(answers):
    """Right ones are taken, wrong ones refused for each reason; no invariant breaks."""
    plan = replace(SMALL, faults=Faults(histories=40.0))

    assert [] == [v for seed in range(3) if (v := run(plan, seed).violations)]
    assert set(history_oracle.ANSWERS) <= set(answers)
    reasons = " ".join(answers)
    for why in (
        *("nothing new", "chunks of rows are held already", "this very fleet", "another schema"),
        *("has reported here", "by the root alone"),
    ):
        assert why in reasons


@pytest.mark.slow
def test_what_a_root_has_answered_survives_whatever_happens_to_it(answers):
    """Killed between any two effects, its store lost, or restored from an older copy."""
    bad = [
        (seed, v)
        for seed in seeds(15)
        if (v := run(Plan(hours=2, faults=RESTLESS), seed).violations)
    ]

    assert [] == bad
    assert answers["history taken"] > 2 * len(seeds(15))


@pytest.mark.slow
def test_a_history_may_settle_the_scaling():
    """Which the readings would have settled later; or after a root has lost it."""
    plan = Plan(hours=2, faults=RESTLESS, learns_scaling=True)

    assert [] == [(seed, v) for seed in seeds(8) if (v := run(plan, seed).violations)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"learns_scaling": True},
        {"half_life_s": 3600.0},
        {"features": RandomFourier(features=32), "oversample": 5},
    ],
    ids=["fixed", "scaled", "fading", "kernel"],
)
def test_real_subspaces_weigh_what_they_are_beside_histories(more):
    """To the cap that an operator sets; a restart gives the same bytes."""
    plan = replace(Plan(hours=2, dim=6, rank=2, oversample=2, faults=RESTLESS), **more)

    assert [] == [(seed, v) for seed in seeds(8) if (v := run(plan, seed).violations)]


@pytest.mark.slow
def test_real_subspaces_end_near_the_truth_of_readings_and_files():
    """What is shown is the PCA of both, each row of a history counting as its cap says."""
    outcome = run(Plan(hours=2, dim=12, rank=3, faults="none", given=(OFTEN,)), seed=1)

    assert [] == outcome.violations
    assert outcome.angle < 0.5


def test_orders_do_not_change_what_clients_have_read():
    """Without other faults all readings are counted, and no row of a file among them."""
    outcome = run(SMALL, 1)

    assert [] == outcome.violations
    assert outcome.generated == outcome.counted > 0


def test_an_answer_before_the_commit_is_a_violation(monkeypatch):
    """Also if the root lives on."""
    monkeypatch.setattr(AggregatorNode, "_committed", answers_first)

    assert ["I12"] == [invariant for invariant, _ in run(SMALL, 1).violations]


@pytest.mark.parametrize(
    ("method", "broken", "invariants"),
    [("load", loads_nothing, {"I12"}), ("holders", holds_nothing, {"I1", "I12"})],
)
def test_a_broken_table_is_a_violation(monkeypatch, method, broken, invariants):
    """Histories that are lost at a restart, and chunks that count twice."""
    monkeypatch.setattr(Histories, method, broken)
    plan = replace(SMALL, faults=replace(SMALL.faults, histories=30.0, kill=3.0))

    assert invariants <= {name for seed in range(3) for name, _ in run(plan, seed).violations}


def test_a_model_from_before_the_root_was_lost_would_count_twice(monkeypatch):
    """Nodes go over to the new root with all their rows: it is refused, or I1 breaks."""
    plan = replace(SMALL, faults=Faults(histories=60.0, root_lost=1.0, down_s=60.0))
    assert [] == [v for seed in range(4) if (v := run(plan, seed).violations)]

    monkeypatch.setattr(histories, "_check_earlier_root", lambda *_: None)
    broken = {name for seed in range(4) for name, _ in run(plan, seed).violations}
    assert {"I1", "I12"} <= broken


def test_an_order_that_an_aggregator_below_keeps_is_a_violation(monkeypatch):
    """Histories are the root's alone."""
    step = AggregatorNode.step

    def taking(node, event, now):
        if isinstance(event, PushHistory | ForgetHistory) and not node.top:
            node._groups[event.group].histories.put(event.history)
        return step(node, event, now)

    monkeypatch.setattr(AggregatorNode, "step", taking)
    plan = replace(SMALL, faults=Faults(histories=40.0))

    assert any("no root" in what for seed in range(3) for _, what in run(plan, seed).violations)
