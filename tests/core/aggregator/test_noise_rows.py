"""Rows of a group with noise: switched on and off, under other channels, and claims."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge import Scaling, Schema
from submerge.aggregator.group import Group, GroupPlan
from submerge.aggregator.rows.ledger import Ledger
from submerge.pca.row_sums import RowSums
from submerge.protocol.machine import Now
from submerge.protocol.messages import Counts, Incarnation, Reason, Report, Stamp, Told
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Subspaces
from submerge_lab.simulator.samples import NumberedNoise
from submerge_proto.kept import records

SETS, SETTINGS = Subspaces(2), AggregatorSettings("root", None)
PLAIN = Schema(4, Scaling((5.0,) * 4, (1.0,) * 4))
NOISY, WIDER = replace(PLAIN, clip=3.0), Schema(5, Scaling((5.0,) * 5, (1.0,) * 5), clip=3.0)
RENAMED = replace(NOISY, scaling=Scaling((4.0,) * 4, (1.0,) * 4))
START, LATER = Now(0.0, 1.7e9), Now(1e4, 1.7e9 + 1e4)
ROOT = Incarnation(1_700_000_000_000, 1)


def report(node: str, schema: Schema, life: int = 0, *, n: int = 100, **more) -> Report:
    """One of n rows."""
    learner, rows = SETS.learner(schema), np.random.default_rng(life).normal(size=(n, schema.dim))
    learner.learn(rows, rows)
    stamp = Stamp(node, "g", Incarnation(1_700_000_000_100 + life, life + 5), 1)
    said = {"final": False, "fence": b"", "summary": learner.summary(), "counts": Counts(n)} | more
    return Report(
        stamp,
        pinned=ROOT,
        fingerprint=schema.fingerprint,
        moments=None,
        as_of=1.7e9,
        synced=True,
        version=0,
        lifetime=n,
        **said,
    )


def ledger(schema: Schema) -> Ledger:
    return Ledger("g", schema, SETS, SETTINGS, created=1.7e9)


def group(schema: Schema, published=None) -> Group:
    plan = GroupPlan(SETS, schema, noise=NumberedNoise(), min_rows=50, floor=False)
    found = Group("g", plan, SETTINGS)
    found.published = published
    found.learn_schema(schema.canonical, 1.7e9)
    return found


def model(of: Group, now: Now = LATER):
    of.stir(now=True)
    return of.make_model(now)


@pytest.mark.parametrize(("before", "after"), [(PLAIN, NOISY), (NOISY, PLAIN)])
def test_epsilon_is_switched_while_rows_are_live_and_sealed(before, after):
    """Rows of before are folded as what they are, and there again if it is switched back."""
    rows = ledger(before)
    rows.accept(report("n", before, 0, final=True), START)
    rows.accept(report("n", before, 1), START)
    rows.change_schema(after)
    rows.seal("n", report("n", before, 1).stamp.incarnation)
    rows.change_schema(before)

    assert 200 == rows.seen(START).weight
    assert (before is NOISY) is isinstance(rows.seen(START), RowSums)


def test_a_store_reads_what_was_folded_however_much_was_claimed():
    """A hostile client cannot make it unreadable."""
    rows, most = ledger(NOISY), 1 << 40
    for life in range(3):
        claimed = replace(report("n", NOISY, life).summary, count=most)
        many = {"summary": claimed, "counts": Counts(most), "final": True}
        assert Reason.ACK is rows.accept(report("n", NOISY, life, **many), START).reason
    ((key, sealed),) = rows.sealed.items()
    kept = ("sealed", "g", *key)

    assert 3 * most == records.unpack(kept, records.pack(kept, sealed)).summary.count


def test_sums_weigh_no_more_than_is_counted():
    """Not by a millionth: an aggregator could not pass them on."""
    known = report("n", NOISY)
    more = replace(known, counts=Counts(99))

    assert Reason.ACK is ledger(NOISY).accept(known, START).reason
    assert Reason.INVALID is ledger(NOISY).accept(more, START).reason


@pytest.mark.parametrize("other", [WIDER, RENAMED])
def test_a_release_is_of_its_schema_alone(other):
    """Under another one there is no model until its own rows are enough; then a tree of theirs."""
    first = group(NOISY)
    first.ledger.accept(report("n", NOISY), START)
    model(first, START)
    assert model(first).summary is not None

    then = group(other, first.published)
    then.ledger.accept(report("n", other, n=10), START)
    assert model(then, START).summary is None
    then.ledger.accept(report("m", other), START)
    later = model(then)

    assert other.dim == later.summary.dim
    assert (1, 2) == (then.published.number, later.told.releases)


def test_a_client_that_says_rows_have_left_begins_no_tree():
    rows = ledger(NOISY)
    rows.accept(report("n", NOISY, left=9), START)
    assert 0 == rows.left
    rows.forget("n", START)
    assert 0 < rows.left < 9


def test_who_is_left_out_for_a_try_begins_no_tree():
    """Trials look for a node that makes a model unreadable."""
    rows = ledger(NOISY)
    rows.accept(report("n", NOISY), START)
    rows.leave_out(frozenset(), frozenset("n"))
    rows.leave_out(frozenset())
    assert 0 == rows.left
    rows.leave_out(frozenset("n"))
    rows.leave_out(frozenset())
    assert 2 == rows.left


def test_one_client_of_several_spends_nothing_by_what_it_says():
    """Three are believed."""
    of = group(NOISY)
    for node in "abcd":
        of.ledger.accept(report(node, NOISY, told=Told(3, 0.1)), START)
    assert Told(3, 0.1) == of._told(of.ledger)
    of.ledger.accept(report("e", NOISY, told=Told(2**50, 0.99)), START)

    assert Told(3, 0.1) == of._told(of.ledger)


def test_the_end_of_the_budget_is_said_once():
    of = group(NOISY)
    of.ledger.accept(report("n", NOISY, told=Told(7, 1.0)), START)
    model(of, START)
    said = []
    for i in range(3):
        assert model(of, Now(2e4 + 100 * i, 1.7e9 + 2e4)).summary is None
        said += [note.what for note in of.take_rejections()]

    assert ["no more models: epsilon is spent"] == said
