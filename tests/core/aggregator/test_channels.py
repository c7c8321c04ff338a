"""Channels come and go: what was learnt of the others stays, and each reading counts once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.rows.ledger import Ledger
from submerge.pca.restatement import restated
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.machine import Now
from submerge.protocol.messages import Counts, Reason, Report
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Subspaces
from submerge.schema import Channel, Scaling
from submerge.stats.moments import Moments
from support import oracle
from support.nodes import EPOCH, GROUP, Table, new_incarnation, report

KIND = Subspaces(2, oversample=4)
AT = Now(0.0, EPOCH)


def schema_of(names: str, **fields: object) -> Schema:
    """A scaled channel for each letter."""
    scaling = Scaling((0.0,) * len(names), (1.0,) * len(names))
    return Schema(tuple(map(Channel, names)), scaling=scaling, **fields)


A, B, C = schema_of("abcd"), schema_of("axbcdy"), schema_of("dba")


def rows_of(seed: int, schema: Schema, n: int = 30) -> np.ndarray:
    """Correlated rows; each channel has its own numbers, whatever the others are."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n, 2))
    weights = {name: np.sin(ord(name) * np.array([1.0, 2.0])) for name in "abcdxy"}
    noise = {name: 0.2 * rng.standard_normal(n) for name in "abcdxy"}
    columns = [common @ weights[name] + noise[name] for name in schema.names]
    return np.stack(columns, axis=1)


def said(
    node: str, life: int, seed: int, schema: Schema, n: int = 30, seq: int = 1, **fields: object
) -> Report:
    """A client's report of rows under a schema."""
    whole = WholeScatter.of_rows(rows_of(seed, schema, n), schema.fingerprint).rounded()
    incarnation = new_incarnation(life)
    more = {"fingerprint": schema.fingerprint, "summary": whole, "counts": Counts(n), **fields}
    return report(node, incarnation, seq, range(n), **more)


def measured(message: Report, schema: Schema, n: int) -> Report:
    """The report of a client that only measures these rows."""
    rows = rows_of(message.stamp.incarnation.nonce, schema, n)
    moments = Moments.of(rows)
    return replace(message, fingerprint=schema.fingerprint, summary=None, moments=moments)


def ledger_of(schema: Schema = A, **fields: object) -> Ledger:
    return Ledger(GROUP, schema, KIND, AggregatorSettings("r", None), created=EPOCH, **fields)


def filled(ledger: Ledger, schema: Schema = A) -> Ledger:
    """A ledger with live rows of two nodes, and sealed ones of two."""
    for node, life, seed, final in [
        ("c1", 1, 1, True),
        ("c1", 2, 2, False),
        ("c2", 3, 3, False),
        ("c3", 4, 4, True),
        ("c3", 5, 5, True),
    ]:
        verdict = ledger.accept(said(node, life, seed, schema, final=final), AT)
        assert verdict.reason is Reason.ACK
    return ledger


def angle(ledger: Ledger, before: WholeScatter, schema: Schema) -> float:
    """How far the directions of channels that both have have turned, in radians.

    A model is rounded as it will travel, to float32: so by 1e-7 or so at each time.
    """
    of = "".join(name for name in ledger.schema.names if name in schema.names)
    both = schema_of(of, half_life=schema.half_life)
    now = restated(ledger.summary(), ledger.schema, both)
    then = restated(before, schema, both)
    return float(np.radians(oracle.angle(then.directions(2).basis, now.directions(2).basis)))


def restart(ledger: Ledger, schema: Schema) -> Ledger:
    """A ledger from the records of another."""
    again = ledger_of(schema)
    again.load({key: each for key, each in ledger.changes.items() if each is not None}, AT)
    return again


@pytest.mark.parametrize("then", [B, C], ids=["more channels", "fewer, in another order"])
def test_the_model_of_the_others_does_not_turn(then):
    """By less than 1e-6, with live and sealed rows; and every reading still counts."""
    ledger = filled(ledger_of())
    before, counts = ledger.summary(), ledger.counts()

    ledger.change_schema(then)
    assert angle(ledger, before, A) < 1e-6
    assert (counts, before.weight) == (ledger.counts(), ledger.summary().weight)
    assert then.fingerprint == ledger.summary().schema


@settings(max_examples=25)
@given(st.lists(st.sampled_from([A, B, C, schema_of("bcd"), schema_of("abcdxy")]), max_size=5))
def test_schemas_after_each_other_count_and_turn_nothing(changes):
    """In any order; and back again the model has the bytes that it had."""
    ledger = filled(ledger_of())
    before, counts = ledger.summary(), ledger.counts()
    for schema in (*changes, C):
        ledger.change_schema(schema)
        assert counts == ledger.counts()
        assert before.weight == ledger.summary().weight
    assert angle(ledger, before, A) < 1e-6

    ledger.change_schema(A)
    assert KIND.packed(before) == KIND.packed(ledger.summary())


MIXED = [
    *(said("c1", 1, 1, A, n, seq=n, final=n == 30) for n in (10, 20, 30)),
    *(said("c1", 2, 2, B, n, seq=n) for n in (10, 20)),
    *(said("c2", 3, 3, A, n, seq=n, final=n == 30) for n in (10, 30)),
    *(said("c2", 4, 4, B, n, seq=n) for n in (20, 30)),
    said("c3", 5, 5, A, final=True),
]


def after(deliveries: list[Report]) -> tuple[Ledger, bytes]:
    """A ledger that has gone from A to B, and then heard these."""
    ledger = filled(ledger_of())
    ledger.change_schema(B)
    for each in deliveries:
        ledger.accept(replace(each, stamp=each.stamp._replace(node="n" + each.stamp.node)), AT)
    return ledger, KIND.packed(ledger.summary())


@settings(max_examples=25)
@given(st.data())
def test_the_model_does_not_depend_on_the_order_of_arrival_or_on_a_restart(data):
    """Finals of before and reports since: the same bytes in any order, and from the store."""
    deliveries = data.draw(st.lists(st.sampled_from(MIXED), min_size=1, max_size=12))
    shuffled = data.draw(st.permutations(deliveries))
    ledger, packed = after(deliveries)
    other, again = after(shuffled)

    assert ledger.counts() == other.counts()
    assert packed == again == KIND.packed(restart(ledger, B).summary())


def test_rows_since_and_rows_before_add_up():
    """As one merge of what was read, where both have the channels."""
    ledger = filled(ledger_of())
    ledger.change_schema(C)
    assert ledger.accept(said("c1", 9, 9, C), AT).reason is Reason.ACK

    rows = [rows_of(seed, A)[:, [3, 1, 0]] for seed in range(1, 6)]
    truth = oracle.twin(np.concatenate([*rows, rows_of(9, C)]))
    got = ledger.summary()
    np.testing.assert_allclose(got.scatter, truth.scatter, rtol=1e-5, atol=1e-4)
    assert got.weight == truth.weight == ledger.counts().learnt == 180


# -- operators ------------------------------------------------------------------------


def test_a_forgotten_node_leaves_with_its_rows_of_every_schema():
    """As if it had never reported."""
    ledger = filled(ledger_of())
    ledger.change_schema(B)
    ledger.accept(said("c3", 7, 7, B), AT)
    ledger.forget("c3", AT)
    ledger.drop("c1", None, AT)

    assert 60 == ledger.counts().learnt == ledger.summary().weight
    assert {"c1", "c2"} == {node for node, _ in ledger.rows}
    assert {} == ledger.sealed


def test_rows_that_count_are_not_old():
    """`drop_old` takes those of which nothing is known, or that cannot be read."""
    ledger = filled(ledger_of())
    ledger.change_schema(B)
    for node in ("c1", "c2", "c3"):
        ledger.drop_old(node, AT)
    assert 150 == ledger.counts().learnt

    ledger.change_schema(replace(B, center="own"))
    assert 0 == ledger.counts().learnt
    for node in ("c1", "c2", "c3"):
        ledger.drop_old(node, AT)
    ledger.change_schema(B)
    assert 0 == ledger.counts().learnt
    assert ledger.summary() is None


def test_a_quarantined_node_is_out_before_and_after():
    """And in again when it is released, with all of its rows."""
    ledger = filled(ledger_of())
    ledger.leave_out(frozenset({"c1"}))
    ledger.change_schema(B)
    assert 90 == ledger.counts().learnt == ledger.summary().weight

    ledger.leave_out(frozenset())
    assert 150 == ledger.counts().learnt == ledger.summary().weight


def test_rows_before_fade_as_they_did():
    """To the half after a half-life, whatever channels there are since."""
    fading = [replace(each, half_life=100.0) for each in (A, B)]
    ledger = filled(ledger_of(fading[0]), fading[0])
    before = ledger.summary(EPOCH + 100.0)

    ledger.change_schema(fading[1])
    since = ledger.summary(EPOCH + 100.0)
    assert since.weight == pytest.approx(before.weight) == pytest.approx(75.0)
    assert angle(ledger, before, fading[0]) < 1e-6


# -- finals ---------------------------------------------------------------------------


@pytest.mark.parametrize("is_open", [False, True])
def test_what_a_client_kept_when_it_ended_is_taken_once(is_open):
    """Under the schema that it was learnt under; also while the new one is measured."""
    ledger = filled(ledger_of(learns_scaling=True))
    ledger.change_schema(replace(B, scaling=None) if is_open else B)
    final = said("c1", 2, 2, A, 35, seq=2, final=True)

    assert ledger.accept(replace(final, final=False), AT).reason is Reason.SCHEMA
    assert ledger.accept(said("c4", 9, 9, A, 20), AT).reason is Reason.SCHEMA
    assert 150 == ledger.counts().learnt
    for _ in range(2):
        assert ledger.accept(final, AT).reason is Reason.ACK
        assert 155 == ledger.counts().learnt
    assert (ledger.summary() is None) == is_open

    ledger.change_schema(B)
    assert 155 == ledger.counts().learnt == ledger.summary().weight


def test_a_final_is_taken_before_any_row_of_its_schema_has_come():
    """A client learns as soon as it has joined, and its report may be lost."""
    ledger = ledger_of()
    ledger.change_schema(B)

    assert ledger.accept(said("c1", 1, 1, A, final=True), AT).reason is Reason.ACK
    assert 30 == restart(ledger, B).summary().weight


def test_a_final_of_a_schema_that_is_not_of_the_family_is_refused():
    """Its rows would be in no model."""
    ledger = ledger_of(replace(A, center="own"))
    ledger.change_schema(A)
    final = said("c1", 1, 1, replace(A, center="own"), final=True)

    assert ledger.accept(final, AT).reason is Reason.SCHEMA


# -- nodes ----------------------------------------------------------------------------


def root_of(table: Table, schema: Schema, **plan: object) -> None:
    """Start the root, or start it again, configured with a schema."""
    chosen = {"plans": {GROUP: GroupPlan(KIND, schema, **plan)}, "scaling_rows": 400}
    start = table.moved if "r" in table.hosts else table.aggregator
    start("r", under=None, **chosen)


def put(table: Table, label: str, message: Report) -> None:
    """Have a host receive a report that is pinned to it."""
    pinned = table.hosts[label].node.incarnation
    table.tell(label, replace(message, pinned=pinned))


def test_a_root_with_other_channels_keeps_what_it_has_learnt_and_so_does_its_next_process():
    """The file is changed, the root started: its first model has all rows, of the others as is."""
    table = Table(KIND, A)
    root_of(table, A)
    for i in range(4):
        put(table, "r", said(f"c{i}", i, i, A))
    before = table.hosts["r"].ledger.summary()

    root_of(table, B)
    host = table.hosts["r"]
    assert angle(host.ledger, before, A) < 1e-6
    assert 120 == host.model.counts.learnt == host.model.summary.weight
    packed = KIND.packed(host.ledger.summary())
    table.restarts("r")
    assert packed == KIND.packed(table.hosts["r"].ledger.summary())

    root_of(table, A)
    assert KIND.packed(before) == KIND.packed(table.hosts["r"].ledger.summary())


def test_an_aggregator_between_may_go_over_later():
    """Its row counts as it is until it has heard of the new channels, and as often after that."""
    table = Table(KIND, A)
    root_of(table, A)
    table.aggregator("a", under="r")
    table.passes(10)
    for i in range(3):
        put(table, "a", said(f"c{i}", i, i, A))
    table.passes(900)
    before = table.hosts["r"].ledger.summary()
    assert 90 == before.weight

    table.hosts["a"].cut = True
    root_of(table, B)
    table.passes(100)
    host = table.hosts["r"]
    assert A == table.hosts["a"].ledger.schema
    assert 90 == host.ledger.counts().learnt == host.ledger.summary().weight
    assert angle(host.ledger, before, A) < 1e-6

    table.back("a")
    table.passes(1800)
    assert B == table.hosts["a"].ledger.schema
    (row,) = host.ledger.rows.values()
    assert B.fingerprint == row.report.fingerprint
    assert 90 == host.ledger.counts().learnt == host.ledger.summary().weight
    assert angle(host.ledger, before, A) < 1e-6


def test_a_root_that_learns_scalings_measures_the_new_channel_alone():
    """From a quarter of the rows; center and scale of the others are as they were."""
    first = replace(A, scaling=None)
    table = Table(KIND, first)
    root_of(table, first, learns_scaling=True)
    put(table, "r", measured(said("c1", 1, 1, A, 400), first, 400))
    table.passes(100)
    settled = table.hosts["r"].ledger.schema
    assert settled.scaling is not None
    put(table, "r", said("c1", 2, 2, settled))
    table.passes(700)

    second = replace(B, scaling=None)
    root_of(table, second, learns_scaling=True)
    ledger = table.hosts["r"].ledger
    assert (second, 30) == (ledger.schema, ledger.counts().learnt)
    assert ledger.summary() is None
    put(table, "r", measured(said("c1", 3, 3, B, 99), second, 99))
    table.passes(100)
    assert second == ledger.schema
    put(table, "r", measured(said("c1", 3, 3, B, 100, seq=2), second, 100))
    table.passes(100)

    places = [B.names.index(name) for name in A.names]
    assert settled.scaling.scale == tuple(ledger.schema.scaling.scale[i] for i in places)
    assert settled.scaling.offset == tuple(ledger.schema.scaling.offset[i] for i in places)
    assert ledger.summary().weight == 30

    root_of(table, replace(C, scaling=None), learns_scaling=True)
    ledger = table.hosts["r"].ledger
    wanted = [settled.scaling.scale[A.names.index(name)] for name in C.names]
    assert ledger.schema.scaling.scale == tuple(wanted), "nothing is left to measure"
    assert ledger.summary().weight == 30


def test_a_channel_that_was_away_is_measured_as_it_was():
    """Nothing waits: the fleet goes on at once, as where all of a scaling is given."""
    first, given_ = replace(A, scaling=None), dict.fromkeys("abcd", (1.0, 2.0))
    table = Table(KIND, first)
    root_of(table, first, learns_scaling=True, given=given_)
    settled = table.hosts["r"].ledger.schema
    assert settled.scaling == Scaling((1.0,) * 4, (2.0,) * 4)
    put(table, "r", said("c1", 2, 2, settled))

    root_of(table, replace(C, scaling=None), learns_scaling=True)
    root_of(table, first, learns_scaling=True)
    assert settled == table.hosts["r"].ledger.schema
    assert table.hosts["r"].ledger.summary().weight == 30


@pytest.mark.parametrize("learns_scaling", [True, False])
@pytest.mark.parametrize("final", [True, False])
def test_what_was_only_measured_counts_for_nothing_once_it_is_settled(learns_scaling, final):
    """Also below the root, where it is not known that a schema is open."""
    opened = replace(A, scaling=None)
    ledger = ledger_of(opened, learns_scaling=learns_scaling)
    message = replace(measured(said("c1", 1, 1, opened), opened, 30), final=final)
    assert ledger.accept(message, AT).reason is Reason.ACK
    assert ledger.counts() == Counts(30)

    ledger.change_schema(A)
    assert ledger.counts() == Counts()


@pytest.mark.parametrize("learns_scaling", [True, False])
def test_nothing_is_merged_under_an_open_schema(learns_scaling):
    """Below the root neither: the root would take guesses of a new channel for rows of it."""
    ledger, opened = filled(ledger_of(A, learns_scaling=learns_scaling)), replace(B, scaling=None)
    weight = ledger.summary().weight
    ledger.change_schema(opened)
    assert ledger.summary() is None
    assert ledger.accept(measured(said("c1", 9, 1, opened), opened, 30), AT).reason is Reason.ACK
    assert ledger.summary() is None

    ledger.change_schema(B)
    assert ledger.summary().weight == pytest.approx(weight)


def test_an_operator_may_do_without_scaling():
    """The first rows that are learnt without say that the schema is not open."""
    ledger, bare = filled(ledger_of(A)), replace(B, scaling=None)
    weight = ledger.summary().weight
    ledger.change_schema(bare)
    assert ledger.accept(said("c9", 9, 1, bare), AT).reason is Reason.ACK
    assert ledger.summary().weight == pytest.approx(weight + 30)

    again = ledger_of(bare)
    again.load({key: each for key, each in ledger.changes.items() if each is not None}, AT)
    assert np.array_equal(again.summary().scatter, ledger.summary().scatter)


def test_rows_of_no_channel_that_is_left_are_in_no_model():
    """They would weigh as much as ever, and say of the new channels what was never measured."""
    ledger = filled(ledger_of(A))
    ledger.change_schema(schema_of("xy"))
    assert ledger.summary() is None
    assert ledger.counts() == Counts()

    ledger.change_schema(C)
    assert ledger.counts() == Counts(150)
    assert ledger.summary().weight == pytest.approx(150)
