"""A group with bounds, as a machine: rows are taken and counted in full, and weigh less."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.features import Gaussian, RandomFourier
from submerge.protocol.machine import Forget, Received, SetQuarantine, Tick
from submerge.protocol.messages import Counts, Reason
from submerge.protocol.summaries import KernelSummary
from support import liars, oracle
from support.influence import DAY, SUMMARIES, same_bytes
from support.liars import DIM, RANK
from support.nodes import EPOCH, GROUP, Table, new_incarnation, report

SCHEMA = Schema.anonymous(DIM)
FLEET = liars.fleet(0, lambda _: 1000, nodes=12)
LARGE = liars.fleet(0, lambda _: 1000, nodes=40)
LIAR = "node-03"


def group(schema: Schema = SCHEMA, *, parent: str | None = None, **plan) -> Table:
    """An aggregator of clients; with a parent, one below it."""
    table = Table(SUMMARIES, schema)
    chosen = GroupPlan(SUMMARIES, schema if parent is None else None, **plan)
    if parent is not None:
        table.root(parent)
        table.aggregator("r", under=parent, plans={GROUP: chosen})
        table.passes(600)
    else:
        table.aggregator("r", under=None, plans={GROUP: chosen}, model_every_s=1.0)
    return table


def hears(table: Table, parts, seq: int = 1, **fields) -> set[Reason]:
    """Have the aggregator take a report of each; return what became of them."""
    host, before = table.hosts["r"], len(table.said)
    for name, part in sorted(parts.items()):
        reported = {"fingerprint": part.schema if hasattr(part, "schema") else table.schema}
        reported |= {"summary": part, "pinned": host.node.incarnation}
        # A report weighs no more than its readings.
        learnt = max(1000 * seq, ceil(part.weight))
        reported |= {"counts": Counts(learnt), "as_of": EPOCH + table.time}
        table.step(
            "r", Received(report(name, new_incarnation(1), seq, (), **{**reported, **fields}))
        )
    table.passes(10)
    sent = [letter.message for letter in table.said[before:]]
    return {message.reason for message in sent if hasattr(message, "reason")}


def bounded(table: Table) -> set[str]:
    table.step("r", Tick())
    return set(table.hosts["r"].ledger.bounds())


def directions(table: Table) -> np.ndarray:
    return np.asarray(table.hosts["r"].model.summary.truncated(RANK).basis, dtype=np.float64)


def loud(part):
    """Honest counts, and 20 times the sigma, in other directions."""
    return liars.message(part, LARGE.off[:, :RANK], 400 * liars.VARIANCES)


LARGE_LYING = LARGE.parts | {LIAR: loud(LARGE.parts[LIAR])}
LYING = FLEET.parts | {LIAR: loud(FLEET.parts[LIAR])}


def known(table: Table, parts=FLEET.parts) -> Table:
    """Have all nodes report, and a day pass."""
    hears(table, {name: part.faded(0.1) for name, part in parts.items()})
    table.passes(DAY)
    return table


def test_a_liar_is_counted_in_full_and_turns_nothing():
    """Its readings are acknowledged and in every count; without bounds it turns all by 90."""
    true = liars.merged({k: p for k, p in LARGE.parts.items() if k != LIAR})
    for plan, degrees in (({}, 1.0), ({"bounds": False}, 91.0)):
        table = known(group(**plan), LARGE.parts)
        reasons = hears(table, LARGE_LYING, seq=2)

        assert {Reason.ACK} == reasons
        assert 40 * 2000 == table.hosts["r"].model.counts.learnt
        angle = oracle.angle(true, directions(table))
        assert degrees - 10 <= angle <= degrees


def test_an_honest_fleet_has_the_same_model_with_bounds_and_without():
    """To the last bit; and so has what goes up to a parent."""
    one, other = known(group()), known(group(bounds=False))
    for table in (one, other):
        hears(table, FLEET.parts, seq=2)
    assert set() == bounded(one)
    assert same_bytes(*(table.hosts["r"].model.summary for table in (one, other)))
    below, without = known(group(parent="top")), known(group(parent="top", bounds=False))
    for table in (below, without):
        hears(table, FLEET.parts, seq=2)
        table.passes(600)
    tops = [table.hosts["top"].ledger.summary() for table in (below, without)]
    assert all(top is not None for top in tops)
    assert same_bytes(*tops)


def test_what_goes_up_is_bounded_as_the_model_is():
    """A parent's model does not turn either."""
    table = known(group(parent="top"), LARGE.parts)
    hears(table, LARGE_LYING, seq=2)
    table.passes(600)
    seen = table.hosts["top"].ledger.summary()
    basis = np.asarray(seen.parts[0].truncated(RANK).basis, dtype=np.float64)

    assert {LIAR} == bounded(table)
    assert oracle.angle(LARGE.true, basis) < 5


@pytest.mark.slow
def test_a_pi_that_was_away_for_a_month_comes_back_whole():
    """Its age went on: all its readings count."""
    table = known(group())
    others = {name: part for name, part in FLEET.parts.items() if name != LIAR}
    for day in range(2, 31):
        hears(table, {name: part.faded(float(day)) for name, part in others.items()}, seq=day)
        table.passes(DAY)
    hears(table, {name: part.faded(31.0) for name, part in FLEET.parts.items()}, seq=31)

    assert set() == bounded(table)


@pytest.mark.slow
def test_readings_beyond_its_age_regain_their_weight():
    """A month's at once from a new name: few of them first, then more, then all."""
    table = known(group())
    weights = []
    for day in range(2, 34):
        parts = {name: part.faded(float(day)) for name, part in FLEET.parts.items()}
        if day > 2:
            parts["new"] = FLEET.parts[LIAR].faded(29.0)
        hears(table, parts, seq=day)
        bounds = table.hosts["r"].ledger.bounds()
        weights.append(bounds["new"].factor if "new" in bounds else 1.0)
        table.passes(DAY)

    assert weights[1] < 0.1
    assert weights[1:] == sorted(weights[1:])
    assert 1.0 == weights[-1]


def test_a_restart_changes_nothing():
    """The same rows at the same time: the same bytes, bounded nodes included."""
    table = known(group())
    hears(table, LYING, seq=2)
    before = table.hosts["r"].ledger.seen(table.now("r"))
    table.restarts("r")
    after = table.hosts["r"].ledger.seen(table.now("r"))

    assert {LIAR} == bounded(table)
    assert same_bytes(before, after)


def test_who_is_bounded_and_who_is_free_again_is_said_once():
    """With by how much, and why."""
    table = known(group())
    for seq, parts in enumerate((LYING, LYING, FLEET.parts), 2):
        hears(table, parts, seq=seq)
    notes = [note for note in table.hosts["r"].notes if LIAR in note.facts.values()]
    notes = [note for note in notes if "energies" not in note.what]

    assert ["node's influence bounded", "node counts in full again"] == [n.what for n in notes]
    assert "times the energy allowed" in notes[0].facts["why"]


def test_a_trusted_node_counts_in_full():
    """By its name or by a pattern."""
    for trusted, expected in ((("node-03",), set()), (("node-0?",), set()), (("x*",), {LIAR})):
        table = known(group(trusted=trusted))
        hears(table, LYING, seq=2)
        assert expected == bounded(table)


def test_a_forgotten_name_begins_again_and_a_quarantined_one_does_not():
    """Who comes back under a forgotten name is as young as anybody new."""
    table = known(group())
    hears(table, FLEET.parts, seq=2)
    table.step("r", SetQuarantine(GROUP, LIAR))
    table.step("r", SetQuarantine(GROUP, LIAR, quarantined=False))
    assert set() == bounded(table)
    table.step("r", Forget(GROUP, LIAR))
    again = report(
        LIAR,
        new_incarnation(2),
        1,
        (),
        fingerprint=SCHEMA.fingerprint,
        summary=FLEET.parts[LIAR],
        pinned=table.hosts["r"].node.incarnation,
        counts=Counts(1000),
        as_of=EPOCH + table.time,
    )
    table.step("r", Received(again))
    assert {LIAR} == bounded(table)


def test_a_clock_that_jumps_ahead_frees_no_liar():
    """Neither while the aggregator runs nor at a restart: a week at most."""
    parts = FLEET.parts | {"new": FLEET.parts[LIAR].faded(1000.0)}
    table = known(group())
    hears(table, parts, seq=2)
    table.hosts["r"].clock_error = 5 * 365 * DAY
    assert "new" in bounded(table)
    table.restarts("r")
    assert "new" in bounded(table)


def test_a_kernel_group_is_bounded_by_either_memory():
    """Energy in features or in readings: the smaller factor holds for both."""
    schema = Schema(8, features=RandomFourier(Gaussian(0.02), features=32))
    rng = np.random.default_rng(0)
    mixing, parts = rng.standard_normal((2, 8)), {}
    for i in range(9):
        rows = rng.standard_normal((200, 2)) @ mixing + 0.05 * rng.standard_normal((200, 8))
        learner = SUMMARIES.learner(schema)
        learner.learn(rows, schema.lift(rows))
        parts[f"node-{i}"] = learner.summary()
    table = group(schema)
    hears(table, parts, fingerprint=schema.fingerprint)
    table.passes(DAY)
    assert set() == bounded(table)
    liar = parts["node-4"]
    louder = replace(liar.linear, sigma=20 * liar.linear.sigma, energy=400 * liar.linear.energy)
    forged = parts | {"node-4": KernelSummary(liar.features, louder)}
    hears(table, forged, seq=2, fingerprint=schema.fingerprint)

    assert {"node-4"} == bounded(table)


def test_readings_fade_on_both_sides():
    """A half-life of an hour: a node that reports at other times than the rest is not bounded."""
    schema = Schema(DIM, half_life=3600.0)
    table = group(schema)
    parts = {name: replace(p, schema=schema.fingerprint) for name, p in FLEET.parts.items()}
    for seq in range(1, 4):
        for i, (name, part) in enumerate(sorted(parts.items())):
            hears(table, {name: part}, seq=seq)
            table.passes(600.0 * (i % 3))
        table.passes(DAY)
    hears(table, {"node-07": parts["node-07"]}, seq=9)

    assert set() == bounded(table)
    hears(table, {"node-07": parts["node-07"].faded(4.0)}, seq=10)
    assert {"node-07"} == bounded(table)


@pytest.mark.parametrize("robust", [False, True])
def test_a_robust_group_has_both(robust):
    """What the screen keeps is bounded by age as well."""
    table = known(group(robust=robust))
    parts = FLEET.parts | {LIAR: FLEET.parts[LIAR].faded(100.0)}
    hears(table, parts, seq=2)
    weight = table.hosts["r"].ledger.summary().weight

    assert {LIAR} == bounded(table)
    assert weight <= 12 * 1000 * 1.3
