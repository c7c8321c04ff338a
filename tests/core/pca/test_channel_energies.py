"""Channel energies: the exact energy of each channel, from engines of every kind and merges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import SAPCA, MergeTree, Schema, Subspace, dumps, loads, merge
from submerge.pca.merging import merge_whole
from support import checks, oracle
from support.strategies import KINDS, cuts, rows_of, streams


@pytest.mark.parametrize("exact", ["auto", "never"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_knows_the_energy_of_each_channel(kind, dtype, exact):
    """With rows that wait, under forgetting, and whatever was truncated: by the laws."""
    X = rows_of(kind, 130, 12, seed=1)
    engine = SAPCA(2, oversample=1, block_size=9, dtype=dtype, exact=exact, forgetting_factor=0.97)

    seen = engine.partial_fit(X).subspace

    truth = oracle.twin(X, oracle.decay(130, 0.97))
    assert seen.channel_energies is not None
    checks.never_overstates(seen, truth, blocks=130)


@pytest.mark.parametrize("exact", ["auto", "never"])
def test_a_mean_that_jumps_costs_a_channel_no_digits(exact):
    """One channel of twelve moves by 1e6 between blocks and is then almost forgotten."""
    X = rows_of("noise", 200, 12, seed=2)
    X[100:, 3] += 1e6
    engine = SAPCA(2, block_size=10, exact=exact, forgetting_factor=0.7).partial_fit(X)

    truth = np.diag(oracle.twin(X, oracle.decay(200, 0.7)).scatter)
    got = engine.subspace.channel_energies
    others = np.arange(12) != 3
    np.testing.assert_allclose(got[others], truth[others], rtol=1e-12)
    # 1e6 * EPS of the mean, beside a deviation of 1.
    np.testing.assert_allclose(got[3], truth[3], rtol=1e-6)


def test_a_jump_away_from_a_past_that_is_forgotten_costs_no_digits():
    """What little is left of a difference of two large numbers is computed from moved rows."""
    X = rows_of("noise", 40, 12, seed=2)
    engine = SAPCA(2, block_size=10, exact="never").partial_fit(X[:20]).fade(1e-25)

    engine.partial_fit(X[20:] + 1e6 * np.eye(12)[3])

    energies, truth = engine.subspace.channel_energies, oracle.twin(X[20:])
    np.testing.assert_allclose(energies[3], truth.scatter[3, 3], rtol=1e-8)


@given(streams(), st.sampled_from(["fleet", "own"]), st.data())
def test_energies_add_up_in_merges_and_trees(X, center, data):
    """By `merge` at any rank, `merge_whole` and a tree, each beside its slow twin."""
    schema = Schema.anonymous(X.shape[1])
    blocks = [X[s] for s in data.draw(cuts(len(X)))]
    rank = data.draw(st.integers(1, X.shape[1]))
    parts = [Subspace.of(block, schema, rank=rank) for block in blocks]
    tree = MergeTree(rank=rank, center=center)
    for i, part in enumerate(parts):
        tree[str(i)] = part

    pooled = oracle.pooled_within(blocks) if center == "own" else oracle.twin(X).scatter
    truth = oracle.twin(X)
    slack = checks.tolerance(truth, blocks=len(blocks)) + 1e-12 * truth.energy
    for found in (
        merge(*parts, rank=rank, center=center),
        merge_whole(*parts, center=center),
        tree.root(),
        tree.root_whole(),
    ):
        energies = found.channel_energies
        assert np.abs(energies - np.diag(pooled)).max() <= slack
        assert np.isclose(energies.sum(), found.energy, rtol=1e-11, atol=slack)


def test_they_are_unknown_where_any_part_lacks_them():
    """A node of an earlier version does not send them; the other laws hold on."""
    schema, X = Schema.anonymous(6), rows_of("decaying", 60, 6, seed=3)
    new = Subspace.of(X[:30], schema, rank=3)
    old = replace(Subspace.of(X[30:], schema, rank=3), channel_energies=None)

    for found in (merge(new, old, rank=3), merge_whole(new, old), merge_whole(old, new)):
        assert found.channel_energies is None
        assert found.faded(0.5).channel_energies is None
        assert np.isclose(found.energy, oracle.twin(X).energy)
    assert merge(new, old, rank=3).truncated(1).channel_energies is None


def test_truncating_keeps_them_and_fading_scales_them():
    """They are of all data, kept and discarded."""
    part = Subspace.of(rows_of("decaying", 60, 6, seed=3), Schema.anonymous(6), rank=5)

    assert part.truncated(2).channel_energies is part.channel_energies
    np.testing.assert_array_equal(part.channel_energies * 0.25, part.faded(0.25).channel_energies)


@pytest.mark.parametrize("exact", ["auto", "never"])
def test_an_engine_goes_on_from_a_past_with_and_without_them(exact):
    """`resume` takes them over; after a past without them the engine has none."""
    schema, X = Schema.anonymous(6), rows_of("decaying", 90, 6, seed=4)
    past = Subspace.of(X[:40], schema, rank=6)

    def after(summary: Subspace) -> Subspace:
        engine = SAPCA(2, oversample=4, exact=exact, schema=schema)
        return engine.resume(summary, n_samples_seen=40).partial_fit(X[40:]).fade(0.5).subspace

    truth = 0.5 * np.diag(oracle.twin(X).scatter)
    np.testing.assert_allclose(after(past).channel_energies, truth, rtol=1e-11)
    assert after(replace(past, channel_energies=None)).channel_energies is None


@pytest.mark.parametrize("exact", ["auto", "never"])
def test_a_saved_engine_keeps_them(exact):
    """To the last bit."""
    engine = SAPCA(2, exact=exact).partial_fit(rows_of("decaying", 90, 60, seed=4))

    restored = loads(dumps(engine)).subspace
    np.testing.assert_array_equal(
        engine.subspace.channel_energies, restored.channel_energies, strict=True
    )
