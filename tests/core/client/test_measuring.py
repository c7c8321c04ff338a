"""What a client measures before the schema is settled: rescaled, it is what it would learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.client.measurement import MeasuringMemory, successors_report
from submerge.features import RandomFourier
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.messages import Counts
from submerge.protocol.summaries import Subspaces
from submerge.schema import Scaling, Schema
from submerge.stats.moments import Moments
from support.nodes import report
from support.strategies import rows_of

NARROW, WIDE = Subspaces(3, oversample=2), Subspaces(1, oversample=0, memory=40_000)
SIZES = np.array([1e9, 1e-6, 1.0, 300.0])
OPEN = Schema(4)


def raw(n: int, seed: int = 0) -> np.ndarray:
    """(n, 4) rows of very different sizes, far from zero."""
    return (rows_of("noise", n, 4, seed) + 50.0) * SIZES


def settled(rows: np.ndarray, schema: Schema = OPEN) -> Schema:
    """The schema with the scaling that follows from rows."""
    return replace(schema, scaling=Moments.of(rows).scaling)


def moved(rows, schema, into, summaries, *, cuts=(0,), fades=()):
    """The successor's report of rows that were measured under `schema`."""
    memory = MeasuringMemory(schema, summaries)
    for i, part in enumerate(np.split(rows, cuts[1:])):
        if len(part):
            memory.learn(part)
        if i < len(fades):
            memory.fade(fades[i])
    last = report(
        fingerprint=schema.fingerprint,
        summary=None,
        moments=Moments.of(rows),
        counts=Counts(len(rows), 2, 1),
    )
    return successors_report(last, memory.kept(1.0), into, summaries)


def learnt(rows, schema, summaries):
    """What a learner has of the same rows under the settled schema."""
    learner = summaries.learner(schema)
    scaled = schema.scaled(rows)
    learner.learn(scaled, scaled if schema.linear else schema.features.lift(scaled))
    return learner.summary()


def correlations(whole: WholeScatter) -> np.ndarray:
    """A scatter in units of each channel's own size."""
    size = np.sqrt(np.diag(whole.scatter))
    return whole.scatter / size / size[:, None]


@given(st.integers(2, 60), st.integers(0, 5), st.sampled_from(["fleet", "own", "none"]))
def test_a_scatter_rescales_to_what_would_have_been_learnt(n, seed, center):
    """Whatever the units and offsets: to the precision of the readings themselves."""
    rows, schema = raw(n, seed), replace(OPEN, center=center)
    into = settled(rows, schema)
    got = moved(rows, schema, into, NARROW, cuts=(0, 1, n // 2))
    expected = learnt(rows, into, NARROW)

    assert (n, into.fingerprint) == (got.counts.learnt, got.summary.schema)
    assert n == got.summary.weight
    np.testing.assert_allclose(expected.scatter, got.summary.scatter, atol=2e-6 * n)
    np.testing.assert_allclose(expected.mean, got.summary.mean, atol=1e-9)
    np.testing.assert_allclose(
        expected.channel_energies, got.summary.channel_energies, rtol=1e-9, atol=1e-9
    )


@given(st.integers(0, 20), st.floats(0.1, 1e6))
def test_a_scaling_changes_no_correlation(seed, scale):
    """The scatter is kept about the mean: offsets cost no digits."""
    rows = raw(40, seed)
    whole = WholeScatter.of_rows(rows, OPEN.fingerprint)
    scaled = whole.scaled(np.full(4, 3.0), scale * SIZES)

    np.testing.assert_allclose(correlations(whole), correlations(scaled), atol=1e-12)
    assert scaled.energy == pytest.approx(scaled.channel_energies.sum())


def test_rows_are_kept_where_a_scatter_is_too_large():
    """They are learnt as if they came now."""
    rows = raw(30)
    into = settled(rows)
    got, expected = moved(rows, OPEN, into, WIDE), learnt(rows, into, WIDE)

    assert Counts(30, 2, 1) == got.counts
    np.testing.assert_allclose(np.abs(expected.basis), np.abs(got.summary.basis), atol=1e-6)
    assert expected.energy == pytest.approx(got.summary.energy, rel=1e-12)


def test_of_too_many_rows_some_are_left_from_all_of_the_time():
    """Within the memory; the others are counted as not learnt, and none is forgotten."""
    rows = np.arange(4000.0)[:, None] + np.arange(4)
    memory = MeasuringMemory(OPEN, WIDE)
    for part in np.split(rows, [1, 2, 700, 3000]):
        memory.learn(part)
    kept = memory.kept(1.0).rows
    got = moved(rows, OPEN, settled(rows), WIDE, cuts=(0, 5, 1000))

    assert kept.nbytes <= WIDE.memory / 2
    assert len({*np.diff(kept[:, 0])}) == 1
    assert (0, True) == (kept[0, 0], kept[-1, 0] > 3900)
    assert got.counts.learnt == len(kept) > 200
    assert 4000 + 3 == got.counts.generated
    assert 4000 - len(kept) + 2 == got.counts.withheld


@pytest.mark.parametrize("summaries", [NARROW, WIDE], ids=["scatter", "rows"])
def test_what_is_measured_fades_as_what_is_learnt(summaries):
    """Earlier rows weigh less."""
    rows = raw(24)
    into = settled(rows)
    got = moved(rows, OPEN, into, summaries, cuts=(0, 8, 16), fades=(0.5, 0.25, 0.5))
    learner = summaries.learner(into)
    for part, factor in zip(np.split(rows, 3), (0.5, 0.25, 0.5), strict=True):
        learner.learn(into.scaled(part), into.scaled(part))
        learner.fade(factor)
    expected = learner.summary()

    assert 8 * (0.0625 + 0.125 + 0.5) == pytest.approx(got.summary.weight)
    assert expected.weight == pytest.approx(got.summary.weight)
    assert expected.energy == pytest.approx(got.summary.energy, rel=1e-6)


def test_rows_are_lifted_once_gamma_is_settled():
    """They are scaled already, and are not scaled again."""
    schema = Schema(4, Scaling((5.0,) * 4, (2.0,) * 4), RandomFourier(features=32))
    into = replace(schema, features=schema.features.settled_at(0.1))
    rows = schema.scaled(rows_of("noise", 300, 4, 1))
    summaries = Subspaces(3, oversample=2)
    got = moved(rows, schema, into, summaries)
    learner = summaries.learner(into)
    learner.learn(rows, into.features.lift(rows))
    expected = learner.summary()

    assert 300 == got.counts.learnt
    for ours, theirs in zip(expected.pieces, got.summary.pieces, strict=True):
        assert ours.energy == pytest.approx(theirs.energy, rel=1e-5)
        np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-6)


def test_readings_of_another_schema_are_not_moved():
    """Other channels, or another scaling that was configured."""
    rows = raw(10)
    scaled = replace(OPEN, scaling=Scaling((0.0,) * 4, (1.0,) * 4))

    assert moved(rows[:, :3], Schema(3), settled(rows), NARROW) is None
    assert moved(rows, scaled, settled(rows), NARROW) is None


@pytest.mark.parametrize("summaries", [NARROW, WIDE], ids=["scatter", "rows"])
def test_readings_too_large_to_learn_only_served_to_settle(summaries):
    """The fleet's scaling is of ordinary rows: one beyond any bound is not learnt."""
    rows = raw(20)
    into = settled(rows)
    rows[3, 1] = 1e60
    got = moved(rows, OPEN, into, summaries)

    assert (0 if summaries is NARROW else 19) == got.counts.learnt
    assert 23 == got.counts.generated
