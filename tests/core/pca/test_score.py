"""Scores and gaps: against their slow twins and their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import SAPCA, Schema, ShapeError, Subspace, contributions, hotelling, merge, spe
from submerge.pca.factor import Factors, Precision
from submerge.pca.missing import fill
from support import checks, oracle
from support.strategies import rows_of, streams


@given(streams(), st.integers(1, 6), st.integers(0, 99))
def test_spe_is_the_distance_by_least_squares(X, rank, seed):
    """Against lstsq, row by row; never negative."""
    model = Subspace.of(X, Schema.anonymous(X.shape[1]), rank=rank)
    rows = model.mean + rows_of("noise", 5, X.shape[1], seed=seed)

    found = spe(rows, model)

    scale = 1e-9 * (1 + float(np.abs(model.mean).max()) * 1e-4)
    np.testing.assert_allclose(found, oracle.spe(rows, model), atol=scale)
    assert (found >= 0).all()


@given(streams(max_dim=8), st.integers(1, 8))
def test_t2_and_spe_are_whole_together(X, rank):
    """With unit variances, T2 and SPE share out the squared distance to the mean."""
    model = Subspace.of(X, Schema.anonymous(X.shape[1]), rank=rank)
    white = Subspace(
        model.schema,
        model.basis,
        np.full(model.rank, model.weight**0.5),
        model.mean,
        model.weight,
        model.energy,
        0.0,
    )
    rows = model.mean + rows_of("noise", 4, X.shape[1], seed=1)

    total = hotelling(rows, white) + spe(rows, white)

    np.testing.assert_allclose(total, ((rows - model.mean) ** 2).sum(axis=1), rtol=1e-8)


def test_t2_counts_in_variances():
    """A row n standard deviations out along a direction has T2 = n^2."""
    model = SAPCA(3).partial_fit(rows_of("decaying", 400, 6, seed=0)).shown
    for i, deviation in enumerate(model.explained_variance**0.5):
        row = model.mean + 4 * deviation * model.basis[:, i]
        np.testing.assert_allclose(hotelling(row[None], model), [16.0])


def test_t2_leaves_out_directions_of_nothing():
    """A direction with next to no variance would turn rounding into alarms."""
    row = np.array([[0.0, 1.0, 0.0, 0.0]])
    for share, counted in [(3.9 * checks.EPS, 0.0), (4.1 * checks.EPS, 1.0), (1e-12, 1.0)]:
        sigma = np.array([1.0, share**0.5])
        model = Subspace("s", np.eye(4)[:, :2], sigma, np.zeros(4), 1.0, 1.0, 0.0)

        np.testing.assert_allclose(hotelling(row, model) * share, [counted])


def test_contributions_name_the_channel():
    """Shares of SPE: they sum to one, and the channel that moved leads."""
    model = SAPCA(2).partial_fit(rows_of("decaying", 300, 10, seed=0)).shown
    row = model.mean.copy()
    row[7] += 50

    shares = contributions(row[None], model)

    assert 7 == shares.argmax()
    np.testing.assert_allclose(shares.sum(axis=1), [1.0])
    assert not contributions(model.mean[None], model).any()
    row[3] = np.nan
    assert np.isnan(contributions(row[None], model)).all()


@given(
    st.sampled_from(["noise", "decaying"]),
    st.integers(20, 60),
    st.integers(2, 10),
    st.integers(1, 9),
    st.integers(0, 999),
)
def test_gaps_are_filled_by_the_conditional_mean(kind, n, dim, rank, seed):
    """Against the textbook's formula with the model's own covariance, noise included."""
    X = rows_of(kind, n, dim, seed=seed)
    model = Subspace.of(X, Schema.anonymous(dim), rank=min(rank, dim - 1))
    rng = np.random.default_rng(seed)
    row = model.mean + rng.standard_normal(dim) * model.explained_variance[0] ** 0.5
    row[rng.random(dim) < 0.4] = np.nan
    noise = model.frobenius_bound / (model.weight * max(1, model.dim - model.rank))
    covariance = oracle.Twin(model.weight, model.mean, oracle.scatter_of(model))

    filled, count = fill(row[None], model)

    assert np.isnan(row).sum() == count
    # What is far from its mean counts as 8 standard deviations.
    C = covariance.scatter / covariance.weight + noise * np.eye(dim)
    far = 8 * np.sqrt(C.diagonal())
    near = model.mean + np.clip(row - model.mean, -far, far)
    expected = np.where(np.isnan(row), oracle.conditional_mean(near, covariance, noise), row)
    np.testing.assert_allclose(
        filled[0] - model.mean,
        expected - model.mean,
        atol=1e-6 * model.explained_variance[0] ** 0.5 + 1e-9 * np.abs(model.mean).max(),
    )


def test_a_channel_that_stood_still_moves_no_other():
    """By 1e9 of its standard deviations: it says no more of the others than eight of them."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((500, 1)) * [1.0, 1.0, 1e-9] + 0.1 * rng.standard_normal((500, 3)) * [
        1.0,
        1.0,
        1e-9,
    ]
    model = Subspace.of(X, Schema.anonymous(3), rank=2)

    precision = Precision.of(model, Factors(np.array([0.01, 0.01, 1e-20]), None))

    filled, _ = fill(np.array([[np.nan, 0.0, 1.0]]), model, precision)

    assert abs(filled[0, 0]) < 10


def test_noiseless_rows_that_show_too_little_are_filled_all_the_same():
    """Two values for three causes, and no noise to weigh by: a finite, moderate answer."""
    X = rows_of("low rank", 200, 9, seed=0) + 5
    model = SAPCA(3).partial_fit(X).shown
    rows = X[:30].copy()
    rows[:, 2:] = np.nan
    enough = X[:30].copy()
    enough[:, 5:] = np.nan

    filled, _ = fill(rows, model)

    assert np.isfinite(filled).all()
    assert np.abs(filled - model.mean).max() <= 10 * np.abs(X - model.mean).max()
    np.testing.assert_allclose(fill(enough, model)[0], X[:30], atol=1e-6)


def test_filling_changes_only_gaps():
    """What was there stays to the bit; the argument is not touched; no gaps, no copy."""
    X = rows_of("decaying", 100, 8, seed=0)
    model = SAPCA(3).partial_fit(X).shown
    holed = X[:20].copy()
    holed[3, 2] = holed[5, :] = np.nan
    before = holed.copy()

    filled, count = fill(holed, model)

    assert count == 9
    np.testing.assert_array_equal(holed, before)
    np.testing.assert_array_equal(filled[~np.isnan(holed)], holed[~np.isnan(holed)])
    np.testing.assert_allclose(filled[5], model.mean)
    assert fill(X, model)[0] is X
    nothing = Subspace.empty(Schema.anonymous(8))
    np.testing.assert_array_equal(fill(holed, nothing)[0][5], np.zeros(8))


@pytest.mark.parametrize("score", [spe, hotelling, contributions, fill])
def test_rows_of_another_width_are_refused(score):
    """With the shape expected and the shape received."""
    model = Subspace.of(np.eye(4), Schema.anonymous(4), rank=2)
    with pytest.raises(ShapeError, match=r"\(n, 4\), got \(2, 3\)"):
        score(np.ones((2, 3)), model)


@pytest.mark.parametrize("exact", ["auto", "never"])
def test_spare_directions_score_nothing(exact):
    """On 8 channels they were all that there is, and SPE was 0 everywhere."""
    X = np.random.default_rng(3).standard_normal((400, 8)) @ np.diag(0.8 ** np.arange(8.0))
    engine = SAPCA(rank=3, oversample=5, exact=exact).partial_fit(X)
    whole, shown = engine.subspace, engine.shown

    assert (8, 5, 0) == (whole.rank, whole.spares, shown.spares)
    np.testing.assert_array_equal(spe(X, shown), spe(X, whole))
    np.testing.assert_array_equal(hotelling(X, shown), hotelling(X, whole))
    np.testing.assert_array_equal(contributions(X, shown), contributions(X, whole))
    assert spe(X, whole).min() > 0
    # What is merged has as many as were asked for, of one part or of two.
    assert [(5, 0)] * 2 == [
        (each.rank, each.spares) for each in (merge(whole, rank=5), merge(whole, whole, rank=5))
    ]
    assert [2, 0] == [whole.truncated(r).spares for r in (5, 2)]


@pytest.mark.parametrize("value", [1e13, 1e139, 1e155, 1e200, 1e308, -1e308, np.inf])
@pytest.mark.parametrize("statistic", [spe, hotelling])
def test_the_score_of_a_number_that_is_no_reading_is_high(statistic, value):
    """It is a number, and above that of any reading: NaN would compare as normal."""
    X = rows_of("noise", 60, 5, seed=2)
    subspace = Subspace.of(X, Schema(5), rank=2)
    far = X[:1].copy()
    far[0, 3] = value

    assert 1e20 < statistic(far, subspace)[0] < np.inf
    assert 1.0 == pytest.approx(contributions(far, subspace).sum())
