"""Moments, and a fleet that works out its own center and scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.rows.ledger import Ledger
from submerge.features import Gaussian, Laplace, Matern, Polynomial
from submerge.protocol.machine import Flush, Now, Reading
from submerge.protocol.messages import Counts
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Subspaces
from submerge.schema import Channel, Scaling
from submerge.stats.moments import Moments, Reservoir, movers, pooled, spread, typical
from support.nodes import EPOCH, GROUP, Table, new_incarnation, report
from support.strategies import cuts, rows_of, streams

KIND = Subspaces(2, oversample=1)
RAW = Schema((Channel("flow", "l/s"), Channel("heat", "K"), Channel("stuck", "V")))


# -- pooling -----------------------------------------------------------------------


def agree(expected: np.ndarray, got: Moments) -> None:
    """Moments are those of all rows: digits of an offset that all share are not lost.

    Rounding: a few units in the last place for each addition, of the size of a channel's
    values for its mean, and of its squared spread for m2 (plus what the mean rounds).
    """
    size = np.abs(expected).max(axis=0)
    exact = expected.astype(np.longdouble)
    mean = exact.mean(axis=0)
    m2 = ((exact - mean) ** 2).sum(axis=0)
    ulp = 64 * np.finfo(float).eps
    assert len(expected) == got.count
    assert (np.abs(got.mean - mean) <= ulp * size).all()
    slack = ulp * m2 + len(expected) * (ulp * size) ** 2
    # Rows of spread s and size L round to s L eps each.
    slack += 2 * np.sqrt(m2 * len(expected)) * ulp * size
    assert (np.abs(got.m2 - m2) <= slack).all()


@given(st.data())
def test_pooled_in_any_grouping_they_are_the_moments_of_all_rows(data):
    """Cut, group, nest and order as you like; constants and offsets of a million included."""
    X = data.draw(streams(max_rows=60, max_dim=6))
    parts = [Moments.of(X[cut]) for cut in data.draw(cuts(len(X)))]
    parts = data.draw(st.permutations(parts))
    while len(parts) > 1:
        n = data.draw(st.integers(2, len(parts)))
        parts = [pooled(*parts[:n]), *parts[n:]]

    agree(X, parts[0])


def test_pooling_one_is_that_one():
    """To the byte: a root with one child has the child's moments."""
    part = Moments.of(rows_of("far from zero", 9, 3, seed=1))

    assert part.packed == pooled(part).packed


def test_an_offset_common_to_all_costs_no_digits():
    """A billion is subtracted before anything is squared."""
    X = rows_of("noise", 400, 2, seed=1) + 1e9
    expected = X.std(axis=0)
    got = pooled(*(Moments.of(part) for part in np.split(X, 20))).scaling

    # Readings near 1e9 are rounded to 1e-7, one in a million of the spread at worst.
    np.testing.assert_allclose(got.scale, expected, rtol=1e-6)


def test_scaling_makes_channels_of_one_size():
    """Mean 0 and deviation 1, each."""
    X = rows_of("badly scaled", 300, 4, seed=2) + 7
    schema = replace(Schema.anonymous(4), scaling=Moments.of(X).scaling)
    lifted = schema.lift(X)

    np.testing.assert_allclose(lifted.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(lifted.std(axis=0), 1, rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 5.0, 0.1, -1e9])
def test_a_constant_channel_keeps_its_size(value):
    """Nothing is known of its spread: scale 1, also where the mean is rounded."""
    parts = [Moments.of(np.full((n, 1), value)) for n in (3, 7, 11)]

    assert 1.0 == pooled(*parts).scaling.scale[0]


# -- the fleet's gamma ----------------------------------------------------------------


def sampled(X: np.ndarray, seed: int) -> Moments:
    """Moments of rows, and a sample of them."""
    drawn = np.random.default_rng((seed, 9)).integers(2**64, size=len(X), dtype=np.uint64)
    return Moments.of(X, drawn)


def trace(X: np.ndarray) -> float:
    """The trace of the covariance: half the mean squared distance."""
    return float(X.var(axis=0).sum())


def half_median(X: np.ndarray) -> float:
    """Half the median squared distance, of all pairs."""
    first, second = np.triu_indices(len(X), 1)
    return float(np.median(((X[first] - X[second]) ** 2).sum(axis=1))) / 2


@given(st.data(), st.integers(0, 2**16))
def test_samples_pool_with_moments(data, seed):
    """What all rows would have kept, to the bit; sums as without a sample."""
    X = rows_of("noise", data.draw(st.integers(1, 200)), data.draw(st.integers(8, 30)), seed)
    drawn = np.random.default_rng(seed).integers(2**64, size=len(X), dtype=np.uint64)
    parts = [Moments.of(X[cut], drawn[cut]) for cut in data.draw(cuts(len(X)))]
    parts = data.draw(st.permutations(parts))
    whole = pooled(*parts[:1], *([pooled(*parts[1:])] if parts[1:] else []))
    bare = pooled(*(replace(part, sample=None) for part in parts))

    agree(X, whole)
    assert Moments.of(X, drawn).sample.packed == whole.sample.packed
    assert bare.packed == pooled(*parts).packed[: len(bare.packed)]


def test_parts_without_a_sample_pool_with_those_that_have_one():
    """Rows are counted all the same; short rows, and nodes that draw no priorities, have none."""
    X = rows_of("noise", 90, 8, seed=1)
    one, other = sampled(X[:40], 1), Moments.of(X[40:])

    assert one.sample.packed == pooled(other, one).sample.packed
    assert 90 == pooled(one, other).count
    assert None is sampled(X[:, :7], 1).sample is other.sample is pooled(other, other).sample


def test_equal_moments_of_unequal_samples_are_told_apart():
    """A digest of a report covers the sample, too."""
    X = rows_of("noise", 9, 8, seed=1)

    assert sampled(X, 1).packed != sampled(X, 2).packed
    assert sampled(X, 1).packed == sampled(X, 1).packed


@pytest.mark.parametrize("width", [3, 8, 40])
def test_the_spread_of_ordinary_rows_is_the_trace(width):
    """Exactly, in whatever parts they came: the sample does not matter."""
    X = rows_of("noise", 500, width, seed=width) * 3 + 7
    parts = [sampled(part, i) for i, part in enumerate(np.array_split(X, 7))]

    np.testing.assert_allclose(trace(X), spread(pooled(*parts)), rtol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_wild_rows_do_not_say_how_far_apart_the_others_are(seed):
    """One row in 20 is a Cauchy variable times too large: moments are off by 3 at least."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2000, 16)) @ rng.standard_normal((16, 16))
    wild = X.copy()
    wild[::20] *= 30 * np.maximum(1, np.abs(rng.standard_cauchy((100, 1))))
    parts = [sampled(part, i) for i, part in enumerate(np.array_split(wild, 9))]
    whole = pooled(*parts)

    assert 3 * trace(X) < spread(replace(whole, sample=None))
    assert 1 / 1.5 < spread(whole) / trace(X) < 1.5


@pytest.mark.parametrize("seed", range(10))
def test_the_size_of_uneven_clients_is_not_the_mean_of_theirs(seed):
    """Each has its own operating point, some have much: local medians miss what is between."""
    rng = np.random.default_rng((seed, 1))
    sizes = 10 + 300 // np.arange(1, 13)
    clients = [rng.standard_normal((n, 12)) + 2 * rng.standard_normal(12) for n in sizes]
    X = np.vstack(clients)
    X[:: len(X) // 20] *= 1e3
    merged = pooled(*(sampled(client, i) for i, client in enumerate(clients)))
    wild = pooled(*(sampled(part, i) for i, part in enumerate(np.split(X, np.cumsum(sizes)[:-1]))))
    expected = half_median(np.vstack(clients))

    local = np.mean([half_median(client) for client in clients])
    assert 3 * local < expected
    for got in (merged, wild):
        assert 1 / 1.5 < spread(got) / expected < 1.5


def test_a_few_sampled_rows_do_not_overrule_the_moments():
    """31 are hardly better than chance; 32 count."""
    X = rows_of("noise", 32, 8, seed=3)
    X[0] *= 1e4

    assert trace(X[:31]) == pytest.approx(spread(sampled(X[:31], 1)))
    assert spread(sampled(X, 1)) < trace(X) / 1e4


@pytest.mark.parametrize("value", [0.0, 5.0, 0.1, -1e9])
def test_where_nothing_varies_the_spread_is_one(value):
    """Nothing is known, as for a scale; what rounding leaves is nothing."""
    parts = [sampled(np.full((n, 9), value), n) for n in (3, 7, 90)]

    assert 1.0 == spread(pooled(*parts))


@pytest.mark.parametrize("size", [1e-170, 1e-155, 1e-100, 1.0, 1e139])
def test_gamma_is_a_number_whatever_the_rows(size):
    """From next to nothing to as large as readings may be: every kernel takes it."""
    got = spread(sampled(size * rows_of("noise", 100, 8, seed=1), 1))
    for kernel in (Gaussian(), Laplace(), Matern(), Polynomial()):
        assert 0 < kernel.settled_at(kernel.auto(got)).gamma < np.inf


# -- the fleet's scaling --------------------------------------------------------------


def test_a_constant_keeps_its_size():
    """What rounding leaves of it is no part of its scale: exactly 1, not 1.97."""
    moments = Moments(400, np.array([1e12]), np.array([400 * 0.97**2]))

    assert (1.0,) == moments.scaling.scale


def fleet(rows: int = 1000, channels: Schema = RAW) -> Table:
    """A root that learns the scaling, an aggregator, and two clients."""
    table = Table(KIND, channels)
    plan = {GROUP: GroupPlan(KIND, channels, learns_scaling=True)}
    table.root("r", plans=plan, scaling_rows=rows, report_every_s=60)
    table.aggregator("a", report_every_s=60)
    for name in "cd":
        table.client(name, learns_scaling=True, report_every_s=100)
    return table


def readings(n: int, seed: int) -> np.ndarray:
    """(n, 3) rows of very different sizes; the last channel is stuck."""
    return rows_of("noise", n, 3, seed) * (100, 0.01, 0) + (5e4, 300, 4)


def test_until_the_scaling_is_known_moments_are_all_that_is_said():
    """No summary, no scores; the counts add up all the same."""
    table = fleet()
    table.step("c", Reading(readings(200, 1)))
    table.step("d", Reading(readings(300, 2)))
    table.passes(500)
    reports = [*table.reports("c"), *table.reports("a")]

    assert reports
    assert all(r.summary is None and r.moments is not None for r in reports)
    assert 500 == table.hosts["r"].model.counts.learnt
    assert table.hosts["r"].model.summary is None


def test_the_root_settles_when_enough_has_come():
    """Center and scale are those of all rows together, wherever they were read."""
    table = fleet(rows=1000)
    table.step("c", Reading(readings(999, 1)))
    table.passes(500)
    assert table.hosts["r"].ledger.schema.scaling is None
    table.step("d", Reading(readings(1, 2)))
    table.passes(500)
    scaling = table.hosts["r"].ledger.schema.scaling
    X = np.vstack([readings(999, 1), readings(1, 2)])

    np.testing.assert_allclose(scaling.offset, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(scaling.scale[:2], X.std(axis=0)[:2], rtol=1e-9)
    assert 1.0 == scaling.scale[2]


def settled() -> tuple[Table, dict]:
    """A fleet that has just settled, and the earlier incarnations of its clients."""
    table = fleet(rows=500)
    before = {name: table.hosts[name].node.current.incarnation for name in "cd"}
    for i, name in enumerate("cd"):
        table.step(name, Reading(readings(400, i)))
    table.passes(900)
    return table, before


def test_everyone_goes_over_under_a_new_name():
    """One fingerprint from root to client; new incarnations, in which summaries are learnt."""
    table, before = settled()
    fingerprint = table.hosts["r"].ledger.fingerprint

    assert Schema.parse(table.hosts["r"].model.schema).scaling is not None
    assert fingerprint == table.hosts["a"].ledger.fingerprint
    for name in "cd":
        running = table.hosts[name].node.current
        assert (fingerprint, True) == (running.fingerprint, running.learns)
        assert before[name] != running.incarnation


def test_rows_of_the_old_fingerprint_leave_the_model():
    """They stay listed, and say that their readings are counted elsewhere: each is learnt once."""
    table, _ = settled()
    table.passes(600)
    assert 800 == table.hosts["r"].model.counts.learnt
    for i, name in enumerate("cd"):
        table.step(name, Reading(readings(100, 5 + i)))
    table.passes(900)
    root = table.hosts["r"]

    assert 1000 == root.model.counts.learnt == root.model.counts.generated
    assert 1000.0 == root.model.summary.weight
    reports = [row.report for row in table.hosts["a"].ledger.rows.values()]
    assert {RAW.fingerprint, root.ledger.fingerprint} == {each.fingerprint for each in reports}
    old = [each.counts for each in reports if each.fingerprint == RAW.fingerprint]
    assert [Counts(moved=400)] * 2 == old


def test_a_settled_fleet_survives_the_roots_restart():
    """The scaling is kept before it is published: the fingerprint stays."""
    table, _ = settled()
    before = table.hosts["r"].ledger.fingerprint
    for name in ("r", "a"):
        table.restarts(name)
    table.passes(900)

    assert before == table.hosts["r"].ledger.fingerprint
    assert before == table.hosts["c"].node.current.fingerprint


@pytest.mark.parametrize(
    ("edited", "keeps"),
    [
        (RAW, True),
        (replace(RAW, half_life=60.0), False),
        (Schema(RAW.channels[:2]), True),
        (Schema((*RAW.channels, Channel("new"))), False),
    ],
    ids=["same", "half-life", "fewer channels", "more channels"],
)
def test_a_scaling_is_kept_for_the_channels_that_it_was_learnt_of(edited, keeps):
    """What is configured goes before what was kept, but for the scaling itself."""
    table, _ = settled()
    before = table.hosts["r"].ledger.schema
    plan = GroupPlan(KIND, edited, learns_scaling=True)
    root = table.moved("r", under=None, plans={GROUP: plan}, scaling_rows=10**6)

    offset, scale = before.scaling.offset[: edited.width], before.scaling.scale[: edited.width]
    kept = replace(edited, scaling=Scaling(offset, scale)) if keeps else edited
    assert kept == root.ledger.schema
    assert root.ledger.schema.canonical == root.disk["schema", GROUP] == root.model.schema


def test_a_client_that_joins_later_takes_the_scaling():
    """It never sends moments; what it has read before the join is not lost."""
    table, _ = settled()
    host = table.client("e", learns_scaling=True, report_every_s=100)
    table.step("e", Reading(readings(50, 9)))
    table.step("e", Flush())
    table.run()

    assert host.node.current.learns
    assert 850 == table.hosts["a"].ledger.counts().learnt


def test_learning_is_in_units_of_the_spread():
    """A channel of 0.01 K weighs as much as one of 100 l/s: neither hides the other."""
    table, _ = settled()
    for i, name in enumerate("cd"):
        table.step(name, Reading(readings(400, 20 + i)))
    table.passes(900)
    variances = table.hosts["r"].model.summary.explained_variance

    # Two independent channels of one size, to the precision of 800 rows, and one that is stuck.
    np.testing.assert_allclose(variances[:2], 1.0, atol=0.15)


def test_sealed_moments_count_like_live_ones():
    """A client that restarts while the fleet gathers: nothing of it is lost."""
    chosen = AggregatorSettings("a", None)
    ledger = Ledger(GROUP, RAW, KIND, chosen, created=EPOCH)
    X = readings(60, 4)
    for n in range(3):
        part = X[20 * n : 20 * n + 20]
        ledger.accept(
            report(
                "c",
                new_incarnation(n),
                ids=range(20),
                summary=None,
                moments=Moments.of(part),
                fingerprint=RAW.fingerprint,
                final=n < 2,
            ),
            Now(0, EPOCH),
        )

    assert 1 == len(ledger.rows)
    agree(X, ledger.moments())


@pytest.mark.parametrize("seed", range(30))
def test_gamma_is_no_matter_of_luck(seed):
    """Day or night, and little else: a sample may be much smaller, and the trace is used."""
    rng = np.random.default_rng(seed)
    day = (rng.uniform(size=500) < 0.4)[:, None] * rng.uniform(200, 900, 20)
    rows = day + 5 * rng.standard_normal((500, 20))
    found = Moments.of(rows, rng.integers(2**64, size=500, dtype=np.uint64))

    assert found.sample is not None
    assert float(rows.var(axis=0).sum()) == pytest.approx(spread(found), rel=1e-9)


# -- of several nodes --------------------------------------------------------------------------

LIES = (1e11, -1e11, 1e140, 0.0, 1e-300)


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("n", [5, 6, 20])
def test_no_node_of_several_decides_what_is_typical(n, lie):
    """Whatever it says of how many rows, mean and variance stay within those of the others."""
    nodes = [Moments.of(rows_of("noise", 50, 3, seed) + 7) for seed in range(n - 1)]
    liar = Moments(10**9, np.full(3, lie), np.full(3, abs(lie)))
    found = typical([*nodes, liar])

    assert found.count == sum(node.count for node in nodes) + 10**9
    for of, most in ((found.mean, 0.0), (found.variance, 1.0)):
        honest = [node.variance if most else node.mean for node in nodes]
        assert (np.min(honest, axis=0) - 1e-9 <= of).all()
        assert (of <= np.max(honest, axis=0) + most).all()


def test_a_channel_that_one_node_alone_varies_keeps_its_size():
    """Of two that vary the smaller counts: one of them may be anything."""
    still = [Moments.of(np.full((50, 1), 4.0)) for _ in range(5)]
    some, wild = (Moments.of(4 + size * rows_of("noise", 50, 1, 1)) for size in (1.0, 1e9))

    assert [0.0] == typical([*still, wild]).variance.tolist()
    np.testing.assert_allclose(some.variance, typical([*still, some, wild]).variance, rtol=0.1)


def test_a_node_draws_its_own_priorities_and_has_a_part_of_the_sample_all_the_same():
    """Else the smallest would be its own, and gamma with them."""
    nodes = [sampled(rows_of("noise", 200, 9, seed), seed) for seed in range(6)]
    liar = nodes[0].sample
    low = Reservoir(np.arange(len(liar.priorities), dtype=np.uint64), liar.points * 1e9)
    lying = Moments(nodes[0].count, nodes[0].mean, nodes[0].m2, low)

    honest = spread(typical(nodes))
    np.testing.assert_allclose(honest, spread(typical([lying, *nodes[1:]])), rtol=0.5)


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_the_node_that_moves_a_scale_tenfold_is_named(n):
    """And no other, however few they are."""
    nodes = {f"n{i}": Moments.of(rows_of("noise", 50, 3, i) + 7) for i in range(n)}

    assert [] == movers(nodes)
    assert ["z"] == movers({**nodes, "z": Moments.of(rows_of("noise", 30, 3, 99) + 1e11)})
    assert [] == movers({})
