"""Rows with gaps: what is learnt of them is what they have on average, and it does not drift."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import SAPCA, Schema, dumps, loads
from submerge.errors import ShapeError
from submerge.pca.budget import gapped_bytes, most_sums
from submerge.pca.expectation import ROUNDS, Guesses
from support import oracle
from support.strategies import cuts, rows_of


def correlated(n: int, dim: int, seed: int) -> np.ndarray:
    """Rows of three directions and noise, far from zero, each channel in a unit of its own."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, dim))
    X += 0.3 * rng.standard_normal((n, dim))
    return X * 10.0 ** rng.uniform(-2, 2, dim) + 100


def hidden(X: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    """The same rows, a share of the values missing."""
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def learnt(rows: np.ndarray, parts: list[slice] | None = None, **settings: object) -> SAPCA:
    """Learn rows with gaps, each gap with a bad guess."""
    engine = SAPCA(2, **settings)
    for part in parts or [slice(None)]:
        some = rows[part]
        engine.partial_fit(np.nan_to_num(some), gaps=Guesses(np.isnan(some)))
    return engine


@settings(max_examples=25)
@given(
    st.integers(120, 300),
    st.integers(3, 8),
    st.sampled_from([1.0, 0.99]),
    st.booleans(),
    st.integers(0, 9),
)
def test_a_block_is_filled_as_the_textbook_says(n, dim, factor, with_past, seed):
    """Expectation maximisation row by row, with a past and forgetting."""
    X = correlated(n, dim, seed)
    rows = hidden(X[n // 2 :], 0.2, seed)
    rows[0] = X[n // 2]  # each channel has a value
    engine = SAPCA(2, forgetting_factor=factor, block_size=n)
    past = oracle.Twin(0.0, np.zeros(dim), np.zeros((dim, dim)))
    if with_past:
        engine.partial_fit(X[: n // 2]).fade(0.5)  # it ends the block
        past = oracle.twin(X[: n // 2], 0.5 * oracle.decay(n // 2, factor))
    faded = factor ** len(rows)
    past = oracle.Twin(past.weight * faded, past.mean, past.scatter * faded)

    engine.partial_fit(np.nan_to_num(rows), gaps=Guesses(np.isnan(rows)))

    weights = oracle.decay(len(rows), factor)
    truth = oracle.expectation_maximisation(past, rows, weights, rounds=3 * ROUNDS)
    held = engine.whole_scatter
    scale = np.sqrt(np.diag(truth.scatter))
    assert np.isclose(truth.weight, held.weight)
    assert np.abs((truth.mean - held.mean) / scale).max() < 1e-2
    # Both end where rounds change little, and one begins at rows without gaps.
    assert np.allclose(
        truth.scatter / np.outer(scale, scale), held.scatter / np.outer(scale, scale), atol=2e-2
    )


@pytest.mark.parametrize("kind", ["at random", "outages"])
def test_variances_do_not_narrow(kind):
    """With 30 % of the values hidden, the scatter is that of the complete rows, within noise."""
    X = correlated(3000, 12, seed=1)
    rows = hidden(X, 0.3)
    if kind == "outages":
        rows = X.copy()
        for start in range(0, 3000, 100):
            rows[start : start + 100, (start // 100 + np.arange(4) * 3) % 12] = np.nan
    truth = oracle.twin(X)

    held = learnt(rows).whole_scatter

    scale = np.sqrt(np.diag(truth.scatter))
    assert np.abs((held.scatter - truth.scatter) / np.outer(scale, scale)).max() < 0.05


@settings(max_examples=40)
@given(st.integers(1, 200), st.sampled_from([1.0, 0.99]), st.booleans(), st.data())
def test_sums_agree_and_nothing_is_negative(n, factor, center, data):
    """Energies are the diagonal, their sum the energy; rows count once; cuts change nothing."""
    rows = hidden(correlated(n, 6, seed=n), 0.25, seed=n)
    how = {"forgetting_factor": factor, "center": center}

    engine = learnt(rows, data.draw(cuts(n)), **how)

    held = engine.whole_scatter
    assert np.isclose(held.weight, oracle.decay(n, factor).sum())
    assert np.allclose(held.channel_energies, held.scatter.diagonal())
    assert np.isclose(held.energy, np.trace(held.scatter))
    assert np.linalg.eigvalsh(held.scatter)[0] >= -1e-9 * held.energy
    assert learnt(rows, **how).whole_scatter.held.tobytes() == held.held.tobytes()
    assert engine.whole_scatter.held.tobytes() == held.held.tobytes()  # reading changes nothing


@pytest.mark.parametrize("call", [1, 7])
def test_rows_without_a_gap_wait_with_those_that_have_one(call):
    """One row in twenty has a gap, and only its call says so."""
    X = correlated(1200, 6, seed=8)
    rows = X.copy()
    rows[::20, 3] = np.nan
    engine = SAPCA(2)
    for start in range(0, 1200, call):
        some = rows[start : start + call]
        mask = np.isnan(some)
        engine.partial_fit(np.nan_to_num(some), gaps=Guesses(mask) if mask.any() else None)

    held, truth = engine.whole_scatter, oracle.twin(X)
    scale = np.sqrt(np.diag(truth.scatter))
    assert held.weight == 1200
    assert np.abs((held.scatter - truth.scatter) / np.outer(scale, scale)).max() < 0.01


def test_a_channel_that_a_node_never_had_keeps_the_models_variance():
    """Of ten nodes nine lack it: what they learn of it is what the fleet's model says."""
    X = correlated(4000, 8, seed=2)
    model = SAPCA(3).partial_fit(X).subspace
    rows = X.copy()
    rows[:, 5] = np.nan
    guesses = np.where(np.isnan(rows), X.mean(axis=0), rows)

    engine = SAPCA(3).partial_fit(guesses, gaps=Guesses(np.isnan(rows), model))

    truth, held = oracle.twin(X).scatter, engine.whole_scatter.scatter
    assert np.isclose(truth[5, 5], held[5, 5], rtol=0.03)
    scale = np.sqrt(np.diag(truth))
    assert np.abs((held - truth) / np.outer(scale, scale)).max() < 0.05


def test_a_channel_that_stood_still_says_nothing_of_one_that_is_missing():
    """Lamps are dark all night, says the model; then one is lit, and its neighbour is unknown."""
    rng = np.random.default_rng(5)
    X = correlated(460, 12, seed=5)
    X[:400, :6] = 100 + 1e-9 * rng.standard_normal((400, 6))
    model = SAPCA(8).partial_fit(X[:400]).subspace
    rows = X[400:].copy()
    rows[:, 8] = np.nan

    engine = SAPCA(3)
    for start in range(0, 60, 10):
        some = rows[start : start + 10]
        engine.partial_fit(np.nan_to_num(some), gaps=Guesses(np.isnan(some), model))

    known = np.delete(X[400:], 8, axis=1)
    assert engine.whole_scatter.energy < 1.5 * oracle.twin(known).energy


def test_of_channels_that_a_node_has_its_own_rows_say_more_than_a_model():
    """A model that is wrong by any factor changes nothing."""
    rows = hidden(correlated(400, 6, seed=6), 0.2)
    wrong = SAPCA(2).partial_fit(1e3 * correlated(50, 6, seed=7)).subspace

    engine = SAPCA(2).partial_fit(np.nan_to_num(rows), gaps=Guesses(np.isnan(rows), wrong))

    assert engine.whole_scatter.held.tobytes() == learnt(rows).whole_scatter.held.tobytes()


def test_a_range_that_was_never_seen_is_not_extrapolated():
    """A night of small readings, then a day of large ones: the night's regression says nothing."""
    night, day = correlated(500, 10, seed=3), correlated(500, 10, seed=4)
    X = np.concatenate([100 + (night - 100) * 1e-3, day])
    rows = hidden(X, 0.3)

    held = learnt(rows, [slice(0, 500), slice(500, None)]).whole_scatter

    assert held.energy < 1.5 * oracle.twin(X).energy


@pytest.mark.parametrize("prior", [False, True])
def test_an_engine_with_rows_that_wait_is_restored_bit_for_bit(prior):
    """Which of their values are guesses is saved, and the model that guessed."""
    rows = hidden(correlated(150, 6, seed=5), 0.3)
    rows[:70, 4] = np.nan
    model = SAPCA(2).partial_fit(correlated(50, 6, seed=6)).subspace if prior else None
    engine = SAPCA(2)
    late = np.isnan(rows[:60])
    engine.partial_fit(np.nan_to_num(rows[:60]), gaps=Guesses(late, model)).fade(0.9)  # a sum each
    engine.partial_fit(np.nan_to_num(rows[:70]), gaps=Guesses(np.isnan(rows[:70]), model))

    again = loads(dumps(engine))

    for each in (engine, again):
        each.partial_fit(np.nan_to_num(rows[70:]), gaps=Guesses(np.isnan(rows[70:]), model))
    assert dumps(engine) == dumps(again)
    assert engine.whole_scatter.held.tobytes() == again.whole_scatter.held.tobytes()


def test_gaps_of_other_rows_are_refused():
    """Before anything is learnt."""
    engine = SAPCA(2)
    with pytest.raises(ShapeError, match="gaps"):
        engine.partial_fit(np.ones((5, 4)), gaps=Guesses(np.zeros((4, 4), dtype=bool)))
    assert engine.n_samples_seen == 0


def test_without_the_scatter_guesses_are_learnt_as_they_are():
    """Directions have no place for what a guess lacks."""
    X = rows_of("noise", 200, 12, seed=7)
    mask = np.isnan(hidden(X, 0.2))

    with_gaps = SAPCA(2, exact="never").partial_fit(X, gaps=Guesses(mask))

    assert dumps(SAPCA(2, exact="never").partial_fit(X)) == dumps(with_gaps)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [12, 59, pytest.param(150, marks=pytest.mark.soak)])
def test_memory_stays_below_the_contract(dim):
    """By tracemalloc, with a third of all values missing."""
    rows = hidden(rows_of("decaying", 2500, dim, seed=0), 0.33)
    guesses, mask = np.nan_to_num(rows), np.isnan(rows)
    engine = SAPCA(2, schema=Schema.anonymous(dim))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        engine.partial_fit(guesses[:500])  # without gaps, in a block of its own
        for start in range(500, 2500, 250):
            part = slice(start, start + 250)
            engine.partial_fit(guesses[part], gaps=Guesses(mask[part]))
        _ = engine.whole_scatter
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()

    assert engine.most_bytes >= gapped_bytes(dim, engine.patience)
    assert peak < engine.most_bytes


def test_what_never_came_stays_absent_when_sums_are_too_many():
    """Ten outages, and a channel that comes at last: its mean is that of its own values."""
    X = correlated(1100, 6, seed=9)
    rows = X.copy()
    rows[:1000, 5] = np.nan
    for i in range(10):
        rows[100 * i : 100 * i + 50, [i % 5, (i + 1 + i // 5) % 5]] = np.nan
    parts = [slice(start, start + 100) for start in range(0, 1100, 100)]
    engine = learnt(rows, parts)
    engine.fade(0.5)  # it ends the block
    lacking = engine._memory.lacking

    assert len(lacking) <= most_sums(6) + 1
    own = X[1000:, 5]
    held = engine.whole_scatter
    assert abs(held.mean[5] - own.mean()) < own.std()
    assert held.scatter[5, 5] / held.weight > 0.3 * own.var()


@pytest.mark.parametrize(("factor", "times"), [(0.9, 8000), (1e-10, 40)])
def test_sums_that_have_faded_away_are_forgotten(factor, times):
    """An outage long ago: what is saved is read again."""
    rows = correlated(300, 6, seed=10)
    rows[:50, 2] = np.nan
    engine = learnt(rows, [slice(0, 50), slice(50, 300)])
    for _ in range(times):
        engine.fade(factor)

    assert dumps(engine) == dumps(loads(dumps(engine)))
