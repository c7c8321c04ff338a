"""Factors: a noise for each channel, distances by it, and what follows for rows with gaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Schema, Subspace
from submerge.pca.factor import (
    LEAST,
    Factors,
    Precision,
    columns_apart,
    factors_of,
    fitted,
    floored,
    noise_variance,
    uniform,
)
from submerge.pca.missing import fill, shrunk, without_gaps
from submerge.pca.reconstruct import Reconstruction
from submerge.pca.whole_scatter import WholeScatter
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty
from submerge.stats.score_limits import Limits
from submerge_client.config.sizes import size_of_model
from submerge_proto.wire import codec, columns, forms
from support import oracle, oracle_factor
from support.strategies import rows_of, streams
from support.wire import a_model

kinds = st.sampled_from(["noise", "decaying"])
seeds = st.integers(0, 999)


def summed(X: np.ndarray, rank: int) -> Subspace:
    return Subspace.of(X, Schema.anonymous(X.shape[1]), rank=rank)


def whole(X: np.ndarray) -> WholeScatter:
    return WholeScatter.of(summed(X, X.shape[1]))


def of_whole(X: np.ndarray, columns: int) -> Factors:
    """Fit to the exact covariance of rows."""
    return fitted(np.cov(X.T, bias=True), columns)


def drawn(n: int, dim: int, k: int, seed: int) -> np.ndarray:
    """Rows of a factor model whose channels have noise of very different sizes."""
    rng = np.random.default_rng(seed)
    noise = 10.0 ** rng.uniform(-1.5, 0.5, dim)
    loadings = np.random.default_rng(seed + 1).standard_normal((dim, k))
    return rng.standard_normal((n, k)) @ loadings.T + noise * rng.standard_normal((n, dim))


# -- distances ------------------------------------------------------------------------


@given(kinds, st.integers(2, 12), st.integers(1, 8), seeds)
def test_distances_are_those_of_the_dense_inverse(kind, dim, k, seed):
    """x' (L L' + Psi)^-1 x, of directions and of loadings apart."""
    X = rows_of(kind, 8 * dim, dim, seed=seed)
    model = summed(X, min(k, dim))
    rows = rows_of(kind, 5, dim, seed=seed + 1) - model.mean

    for found in (factors_of(model, model), of_whole(X, min(k, dim))):
        covariance = oracle_factor.dense(found.loadings_of(model), found.noise)
        off, distance = Precision.of(model, found).measure(rows)
        np.testing.assert_allclose(
            distance, oracle_factor.distances(rows, covariance), rtol=1e-6, atol=1e-9
        )
        np.testing.assert_allclose(
            off / np.sqrt(found.noise), np.linalg.solve(covariance, rows.T).T, rtol=1e-5, atol=1e-6
        )


@given(kinds, st.integers(2, 8), seeds)
def test_with_all_directions_it_is_the_mahalanobis_distance(kind, dim, seed):
    """Of the covariance, with the least noise on its diagonal."""
    X = rows_of(kind, 20 * dim, dim, seed=seed)
    model, rows = summed(X, dim), rows_of(kind, 5, dim, seed=seed + 1)
    covariance = np.cov(X.T, bias=True)
    least = floored(np.zeros(dim), np.diag(covariance))

    found = Precision.of(model, factors_of(model, model)).measure(rows - model.mean)[1]

    expected = oracle_factor.distances(rows - model.mean, covariance + np.diag(least))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@given(streams(max_rows=60, max_dim=12), st.integers(1, 8), st.sampled_from([0, 1e-9, 1, 1e9]))
def test_a_distance_is_a_number_and_never_negative(X, rank, size):
    """Whatever was learnt, and whatever row comes."""
    model = summed(X, rank)
    found = [factors_of(model, model), factors_of(WholeScatter.of(model), model)]
    rows = size * rows_of("noise", 4, X.shape[1], seed=1)

    for each in found:
        if each is not None:
            distance = Precision.of(model, each).measure(rows)[1]
            assert np.isfinite(distance).all()
            assert (distance >= 0).all()


def test_the_mean_of_distances_is_the_number_of_channels():
    """Of rows like those that were learnt, with a fit as with directions."""
    X = drawn(400, 20, 3, 0)
    model = summed(X, 8)
    for found in (factors_of(model, model), of_whole(X, 10)):
        distance = Precision.of(model, found).measure(X - model.mean)[1]
        assert distance.mean() == pytest.approx(20, rel=0.1)


@given(st.integers(3, 10), seeds, st.data())
def test_units_of_channels_do_not_matter_to_a_fit(dim, seed, data):
    """Millimetres in place of metres: the same distances.

    From three channels on: one factor of two channels has four numbers to find and is given three,
    so that many fits are equally good. One seed in 160 takes another one.
    """
    X = drawn(40 * dim, dim, max(1, dim // 3), seed)
    units = 10.0 ** np.array(data.draw(st.lists(st.integers(-1, 2), min_size=dim, max_size=dim)))
    rows = drawn(5, dim, 1, seed + 7)

    first, then = (
        Precision(found.loadings, found.noise).measure(rows * unit)[1]
        for unit in (1.0, units)
        for found in (of_whole(X * unit, dim // 2 or 1),)
    )

    # A fit ends where it gains no more: of 4,000 cases four are more than 3e-5 apart, one 4.8e-4.
    np.testing.assert_allclose(then, first, rtol=3e-3)


# -- noise ----------------------------------------------------------------------------


@given(kinds, st.integers(2, 10), st.integers(1, 6), seeds)
def test_loadings_and_noise_add_up_to_the_variance(kind, dim, k, seed):
    """Of each channel, but for the least noise."""
    X = rows_of(kind, 10 * dim, dim, seed=seed)
    model, variance = summed(X, min(k, dim)), X.var(axis=0)

    for found in (factors_of(model, model), of_whole(X, min(k, dim))):
        total = np.square(found.loadings_of(model)).sum(axis=1) + found.noise
        assert (found.noise >= LEAST * variance * (1 - 1e-9)).all()
        np.testing.assert_allclose(total, variance, rtol=3 * LEAST)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_fit_is_nearly_the_most_likely_one(seed):
    """Four rounds are within .05 nats a row of two thousand rounds of EM."""
    X = drawn(3000, 10, 2, seed)
    covariance = np.cov(X.T, bias=True)

    found = of_whole(X, 2)

    best = oracle_factor.likelihood(
        oracle_factor.dense(*oracle_factor.em(covariance, 2)), covariance
    )
    got = oracle_factor.likelihood(oracle_factor.dense(found.loadings, found.noise), covariance)
    assert best - 0.05 < got < best + 1e-3


def test_a_dead_channel_and_a_copy_have_some_noise():
    """The first that moves is anomalous, and so are copies that part."""
    X = drawn(500, 8, 2, 0)
    X[:, 3], X[:, 5] = 7.0, X[:, 1]
    model = summed(X, 8)
    moved = np.zeros((3, 8))
    moved[0, 3], moved[1, 5], moved[2, [1, 5]] = 1.0, 1.0, 1.0

    for found in (factors_of(model, model), factors_of(whole(X), model), of_whole(X, 4)):
        assert (found.noise > 0).all()
        dead, parted, together = Precision.of(model, found).measure(moved)[1]
        assert dead > 1e3
        assert parted > 100 * together


def test_directions_that_claim_too_much_leave_the_least_noise():
    """Columns of int8 may hold more of a channel than its energy."""
    model = summed(rows_of("decaying", 200, 9, seed=0), 4)
    coarse = columns.unpacked(columns.packed(model, coarse=True), model.schema)
    meagre = replace(coarse, channel_energies=0.5 * model.channel_energies)

    found = factors_of(meagre, meagre)

    assert (found.noise >= LEAST * meagre.channel_energies / model.weight * (1 - 1e-9)).all()


def test_without_energies_of_channels_there_are_no_factors():
    """As in the summary of a group with a node of an earlier version; or with no direction."""
    model = summed(rows_of("noise", 50, 6, seed=0), 3)
    for nothing in (replace(model, channel_energies=None), summed(np.ones((5, 6)), 3)):
        assert factors_of(nothing, nothing) is None


def test_a_subspace_alone_has_one_noise():
    """Probabilistic PCA: what it does not hold, spread over the rest."""
    model = summed(rows_of("decaying", 60, 7, seed=0), 3)
    found = uniform(model)

    np.testing.assert_allclose(found.noise, noise_variance(model))
    np.testing.assert_allclose(
        oracle_factor.dense(found.loadings, found.noise), oracle.covariance_of(model)
    )


@pytest.mark.parametrize(("dim", "k"), [(2, 1), (54, 14), (110, 28), (400, 101), (4000, 1001)])
def test_a_model_with_loadings_is_no_larger_than_was_reckoned(dim, k):
    """With all that goes with it: a report's formula, and the noise of each channel."""
    columns = columns_apart(dim, k)
    high = QuantileSketch.of(np.geomspace(1, 1e9, 5000), FINE)
    maxima = BlockMaxima(high, high, empty(FINE), 500, high, high, high)
    limits = Limits((0.5,) * 8, (1.0,) * 8, (1.0,) * 8, 9, (), (1.0,) * 8)
    beside = codec.encode(a_model(summary=None, schema=b"", maxima=maxima, limits=limits))
    directions = 4 * dim * k + 8 * (2 * dim + k) + 64

    assert columns <= dim // 2
    assert len(beside) + directions + 4 * dim * (1 + columns) <= size_of_model(dim, k, 0)


def test_half_of_the_channels_are_enough():
    """Where there is room, as in a group of 54 channels at rank 9."""
    assert columns_apart(54, 14) == 27


def test_loadings_apart_are_more_than_directions():
    """Else the directions do: of a wide group, or of one with few channels."""
    X = drawn(300, 12, 2, 0)
    piece = whole(X)
    assert factors_of(piece, piece.directions(4)).loadings.shape == (12, 6)
    assert factors_of(piece, piece.directions(6)).loadings is None
    assert factors_of(summed(X, 4), summed(X, 4)).loadings is None


@given(kinds, st.integers(2, 12), seeds)
def test_factors_that_travelled_say_nearly_the_same(kind, dim, seed):
    """Float32 has seven digits, and the noise is a ten-thousandth of the variance or more."""
    X = rows_of(kind, 8 * dim, dim, seed=seed)
    model, rows = summed(X, max(1, dim // 2)), X[:5] - X.mean(axis=0)
    found = (of_whole(X, dim // 2),)
    arrived = forms.unpacked([forms.packed(each) for each in found], model)

    first, then = (Precision.of(model, each).measure(rows)[1] for each in (*found, *arrived))

    np.testing.assert_allclose(then, first, rtol=1e-3)


# -- gaps and virtual sensors ---------------------------------------------------------


@given(st.integers(3, 10), seeds, st.data())
def test_a_gap_is_filled_by_its_conditional_mean(dim, seed, data):
    """And the distance of the filled row is that of what was observed."""
    X = drawn(60 * dim, dim, 2, seed)
    model, found = summed(X, 2), of_whole(X, max(1, dim // 2))
    precision = Precision.of(model, found)
    row = X[:1] - model.mean
    present = np.array(data.draw(st.lists(st.booleans(), min_size=dim, max_size=dim)))
    present[seed % dim] = True

    filled, count = fill(
        np.where(present, row, np.nan), replace(model, mean=np.zeros(dim)), precision
    )

    covariance = oracle_factor.dense(found.loadings, found.noise)
    known = covariance[np.ix_(present, present)]
    expected = covariance[:, present] @ np.linalg.solve(known, row[0, present])
    assert count == (~present).sum()
    np.testing.assert_allclose(filled[0], np.where(present, row[0], expected), atol=1e-6)
    np.testing.assert_allclose(
        precision.measure(filled)[1], oracle_factor.distances(row[:, present], known), rtol=1e-6
    )


@given(st.integers(3, 10), seeds, st.data())
def test_other_statistics_lose_what_the_same_model_says(dim, seed, data):
    """SPE and T2 of rows that were filled by factors."""
    X = drawn(60 * dim, dim, 2, seed)
    model, found = summed(X, 2), of_whole(X, max(1, dim // 2))
    present = np.array(data.draw(st.lists(st.booleans(), min_size=dim, max_size=dim)))
    present[seed % dim] = True

    shares = shrunk(present, model, Precision.of(model, found))

    every = oracle_factor.dense(found.loadings, found.noise)
    filled, U = oracle.filled_covariance(every, present), model.basis
    along = U @ np.diag(1 / model.explained_variance) @ U.T
    for share, form in zip(shares, (np.eye(dim) - U @ U.T, along), strict=True):
        expected = np.trace(form @ filled) / np.trace(form @ every)
        assert share**2 == pytest.approx(max(expected, 1e-6), rel=1e-4, abs=1e-6)


@given(st.integers(2, 5), st.integers(1, 3), seeds)
def test_a_left_out_channel_is_predicted_by_factors(channels, lags, seed):
    """A dense solve each; and the expected squares."""
    X = drawn(400, channels * lags, 2, seed)
    model, found = summed(X, 2), of_whole(X, max(1, channels * lags // 2))
    covariance = oracle_factor.dense(found.loadings, found.noise)
    recall = Reconstruction(model, channels, Precision.of(model, found))

    rows = X[:4] - model.mean
    np.testing.assert_allclose(
        recall.left_out(rows), oracle.left_out(rows, covariance, channels), atol=1e-6
    )
    weights = oracle.left_out(np.linalg.cholesky(covariance).T, covariance, channels)
    np.testing.assert_allclose(recall.expected, (weights**2).sum(axis=0), rtol=1e-5)
    shares = recall.blame(rows)
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


@pytest.mark.parametrize("missing", [2, 10])
def test_a_distance_with_gaps_passes_a_far_limit_about_as_often(missing):
    """Rows drawn from the model, against the limit of whole rows; uncorrected, hardly any would."""
    rng, dim = np.random.default_rng(0), 24
    whole_rows, some = (rng.chisquare(of, 200_000) for of in (dim, dim - missing))
    limit = np.quantile(whole_rows, 0.999)
    even = without_gaps(some, np.full(len(some), 1 - missing / dim), dim)

    assert even.mean() == pytest.approx(dim, rel=0.01)
    assert 0.0006 < np.mean(even > limit) < 0.0016
    assert np.mean(some > limit) < 0.0006
    assert (without_gaps(np.zeros(3), np.array([0.25, 0.5, 1.0]), dim) >= 0).all()
