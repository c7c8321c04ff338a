"""Robust groups, alarms and operators, copies before a join, and a malicious node."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from submerge.aggregator.group import Group
from submerge.aggregator.rows.ledger import Ledger
from submerge.client.monitor import NodeMonitor
from submerge.protocol.messages import Model
from submerge.protocol.summaries import Subspaces
from submerge_client.alarms.journal import Delivered
from submerge_lab.simulate.run import as_received
from submerge_lab.simulator import Faults, Plan, run
from submerge_lab.simulator.oracles import alarm_oracle, incident_oracle
from submerge_lab.simulator.samples import SampleSets
from support.mutants import MUTANTS, PRESET, SEED
from support.seeds import seeds

COPIED = Faults(
    card_back=0.1,
    card_clone=0.1,
    clock=0.2,
    duplicate=0.05,
    kill=0.3,
    loss=0.05,
    move=0.15,
    outage_s=1500,
    partition=0.3,
    reorder=0.03,
    root_back=0.05,
    store_back=0.05,
    store_clone=0.1,
    twin=0.2,
)
"""The mixture that first showed readings counted twice."""

RANKS = Plan(6, 3, 2, hours=3, reading_every_s=15.0, dim=24, rank=8, faults="ranks-1")

SMALL = Plan(nodes=4, fan_in=2, depth=2, hours=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [700008, 700048, 700050, 700115])
def test_only_what_was_learnt_before_a_copy_and_a_join_may_count_twice(seed):
    """Two processes with one memory meet two stores: decision 0024 states the exception."""
    outcome = run(Plan(nodes=9, fan_in=2, depth=4, faults=COPIED), seed)

    assert [] == outcome.violations


@pytest.mark.slow
def test_ranks_move_while_clients_are_killed_and_join(monkeypatch):
    """Each node's own: it begins again after a kill, and summaries of all ranks are one model."""
    learner, made = Subspaces.learner, []

    def counting(subspaces, schema):
        made.append((subspaces.rule.adaptive, learner(subspaces, schema)))
        return made[-1][1]

    monkeypatch.setattr(Subspaces, "learner", counting)
    outcomes = [run(RANKS, seed) for seed in seeds(4)]
    ranks = {each.method.rank for adaptive, each in made if adaptive}

    assert [] == [violation for outcome in outcomes for violation in outcome.violations]
    assert len(made) > len(outcomes) * RANKS.nodes
    assert {1, 3, 5, 6} <= ranks <= set(range(1, 9))
    assert max(outcome.angle for outcome in outcomes) < 5.0


@pytest.mark.slow
def test_rows_that_wait_for_others_are_counted_once():
    """Under kills, copies and lost stores."""
    outcomes = [run(Plan(faults="floors-1"), seed) for seed in seeds(6)]

    assert [] == [violation for outcome in outcomes for violation in outcome.violations]
    assert all(outcome.counted for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, 7, 9, 38])
def test_rows_that_wait_are_not_carried_into_a_later_life(seed):
    """A copied machine has them too: 5 and 7 counted them twice; 9 and 38 were the oracle."""
    assert [] == run(Plan(faults="floors-all-1"), seed).violations


@pytest.mark.slow
def test_robust_groups_count_all_but_those_that_are_far_at_the_end(monkeypatch):
    """Who is far changes as sets grow; who is near again is counted again, in full."""
    screen, far = SampleSets.screen, set()

    def counting(sets, schema, parts, *, unit):
        screening = screen(sets, schema, parts, unit=unit)
        far.add(frozenset(screening.outliers))
        return screening

    monkeypatch.setattr(SampleSets, "screen", counting)
    outcomes = [run(Plan(hours=2, faults=Faults(robust=1.0, loss=0.1)), seed) for seed in range(3)]

    assert [] == [each.violations for each in outcomes if each.violations]
    assert len(far) > 2


@pytest.mark.slow
def test_a_root_that_is_lost_takes_along_what_was_far_from_the_others():
    """It was in no model, and in no other store."""
    plan = Plan(nodes=6, depth=1, faults="all-1", given=(("histories", 0.0), ("root_lost", 0.3)))

    assert [] == run(plan, 219).violations


ALARMS = replace(SMALL, faults=Faults(loss=0.2, duplicate=0.2, reorder=0.1, alarms=4, orders=2))


@pytest.mark.slow
def test_the_root_knows_every_alarm_and_every_order_arrives():
    """Messages may be lost, doubled and late: each start and end is known once, in the end."""
    assert [] == [v for seed in seeds(5) if (v := run(ALARMS, seed).violations)]


def test_an_alarm_that_the_root_does_not_know_is_a_violation(monkeypatch):
    """A fleet whose clients report no alarms breaks I11."""
    monkeypatch.setattr(NodeMonitor, "alarm_status", lambda *_: None)

    assert ["I11"] == [invariant for invariant, _ in run(ALARMS, 1).violations]


def test_an_order_that_does_not_arrive_is_a_violation(monkeypatch):
    """A fleet whose clients ignore what operators want breaks I11."""
    monkeypatch.setattr(NodeMonitor, "apply", lambda *_: False)
    broken = [run(ALARMS, seed).violations for seed in range(3)]

    assert any("I11" in dict(each) for each in broken)


def test_an_alarm_that_opens_again_is_a_violation(monkeypatch):
    """An end that is forgotten on the way breaks I11."""
    known, calls = alarm_oracle.named, itertools.count()

    def forgetful(alarms):
        again = next(calls) > 40
        return [replace(each, ended=0.0) if again else each for each in known(alarms)]

    monkeypatch.setattr(alarm_oracle, "named", forgetful)

    assert any(run(ALARMS, seed).violations for seed in range(3))


INCIDENTS = Plan(hours=1.5, faults="incidents-1")


def told(monkeypatch, plan, numbers):
    """Run seeds; return their violations of I13, and how many incidents sinks have told."""
    conclude, incidents = incident_oracle.IncidentOracle.conclude, []

    def counting(oracle):
        found = conclude(oracle)
        incidents.extend(sink.incidents for sink in oracle.sinks)
        return found

    monkeypatch.setattr(incident_oracle.IncidentOracle, "conclude", counting)
    found = [(seed, v) for seed in numbers for v in run(plan, seed).violations if v[0] == "I13"]
    return found, sum(incidents)


def test_each_incident_is_told_once_and_its_end_once(monkeypatch):
    """Under kills, duplicates, moves and harmed disks, at a sink that is slow as well."""
    found, incidents = told(monkeypatch, INCIDENTS, seeds(20))

    assert [] == found
    assert incidents


def test_a_part_that_is_told_beside_its_incident_is_a_violation(monkeypatch):
    monkeypatch.setattr(Delivered, "subjects", lambda _, alarms: list(alarms))

    assert told(monkeypatch, INCIDENTS, range(2))[0]


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_no_seed_of_incidents_breaks_a_rule(first):
    plan = Plan(faults="incidents-1")

    assert [] == [(s, v) for s in range(first, first + 50) if (v := run(plan, s).violations)]


NOISE = Plan(faults="noise-1")


def broken(numbers):
    """Return the seeds of `noise-1` that break I14."""
    return [seed for seed in numbers if any(v[0] == "I14" for v in run(NOISE, seed).violations)]


def test_models_with_noise_tell_of_each_reading_no_more_than_they_say():
    """Under kills, moves, and a root whose store is lost, or restored from an older one."""
    assert [] == [(seed, v) for seed in (2, 16, *seeds(6)) if (v := run(NOISE, seed).violations)]


def test_a_noise_that_is_used_again_where_rows_left_is_a_violation(monkeypatch):
    monkeypatch.setattr(Ledger, "_leave", lambda *_: None)

    assert broken([2, 16])


def test_a_root_that_asks_nobody_what_was_told_breaks_the_rule(monkeypatch):
    monkeypatch.setattr(Group, "_told", lambda *_: None)

    assert broken([33, 47, 48])


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, 2000, 200))
def test_no_seed_of_noise_breaks_a_rule(first):
    outcomes = [(seed, run(NOISE, seed).violations) for seed in range(first, first + 200)]

    assert [] == [each for each in outcomes if each[1]]


CLOCKS = replace(SMALL, faults=Faults(alarms=4, clock=2))


@pytest.mark.slow
def test_a_wrong_clock_changes_nothing_of_an_alarm_but_its_times():
    """An aggregator takes times of its future for earlier ones; the rest is the client's."""
    assert [] == [v for seed in seeds(5) if (v := run(CLOCKS, seed).violations)]


@pytest.mark.parametrize("wrong", [{"worst": 99.0}, {"began": 4e9}])
def test_beside_wrong_clocks_the_root_has_to_know_each_alarm_as_it_is(monkeypatch, wrong):
    """Other figures, or a later time, break I11."""
    known = alarm_oracle.named
    monkeypatch.setattr(
        alarm_oracle, "named", lambda alarms: [replace(each, **wrong) for each in known(alarms)]
    )

    assert any("I11" in dict(run(CLOCKS, seed).violations) for seed in range(3))


@pytest.mark.slow
def test_a_malicious_node_changes_nothing_for_the_others():
    """Each honest reading counts once, honest nodes are acknowledged, all can be decoded."""
    plan = Plan(nodes=4, fan_in=2, depth=2, hours=2, faults="hostile-1")
    outcomes = [run(plan, seed, wire=as_received) for seed in seeds(25)]

    assert [] == [(each.seed, each.violations) for each in outcomes if each.violations]
    # It is no empty claim: its messages reach the code behind each check.
    fates = {fate for each in outcomes for fate in each.forged}
    assert fates >= {"denied", "undecodable", "ack", "stale", "fenced", "schema", "shrunk"}


def test_what_aggregators_send_has_to_be_decodable():
    """Beside a malicious node, a model that no child can decode breaks I10."""
    plan = replace(SMALL, faults=Faults(malicious=20.0))

    def refuses(message):
        return None if isinstance(message, Model) else as_received(message)

    assert ["I10"] == [invariant for invariant, _ in run(plan, 1, wire=refuses).violations]


def test_a_malicious_node_is_repeatable():
    """What it sends is a function of the seed."""
    plan = replace(SMALL, hours=0.5, faults="hostile-1")
    first, again = (run(plan, 3, wire=as_received) for _ in range(2))

    assert (first.trace, first.forged) == (again.trace, again.forged)


def test_fences_are_missed_within_a_hundred_seeds():
    """The preset `fences` shows a parent that takes reports under any fence."""
    mutant = "fence' none on reports"

    assert mutant in MUTANTS
    assert ("fences", True) == (PRESET[mutant], SEED[mutant] < 100)
