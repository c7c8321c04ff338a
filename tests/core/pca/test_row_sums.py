"""Sums of rows: the same in any order, and one row moves them by no more than is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.errors import UsageError
from submerge.pca.expectation import Guesses
from submerge.pca.row_sums import SENSITIVITY, RowSums
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.summaries import Subspaces, SumsLearner
from submerge.schema import Schema
from support import oracle

CLIP = 4.0
SCHEMA = Schema(3, clip=CLIP)
NONE = RowSums.none(SCHEMA.fingerprint, 3, CLIP)

numbers = st.floats(-1e12, 1e12) | st.floats(-2 * CLIP, 2 * CLIP)
rows = st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=8).map(np.array)


def same(first: RowSums, second: RowSums) -> bool:
    return first.packed == second.packed


@given(rows, st.randoms(use_true_random=False))
def test_the_same_rows_are_the_same_sums_in_any_order(X, random):
    order = list(range(len(X)))
    random.shuffle(order)
    cut = random.randrange(len(X) + 1)
    parts = NONE.with_rows(X[order[:cut]]) + NONE.with_rows(X[order[cut:]])

    assert same(NONE.with_rows(X), parts)


@given(st.integers(0, 10_000))
def test_they_are_those_of_a_sum_number_by_number(seed):
    X = np.random.default_rng(seed).normal(size=(20, 3)) * 2
    sums = NONE.with_rows(X)
    total, squares = oracle.row_sums(X, CLIP)

    assert total == sums.total.tolist()
    assert np.array(squares)[np.triu_indices(3)].tolist() == sums.squares.tolist()


@given(rows, rows)
def test_one_row_in_place_of_another_moves_them_no_further_than_their_sensitivity(X, Y):
    moved = NONE.with_rows(X[:1]).numbers - NONE.with_rows(Y[:1]).numbers

    assert np.linalg.norm(moved.astype(float)) <= SENSITIVITY


def test_some_rows_move_them_nearly_so_far():
    """At an angle of 120 degrees: a smaller bound would be none."""
    X = CLIP * np.array([[1.0, 0.0, 0.0], [-0.5, 0.75**0.5, 0.0]])
    turn = np.linalg.qr(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 1.0], [0.0, 1.0, 0.0]]))[0]
    moved = [
        np.linalg.norm(
            (NONE.with_rows(Z[:1]).numbers - NONE.with_rows(Z[1:]).numbers).astype(float)
        )
        for Z in (X, X @ turn)
    ]

    assert max(moved) > 0.98 * SENSITIVITY


def test_without_noise_they_are_the_scatter_of_rows_that_are_not_too_long():
    X = np.random.default_rng(1).normal(size=(5000, 3)) @ np.diag([1.0, 0.5, 0.2]) + 0.3
    X = X[np.linalg.norm(X, axis=1) < CLIP]
    found, exact = NONE.with_rows(X).whole, WholeScatter.of_rows(X, SCHEMA.fingerprint)

    np.testing.assert_allclose(found.mean, exact.mean, atol=CLIP / 1024)
    np.testing.assert_allclose(found.scatter, exact.scatter, rtol=0.01, atol=1.0)
    assert len(X) == found.weight


@given(rows, st.integers(0, 10_000))
def test_whatever_the_noise_a_scatter_is_positive(X, seed):
    sums = NONE.with_rows(X)
    noise = np.random.default_rng(seed).integers(-(10**9), 10**9, len(sums.numbers))
    whole = sums.with_noise(noise)

    assert np.linalg.eigvalsh(whole.scatter).min() >= -1e-9 * whole.energy
    assert whole.energy == pytest.approx(np.trace(whole.scatter))


def test_a_row_with_a_gap_or_one_that_fades_is_in_no_sum():
    learner = SumsLearner(SCHEMA, CLIP)
    X = np.ones((2, 3))

    with pytest.raises(UsageError, match="gap"):
        learner.learn(X, X, Guesses(np.eye(2, 3, dtype=bool)))
    with pytest.raises(UsageError, match="fades"):
        learner.fade(0.5)
    assert 0 == learner.summary().count


def test_only_sums_that_so_many_rows_can_have_fit():
    summaries, sums = Subspaces(2), NONE.with_rows(np.ones((4, 3)))
    more = RowSums(sums.schema, sums.step, 3, sums.total, 100 * sums.squares)
    other = RowSums.none(SCHEMA.fingerprint, 3, 2 * CLIP)

    assert summaries.fits(SCHEMA, sums)
    assert not summaries.fits(SCHEMA, more)
    assert not summaries.fits(SCHEMA, other)
    with pytest.raises(UsageError, match="steps"):
        _ = sums + other
