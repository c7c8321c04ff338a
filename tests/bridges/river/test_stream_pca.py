"""StreamPCA: the engine's projections, row by row, under river's names."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

pytest.importorskip("river")
pytest.importorskip("sklearn")  # `support.pca` imports it

from river import compose, linear_model, preprocessing

from submerge import SAPCA, UsageError, merge
from submerge.errors import NothingLearnt
from submerge_bridges.river import StreamPCA
from support import checks, oracle
from support.pca import DIM, decaying


def named(rows: np.ndarray) -> list[dict[str, float]]:
    """Rows as river has them."""
    return [{f"c{i:02}": value for i, value in enumerate(row)} for row in rows.tolist()]


def of_two_causes(n: int) -> np.ndarray:
    """Rows about 5, which vary in two directions and hardly beside them."""
    rng = np.random.default_rng(0)
    causes, pattern = rng.normal(size=(n, 2)), rng.normal(size=(2, DIM))
    return 5 + causes @ pattern + 0.01 * rng.normal(size=(n, DIM))


def learnt(model: StreamPCA, rows: np.ndarray) -> StreamPCA:
    """The model, after these rows."""
    for row in named(rows):
        model.learn_one(row)
    return model


def components(model: StreamPCA, rows: np.ndarray) -> np.ndarray:
    """What the model makes of rows, in the order of components."""
    made = [model.transform_one(row) for row in named(rows)]
    assert all([*each] == [f"pca{i}" for i in range(model.n_components)] for each in made)
    return np.array([[*each.values()] for each in made])


@pytest.mark.parametrize("forgetting_factor", [1.0, 0.98])
def test_components_are_the_engines_on_the_same_rows(forgetting_factor):
    """Those of whole blocks; the engine gets the same blocks."""
    rows, new = decaying(250), decaying(20, seed=1)
    engine = SAPCA(3, forgetting_factor=forgetting_factor)
    for start, stop in ((0, 64), *((at, at + 32) for at in range(64, 224, 32))):
        engine.partial_fit(rows[start:stop])

    model = learnt(StreamPCA(3, forgetting_factor), rows)

    np.testing.assert_allclose(engine.transform(new), components(model, new), rtol=1e-9, atol=1e-12)


def test_what_is_learnt_keeps_every_law_of_subspaces():
    """`support.checks`, against the eigenvectors of all rows of whole blocks."""
    rows = decaying(256)

    subspace = learnt(StreamPCA(2), rows).subspace

    checks.never_overstates(subspace, oracle.twin(rows), blocks=7)


def test_streams_of_the_same_channels_merge():
    """Two halves are the whole: weight, mean and energy exactly, to rounding."""
    rows = decaying(256)
    north, south = (learnt(StreamPCA(2), part).subspace for part in (rows[:128], rows[128:]))

    both = merge(north, south, rank=2)

    assert 256 == both.weight
    np.testing.assert_allclose(rows.mean(axis=0), both.mean, rtol=1e-9, atol=1e-12)
    checks.never_overstates(both, oracle.twin(rows), blocks=8)


def test_before_the_grace_period_ends_all_components_are_zero():
    """A model behind it always finds the same features."""
    model = learnt(StreamPCA(2, grace_period=10), decaying(9))

    assert {"pca0": 0.0, "pca1": 0.0} == model.transform_one(named(decaying(1))[0])
    assert {"pca0": 0.0, "pca1": 0.0} == model.transform_one({})
    with pytest.raises(NothingLearnt, match="at least grace_period=10 rows"):
        _ = model.subspace


def test_more_components_than_channels_are_zero():
    """There are as many as were asked for."""
    model = learnt(StreamPCA(DIM + 2), decaying(64))

    assert not components(model, decaying(5, seed=1))[:, DIM:].any()


def test_a_gap_is_filled_with_its_most_likely_value():
    """A row of which one value is gone has nearly the components of the whole row."""
    rows = of_two_causes(300)
    model = learnt(StreamPCA(2), rows)
    (row,) = named(rows[:1])
    holed = {name: value for name, value in row.items() if name != "c03"}
    whole, filled, zero = (
        np.array([*model.transform_one(each).values()]) for each in (row, holed, {**row, "c03": 0})
    )

    assert np.linalg.norm(whole - filled) < 0.1 < np.linalg.norm(whole - zero)


def test_rows_with_gaps_are_learnt_and_rows_without_half_are_not():
    """The weight counts rows; one with less than half of its channels is none."""
    rows = decaying(96)
    rows[10, 3] = np.nan
    rows[20, : DIM // 2 + 1] = np.nan
    rows[70, 1] = np.inf

    assert 94 == learnt(StreamPCA(2), rows).subspace.weight
    assert np.isfinite(components(learnt(StreamPCA(2), rows), rows)).all()


def sorted_last(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """The rows, and of the last 20 only those with the least and the most of c00."""
    last = sorted(rows[-20:], key=lambda row: row["c00"])
    return [*rows[:-20], last[0], last[-1]]


def test_it_stands_between_a_scaler_and_a_regression():
    """In a pipeline of river, and pickled on the way."""
    model = compose.Pipeline(
        preprocessing.StandardScaler(), StreamPCA(2), linear_model.LinearRegression()
    )
    *first, low, high = sorted_last(named(of_two_causes(420)))
    for at, row in enumerate(first):
        model.learn_one(row, row["c00"])
        if at == 100:
            model = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own bytes

    assert model.predict_one(low) < model.predict_one(high)


@pytest.mark.parametrize(
    "parameters", [{"n_components": 0}, {"forgetting_factor": 0.0}, {"grace_period": 1}]
)
def test_parameters_are_checked_when_they_are_given(parameters):
    """River's estimators have no later moment for that."""
    with pytest.raises(UsageError, match=next(iter(parameters))):
        StreamPCA(**parameters)
