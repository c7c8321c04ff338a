"""A robust group: liars' rows are kept and taken, and no model is made of them while they lie."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from submerge import MergeTree, Schema
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.rows.influence import ChildPlacement, ChildSummary, InfluenceRule
from submerge.features import Gaussian, RandomFourier
from submerge.protocol.machine import Forget, Received, SetQuarantine, Tick
from submerge.protocol.messages import Counts, Reason
from submerge.protocol.summaries import KernelSummary, Subspaces
from support import liars, oracle
from support.liars import DIM, NAMED, RANK, SPARES
from support.nodes import EPOCH, GROUP, Table, new_incarnation, report

SUMMARIES = Subspaces(RANK, oversample=SPARES)
SCHEMA = Schema.anonymous(DIM)
LEARNT = 10**9
"""Readings that each node counts: as many as the heaviest liar claims to have learnt."""

SOME = liars.fleet(0, nodes=12)


def site(schema: Schema = SCHEMA, *, robust: bool = True, parent: str | None = None) -> Table:
    """An aggregator of clients; with a parent, one below it."""
    table = Table(SUMMARIES, schema)
    plan = GroupPlan(SUMMARIES, schema if parent is None else None, robust=robust)
    if parent is not None:
        table.root(parent)
    table.aggregator("r", under=parent, plans={GROUP: plan}, model_every_s=1.0)
    return table


def hears(table: Table, parts, seq: int = 1, **fields) -> set[Reason]:
    """Have the aggregator take a report of each; return what became of them."""
    host = table.hosts["r"]
    before = len(table.said)
    for name, part in parts.items():
        reported = {"fingerprint": part.schema, "summary": part, "pinned": host.node.incarnation}
        reported |= {"counts": Counts(LEARNT * seq)}
        table.step(
            "r", Received(report(name, new_incarnation(1), seq, (), **{**reported, **fields}))
        )
    table.passes(10)
    sent = [letter.message for letter in table.said[before:]]
    return {message.reason for message in sent if hasattr(message, "reason")}


def directions(table: Table) -> np.ndarray:
    summary = table.hosts["r"].model.summary
    return np.asarray(summary.truncated(RANK).basis, dtype=np.float64)


def outliers(table: Table) -> set[str]:
    return set(table.hosts["r"].ledger.outliers())


@pytest.mark.parametrize("how", NAMED)
def test_a_root_bears_a_third_of_liars_and_takes_them_in_again(how):
    """60 clients, 20 colluders: 3 degrees at most; honest in their next report, they are in."""
    fleet = liars.fleet(1)
    parts, who = fleet.lying(NAMED[how], 20)
    honest = {name: part for name, part in parts.items() if name not in who}
    table, plain = site(), site(robust=False)
    reasons = hears(table, parts)
    hears(plain, parts)
    hears(plain, parts)

    assert {Reason.ACK} == reasons
    assert who == outliers(table)
    assert oracle.angle(liars.merged(honest), directions(plain)) > 85
    assert oracle.angle(liars.merged(honest), directions(table)) <= 3
    assert (40 * LEARNT, 60) == (
        table.hosts["r"].model.counts.learnt,
        len(table.hosts["r"].ledger.rows),
    )

    hears(table, fleet.parts, seq=2)
    hears(plain, fleet.parts, seq=2)
    assert set() == outliers(table)
    assert 120 * LEARNT == table.hosts["r"].model.counts.learnt
    assert oracle.angle(directions(plain), directions(table)) <= 0.1


def test_the_same_rows_give_the_same_bytes():
    """In whatever order they came, whoever lied in between, and after a restart."""
    parts, _ = SOME.lying(NAMED["huge sigma"], 4)
    one, other = site(), site()
    hears(one, parts, seq=2)
    hears(other, SOME.parts)
    hears(other, dict(reversed(parts.items())), seq=2)
    before = SUMMARIES.packed(one.hosts["r"].ledger.summary())
    one.restarts("r")

    assert before == SUMMARIES.packed(other.hosts["r"].ledger.summary())
    assert before == SUMMARIES.packed(one.hosts["r"].ledger.summary())
    assert outliers(one) == outliers(other)


def test_it_is_as_if_they_were_quarantined():
    """Byte by byte, and in all counts."""
    parts, who = SOME.lying(NAMED["huge sigma"], 4)
    table, plain = site(), site(robust=False)
    hears(table, parts)
    hears(plain, parts)
    for name in who:
        plain.step("r", SetQuarantine(GROUP, name))
    robust, quarantined = (each.hosts["r"].ledger for each in (table, plain))

    assert quarantined.counts() == robust.counts()
    assert SUMMARIES.packed(quarantined.summary()) == SUMMARIES.packed(robust.summary())


def test_nothing_of_them_goes_up():
    """What an aggregator tells its parent is without them."""
    parts, who = SOME.lying(NAMED["orthogonal, in bounds"], 4)
    table = site(parent="top")
    table.passes(600)
    hears(table, parts)
    table.passes(600)
    top = table.hosts["top"]

    assert who == outliers(table)
    assert 8 * LEARNT == top.ledger.counts().learnt
    seen = np.asarray(top.ledger.summary().parts[0].truncated(RANK).basis, dtype=np.float64)
    assert oracle.angle(SOME.true, seen) < 3


def test_who_leaves_and_who_comes_back_is_said_once():
    """With how far it is; the same again is no news."""
    parts, who = SOME.lying(NAMED["orthogonal, in bounds"], 1)
    table = site()
    for seq, reported in enumerate((parts, parts, SOME.parts), 1):
        hears(table, reported, seq=seq)
    notes = [note for note in table.hosts["r"].notes if note.what.startswith("node ")]

    assert ["node left out", "node in again"] == [note.what for note in notes]
    assert who == {note.facts["node"] for note in notes}
    assert re.fullmatch(r"far from the others: [89]\d deg", notes[0].facts["why"])


def test_a_version_that_they_claim_is_not_followed():
    """A liar must not drive the model's numbers up, nor have a model made for nothing."""
    parts, who = SOME.lying(NAMED["huge sigma"], 1)
    table = site()
    hears(table, parts)
    for name in who:
        hears(table, {name: parts[name]}, seq=2, version=2**61)

    assert table.hosts["r"].model.version < 2**60


def settled(placement: ChildPlacement) -> set[str]:
    """Have the children compared; return the outliers."""
    placement.settle(lambda _: 0.0, (0.0, 0.0))
    return set(placement.outliers)


def test_an_aggregators_row_is_compared_with_the_others():
    """A fence does not exempt a liar from being left out; a trusted name does."""
    parts, who = SOME.lying(NAMED["huge sigma"], 1)
    for trusted, left_out in (((), who), (("node-*",), set())):
        tree = MergeTree(rank=RANK + SPARES)
        rule = InfluenceRule(trusted)
        placement = ChildPlacement(SCHEMA, SUMMARIES, tree, robust=True, rule=rule)
        for name, part in parts.items():
            placement.put(name, ChildSummary(part, client=name not in who))

        assert left_out == settled(placement)
        assert set(parts) - left_out == set(tree)


def test_only_what_changed_is_merged_again():
    """A child that stays as it was stays where it is."""
    tree = SUMMARIES.tree(SCHEMA)
    placement = ChildPlacement(SCHEMA, SUMMARIES, tree, robust=True)
    for name, part in SOME.parts.items():
        placement.put(name, ChildSummary(part, client=True))
    settled(placement)
    put = []
    tree.__class__ = type("Watched", (type(tree),), {"__setitem__": lambda _, *it: put.append(it)})
    placement.put("node-03", ChildSummary(SOME.parts["node-04"], client=True))
    settled(placement)

    assert [("node-03", SOME.parts["node-04"])] == put


def test_who_is_left_out_can_be_forgotten():
    """And whoever is set apart has no say in who is far."""
    parts, who = SOME.lying(NAMED["orthogonal, in bounds"], 5)
    first, *others = sorted(who)
    table = site()
    hears(table, parts)
    table.step("r", Forget(GROUP, first))
    table.step("r", SetQuarantine(GROUP, others[0]))
    table.step("r", Tick())

    assert set(others[1:]) == outliers(table)
    assert 7 * LEARNT == table.hosts["r"].ledger.counts().learnt


def test_rows_that_fade_are_judged_as_they_were_fresh():
    """A half-life of a minute: an hour later weights are 2^-60 of what they were, and so what."""
    schema = Schema(DIM, half_life=60.0)
    fleet = liars.fleet(2, nodes=12)
    parts, who = fleet.lying(NAMED["orthogonal, in bounds"], 4)
    fingerprinted = {name: _of(part, schema) for name, part in parts.items()}
    table = site(schema)
    table.passes(4000)
    hears(table, fingerprinted, as_of=EPOCH + 4000)
    soon = outliers(table)
    table.passes(3600)

    assert who == soon == outliers(table)


def test_a_wild_clock_does_not_say_what_a_reading_weighs():
    """One that is half an hour ahead, in minutes' half-lives."""
    schema = Schema(DIM, half_life=60.0)
    parts, who = liars.fleet(2, nodes=12).lying(NAMED["orthogonal, in bounds"], 4)
    table = site(schema)
    table.hosts["r"].synced = False
    for i, (name, part) in enumerate(sorted(parts.items())):
        hears(table, {name: _of(part, schema)}, as_of=EPOCH + 1800 * (i == 0))

    assert who - {min(parts)} <= outliers(table) <= who


def test_a_kernel_group_judges_features_and_readings():
    """A liar in either of its two memories is left out of both."""
    schema = Schema(8, features=RandomFourier(Gaussian(0.02), features=32))
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((2, 8))
    parts = {}
    for i in range(9):
        rows = rng.standard_normal((200, 2)) @ mixing + 0.05 * rng.standard_normal((200, 8))
        learner = SUMMARIES.learner(schema)
        learner.learn(rows, schema.lift(rows))
        parts[f"node-{i}"] = learner.summary()
    liar = parts["node-4"]
    for lie in (
        KernelSummary(liar.features, _reversed(liar.linear)),
        KernelSummary(_reversed(liar.features), liar.linear),
    ):
        judged = SUMMARIES.screen(schema, parts | {"node-4": lie}, unit=1.0)
        assert {"node-4"} == judged.outliers.keys()
    assert {} == SUMMARIES.screen(schema, parts, unit=1.0).outliers
    loud = KernelSummary(liar.features, liar.linear.faded(1e6))
    assert {"node-4"} == SUMMARIES.screen(schema, parts | {"node-4": loud}, unit=1.0).factors.keys()


def test_moments_alone_are_not_judged():
    """Before center and scale are settled there is nothing to be far by."""
    table = site()
    hears(table, SOME.parts, summary=None)

    assert set() == outliers(table)
    assert 12 * LEARNT == table.hosts["r"].ledger.counts().learnt


def _of(part, schema: Schema):
    return replace(part, schema=schema.fingerprint)


def _reversed(subspace):
    """The same sizes, along the directions that are least of all in it."""
    basis = np.asarray(subspace.basis, dtype=np.float64)
    others = np.linalg.qr(np.hstack([basis, np.eye(len(basis))]))[0][:, subspace.rank :]
    turned = np.hstack([others, basis[:, ::-1]])[:, : subspace.rank]
    return replace(subspace, basis=turned.astype(np.float32))
