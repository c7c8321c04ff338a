"""KernelSummary: the two memories of a kernel group, against what each is by itself."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import SAPCA, Scaling, Schema, Subspace, contributions, hotelling, spe
from submerge.features import Gaussian, Identity, Polynomial, RandomFourier, TensorSketch
from submerge.protocol.summaries import KernelSummary, Subspaces
from support import checks, oracle

RING = RandomFourier(Gaussian(0.5), features=64)
SCHEMA = Schema(8, Scaling((1.0,) * 8, (2.0,) * 8), features=RING)
SUMMARIES = Subspaces(4, oversample=3)


def curved(n: int, seed: int = 0) -> np.ndarray:
    """(n, 8) scaled readings on a noisy closed curve."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0, 2 * np.pi, n)
    waves = np.stack([np.cos(turn), np.sin(turn), np.cos(2 * turn), np.sin(2 * turn)], axis=1)
    mixed = waves @ np.random.default_rng(99).standard_normal((4, 8)) * 0.5
    return mixed + 0.02 * rng.standard_normal((n, 8))


def summary(rows: np.ndarray, schema: Schema = SCHEMA) -> KernelSummary:
    learner = SUMMARIES.learner(schema)
    learner.learn(rows, schema.features.lift(rows))
    return learner.summary()


@pytest.mark.parametrize("cut", [1, 63, 64, 100])
def test_both_memories_are_those_of_the_rows_and_of_their_features(cut):
    """However rows came in, weight, mean and energy of both are exact, under one fingerprint."""
    rows = curved(300)
    learner = SUMMARIES.learner(SCHEMA)
    for start in range(0, 300, cut):
        block = rows[start : start + cut]
        learner.learn(block, RING.lift(block))
    found = learner.summary()

    for part, truth in ((found.features, RING.lift(rows)), (found.linear, rows)):
        twin = oracle.twin(truth)
        assert SCHEMA.fingerprint == part.schema
        assert 300.0 == part.weight == found.weight
        np.testing.assert_allclose(part.mean, twin.mean, atol=1e-6)
        np.testing.assert_allclose(part.energy, twin.energy, rtol=1e-5)
        checks.orthonormal(part.basis)
    assert (7, 7) == (found.features.rank, found.linear.rank)


@given(st.lists(st.integers(1, 90), min_size=2, max_size=6), st.integers(0, 99))
def test_weight_mean_and_energy_survive_any_merge(sizes, seed):
    """Merged in pairs, at once or in a tree, both parts say what the pooled rows say."""
    blocks = [curved(n, seed + i) for i, n in enumerate(sizes)]
    parts = [summary(block) for block in blocks]
    tree = SUMMARIES.tree(SCHEMA)
    for i, part in enumerate(parts):
        tree[f"node-{i}"] = part
    merged = functools.partial(SUMMARIES.merged, SCHEMA, own=False)

    rows = np.vstack(blocks)
    for found in (
        tree.root(),
        merged(parts),
        functools.reduce(lambda a, b: merged([a, b]), parts),
    ):
        for part, truth in ((found.features, RING.lift(rows)), (found.linear, rows)):
            twin = oracle.twin(truth)
            np.testing.assert_allclose(part.weight, twin.weight, rtol=1e-12)
            np.testing.assert_allclose(part.mean, twin.mean, atol=1e-5)
            np.testing.assert_allclose(part.energy, twin.energy, rtol=1e-5, atol=1e-9)


def test_a_child_that_leaves_takes_both_of_its_memories():
    """The tree without it is the tree that never had it."""
    with_both, without = SUMMARIES.tree(SCHEMA), SUMMARIES.tree(SCHEMA)
    for tree in (with_both, without):
        tree["a"] = summary(curved(50))
    with_both["b"] = summary(curved(50, 1))
    del with_both["b"]

    assert ("b" in with_both, len(with_both)) == (False, 1)
    assert SUMMARIES.packed(without.root()) == SUMMARIES.packed(with_both.root())


def test_fading_fades_both():
    """Half of all that was seen, whether the learner forgets or its summary does."""
    learner = SUMMARIES.learner(SCHEMA)
    learner.learn(curved(100), RING.lift(curved(100)))
    whole = learner.summary()
    learner.fade(0.5)
    found, faded = learner.summary(), SUMMARIES.faded(whole, 0.5)

    for part in (found.features, found.linear, faded.features, faded.linear):
        assert 50.0 == part.weight
    np.testing.assert_allclose(found.features.energy, faded.features.energy, rtol=1e-6)
    assert SUMMARIES.faded(whole, 1) is whole


def test_scores_are_those_of_features_and_of_readings():
    """SPE and T2 in feature space, and SPE of the rows, each as the slow functions have it."""
    known, rows = summary(curved(400)), curved(20, seed=5)
    of, t2, linear, distance, *_ = SUMMARIES.scorer(known, 8).statistics(rows, RING.lift(rows))

    shown = known.features.truncated(4)
    np.testing.assert_allclose(of, spe(RING.lift(rows), shown), atol=1e-9)
    np.testing.assert_allclose(t2, hotelling(RING.lift(rows), shown), rtol=1e-6)
    np.testing.assert_allclose(linear, spe(rows, known.linear.truncated(4)), atol=1e-9)
    assert distance is None


def test_only_the_features_see_what_is_inside_a_ring():
    """Its middle lies in every direction that the ring lies in."""
    turn = np.random.default_rng(0).uniform(0, 2 * np.pi, 800)
    plane = np.linalg.qr(np.random.default_rng(1).standard_normal((8, 2)))[0]
    noise = 0.05 * np.random.default_rng(2).standard_normal((800, 8))
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=1) @ plane.T + noise
    schema = Schema(8, features=RandomFourier(Gaussian(1.0), 256))
    summaries = Subspaces(8, linear_rank=2)
    learner = summaries.learner(schema)
    learner.learn(ring[:600], schema.lift(ring[:600]))
    scorer = summaries.scorer(learner.summary(), 8)
    usual, middle = (
        scorer.statistics(rows, schema.lift(rows)) for rows in (ring[600:], np.zeros((1, 8)))
    )

    assert middle.spe[0] > 3 * usual.spe.max()
    assert middle.linear[0] < usual.linear.min()


def test_contributions_are_the_gradient_of_spe():
    """By finite differences, in channels."""
    known, rows = summary(curved(400)), curved(6, seed=8) + 0.3
    shown = known.features.truncated(4)
    found = contributions(rows, shown, RING)

    step = 1e-3
    for i in range(len(rows)):
        moved = rows[i] + step * np.vstack([np.eye(8), -np.eye(8)])
        ahead, behind = np.split(spe(RING.lift(moved), shown), 2)
        gradient = (ahead - behind) / (2 * step)
        np.testing.assert_allclose(found[i], gradient**2 / (gradient @ gradient), atol=2e-3)


def test_gaps_are_filled_by_the_readings_own_subspace():
    """A feature of a row with a gap does not exist; the row's other channels do."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 8))
    gap = rows[:1].copy()
    gap[0, 3] = np.nan

    filled = SUMMARIES.filled(gap, summary(rows))

    np.testing.assert_allclose(filled, rows[:1], atol=1e-3)


def test_a_summary_fits_its_own_kind_of_group_only():
    """A kernel group takes no single subspace, a linear one no pair, and neither another's."""
    flat = Schema(8)
    both, one = summary(curved(30)), Subspace.of(curved(30), flat, rank=3)
    relabeled = replace(one, schema=SCHEMA.fingerprint)

    assert SUMMARIES.fits(SCHEMA, both)
    assert not SUMMARIES.fits(SCHEMA, relabeled)
    assert not SUMMARIES.fits(flat, both)
    assert not SUMMARIES.fits(SCHEMA, KernelSummary(both.linear, both.linear))
    assert not SUMMARIES.fits(
        SCHEMA, KernelSummary(both.features, replace(both.linear, schema="0" * 64))
    )
    assert SUMMARIES.fits(flat, one)


def test_the_readings_show_at_most_half_of_their_channels():
    """A subspace of every direction finds nothing odd; who wants more says so."""
    wide = Subspaces(20, oversample=0)
    reported = Subspaces(20, oversample=0, linear_rank=6)

    for summaries, rank in ((wide, 4), (reported, 6)):
        learner = summaries.learner(SCHEMA)
        learner.learn(curved(200), RING.lift(curved(200)))
        assert rank == learner.summary().linear.rank


@pytest.mark.parametrize(
    "features", [Identity(), RING, TensorSketch(Polynomial(2, 0.5, 1.0), 64)], ids=str
)
def test_a_schema_with_a_kernel_survives_its_text(features):
    """What travels is the whole map: the other end builds the same one."""
    schema = Schema(8, features=features)
    found = Schema.parse(schema.canonical)

    assert (schema, schema.fingerprint) == (found, found.fingerprint)
    np.testing.assert_array_equal(schema.lift(curved(3)), found.lift(curved(3)))


def test_sapca_learns_a_schemas_features():
    """The engine alone: `schema.lift`ed rows, under the schema's fingerprint."""
    engine = SAPCA(4, schema=SCHEMA).partial_fit(SCHEMA.lift(curved(100)))

    assert (64, SCHEMA.fingerprint) == (engine.subspace.dim, engine.subspace.schema)
