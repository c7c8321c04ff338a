"""Reconstruction: virtual sensors and blame, against dense twins and their definitions."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import SAPCA, Schema, Subspace, UsageError, hotelling, spe
from submerge.pca import reconstruct
from submerge.pca.factor import Precision
from submerge.pca.missing import FARTHEST, fill
from submerge.pca.reconstruct import RELATED, TOLD, Reconstruction, usual_squares
from support import oracle
from support.strategies import rows_of, streams

noisy = st.sampled_from(["noise", "decaying"])
seeds = st.integers(0, 999)


def centered(model: Subspace) -> Subspace:
    """The same about zero."""
    return replace(model, mean=np.zeros(model.dim))


def learnt(kind: str, dim: int, rank: int, seed: int) -> tuple[Subspace, np.ndarray]:
    """A model, and rows that are not those that it learnt, centered."""
    X = rows_of(kind, 8 * dim, dim, seed=seed)
    model = Subspace.of(X[: 6 * dim], Schema.anonymous(dim), rank=min(rank, dim - 1))
    return model, X[6 * dim :] - model.mean


@given(noisy, st.integers(2, 12), st.integers(1, 11), seeds)
def test_a_left_out_channel_is_filled_by_the_others(kind, dim, rank, seed):
    """As `fill` does it, one channel missing at a time."""
    model, rows = learnt(kind, dim, rank, seed)
    # As far as `fill` takes a value at its word.
    far = FARTHEST * np.sqrt(oracle.covariance_of(model).diagonal())
    rows = np.clip(rows, -far, far)

    found = Reconstruction(model).left_out(rows)

    for channel in range(dim):
        holed = rows.copy()
        holed[:, channel] = np.nan
        expected = rows - fill(holed, centered(model))[0]
        np.testing.assert_allclose(found[:, channel], expected[:, channel], atol=1e-8)


@given(noisy, st.integers(1, 5), st.integers(1, 3), st.integers(1, 8), seeds)
def test_a_channel_is_left_out_with_its_past(kind, channels, lags, rank, seed):
    """Against a dense solve; without lags that is each number by itself."""
    channels = max(2, channels)
    model, rows = learnt(kind, channels * lags, rank, seed)

    recall = Reconstruction(model, channels)

    covariance = oracle.covariance_of(model)
    expected = oracle.left_out(rows, covariance, channels)
    np.testing.assert_allclose(recall.left_out(rows), expected, atol=1e-7)
    # The expected value: its variance, less the part that the others predict.
    draw = np.linalg.cholesky(covariance)
    weights = oracle.left_out(draw.T, covariance, channels)
    np.testing.assert_allclose(recall.expected, (weights**2).sum(axis=0), rtol=1e-6)


def test_columns_that_have_travelled_say_the_same():
    """Float32 is orthonormal to 1e-7, and so are predictions from it, nearly."""
    model, rows = learnt("decaying", 12, 4, 0)
    shipped = replace(model, basis=model.basis.astype(np.float32))

    np.testing.assert_allclose(
        Reconstruction(model).left_out(rows), Reconstruction(shipped).left_out(rows), atol=1e-4
    )


def test_a_model_of_all_directions_still_tells():
    """Nothing is left for noise, and each channel follows from the others."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 5)) @ rng.standard_normal((5, 5))
    model = Subspace.of(X, Schema.anonymous(5), rank=5)
    rows = X[:20] - model.mean

    expected = oracle.left_out(rows, oracle.scatter_of(model), 5)
    np.testing.assert_allclose(Reconstruction(model).left_out(rows), expected, atol=1e-4)


@given(noisy, st.integers(3, 9), st.integers(1, 8), seeds)
def test_a_contribution_is_what_setting_the_channel_anew_takes(kind, dim, rank, seed):
    """Of SPE, of T2 and of both: the bottom of a parabola."""
    model, rows = learnt(kind, dim, min(rank, dim - 2), seed)
    U, variance = model.basis, model.explained_variance
    forms = {
        "spe": np.eye(dim) - U @ U.T,
        "t2": U @ np.diag(1 / variance) @ U.T,
        "distance": np.linalg.inv(oracle.covariance_of(model)),
    }

    for by, matrix in forms.items():
        found = Reconstruction(model).contributions(rows[:3], by)
        expected = [[oracle.fall(matrix, row, j) for j in range(dim)] for row in rows[:3]]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


@given(streams(max_rows=60, max_dim=12), st.integers(1, 6), st.sampled_from([1, 2, 3]))
def test_no_contribution_is_more_than_there_is(X, rank, lags):
    """Whatever the data, lags or not: between nothing and the whole statistic, and a number."""
    X = np.tile(X, (1, lags))
    model = centered(Subspace.of(X, Schema.anonymous(X.shape[1]), rank=rank))
    if not model.rank:
        return
    size = model.explained_variance[0] ** 0.5
    rows = size * rows_of("noise", 4, X.shape[1], seed=1)
    recall = Reconstruction(model, X.shape[1] // lags)

    assert np.isfinite(recall.left_out(rows)).all()
    assert np.isfinite(recall.blame(rows)).all()
    for by, whole in (("spe", spe(rows, model)), ("t2", hotelling(rows, model))):
        found = recall.contributions(rows, by)
        assert (found >= 0).all()
        assert (found <= whole[:, None] * (1 + 1e-6) + 1e-9 * size**2).all()


@given(st.integers(4, 12), st.integers(1, 6), st.integers(0, 11), seeds)
def test_a_large_fault_is_blamed_on_its_channel(dim, rank, channel, seed):
    """For certain: that is what contributions by reconstruction are for."""
    model, rows = learnt("decaying", dim, rank, seed)
    channel %= dim
    rows[:, channel] += 1e4

    shares = Reconstruction(model).blame(rows)

    np.testing.assert_array_equal(channel, shares.argmax(axis=1))
    np.testing.assert_allclose(1.0, shares.sum(axis=1))


def test_who_is_always_noisy_is_not_to_blame():
    """A channel is measured by its own typical error, or the model's if that is unknown."""
    model, _ = learnt("noise", 8, 2, 0)
    recall = Reconstruction(model)
    row = np.zeros((1, 8))
    row[0, 2], row[0, 5] = 4.0, 3.0
    typical = recall.expected.copy()
    typical[2] *= 100

    assert recall.blame(row).argmax() == 2
    assert recall.blame(row, typical).argmax() == 5
    for unknown in (np.nan, 0.0):
        typical[2] = unknown
        np.testing.assert_allclose(recall.blame(row), recall.blame(row, typical))


def twins(seed: int, dim: int = 9) -> tuple[Reconstruction, np.ndarray]:
    """What predicts channels, the first two nearly each other's copies, and their covariance."""
    rng = np.random.default_rng(seed)
    loadings, noise = rng.normal(size=(dim, 3)), rng.uniform(0.2, 1.0, dim)
    loadings[1], noise[:2] = 0.9 * loadings[0], 0.05
    model = Subspace.empty(Schema.anonymous(dim))
    recall = Reconstruction(model, None, Precision(loadings, noise))
    return recall, loadings @ loadings.T + np.diag(noise)


@given(seeds, st.sampled_from([1, 4, 256]))
def test_pairs_are_channels_that_tell_of_one_another(seed, at_once):
    """Against the dense inverse, however many are compared at once."""
    with mock.patch.object(reconstruct, "PAIRED", at_once):
        recall, covariance = twins(seed)
        expected = oracle.alike(covariance)
        found = recall.pairs

    one, other = np.nonzero(expected >= RELATED)
    assert (one.tolist(), other.tolist()) == (found.one.tolist(), found.other.tolist())
    np.testing.assert_allclose(expected[one, other], found.alike)
    assert [each**2 >= TOLD for each in expected[0]] == [found.told(0, j) for j in range(9)]


@given(seeds)
def test_a_fault_is_not_blamed_on_a_twin_that_is_less_noisy_than_expected(seed):
    """Errors over what is usual name the quieter of two, however large the fault is."""
    recall, covariance = twins(seed)
    typical = recall.expected * np.random.default_rng(seed).uniform(0.3, 3.0, 9)
    for channel in range(9):
        row = 1e4 * np.eye(9)[[channel]]
        assert recall.blame(row, typical).argmax() == channel

    weights, alike = (
        recall.expected / usual_squares(recall.expected, typical, recall.pairs),
        (np.where(oracle.alike(covariance) >= RELATED, oracle.alike(covariance), 1e-300)),
    )
    most = np.minimum(recall.expected / typical, (weights[:, None] / alike).min(axis=0))
    np.testing.assert_allclose(most, weights)


def test_nobody_is_to_blame_for_the_mean():
    """No shares rather than shares of nothing."""
    model, _ = learnt("noise", 6, 2, 0)

    assert not Reconstruction(model).blame(np.zeros((2, 6))).any()


def test_an_unused_channel_is_predicted_by_nobody():
    """It is left out whole, and what it does is its own."""
    X = rows_of("decaying", 200, 7, seed=0)
    X[:, 3] = 5.0
    model = SAPCA(2).partial_fit(X).shown
    rows = X[:5] - model.mean
    rows[:, 3] = 1.0

    np.testing.assert_allclose(np.ones(5), Reconstruction(model).left_out(rows)[:, 3])


def test_a_model_without_directions_predicts_nothing():
    """Each channel is left out whole."""
    model = Subspace.of(np.ones((5, 4)), Schema.anonymous(4), rank=2)
    rows = rows_of("noise", 3, 4, seed=0)

    np.testing.assert_allclose(rows, Reconstruction(model).left_out(rows))


@pytest.mark.parametrize("channels", [0, 4, 12])
def test_channels_have_to_fill_a_row(channels):
    """Six numbers are not lags of four channels."""
    model, _ = learnt("noise", 6, 2, 0)
    with pytest.raises(UsageError, match="must divide the length of a row, 6"):
        Reconstruction(model, channels)
