"""Distances: what far rows and offsets leave of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse

from submerge.features import Gaussian, Landmarks, Laplace, Matern, Polynomial
from submerge.features.kernels import radial_pull, squared_distances
from submerge.kernel.kmeans_rounds import nearest
from submerge.kernel.one_pass import columns_of, one_pass, sketch_matrix

RADIAL = [Gaussian(0.1), Laplace(0.3), Matern(0.1), Matern(0.1, 2.5)]
FILLS = [1e7, 1e9, 9.969209968386869e36]
"""What stands for a missing value: one's own, and netCDF's."""


def drawn(n: int, channels: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, channels))


def by_loop(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The obvious twin: differences, squared and summed, one pair at a time."""
    return np.array([[((x - y) ** 2).sum() for y in Y] for x in X])


def with_far(rows: np.ndarray, at: int, fill: float) -> np.ndarray:
    """Put a row of a fill value in."""
    return np.insert(rows, at, fill, axis=0)


seeds = st.integers(0, 2**32 - 1)
fills = st.sampled_from(FILLS)
some = st.integers(2, 80)


@given(some, st.integers(1, 6), st.integers(0, 100), fills, st.sampled_from([0.0, 2.0**26]), seeds)
@example(2, 3, 0, 1e9, 0.0, 0)
@example(6, 3, 0, 1e9, 0.0, 0)
@example(6, 3, 6, 9.969209968386869e36, 0.0, 0)
@example(60, 3, 0, 1e7, 2.0**26, 0)
def test_a_far_row_costs_the_others_no_digits(m, channels, at, fill, offset, seed):
    """First, last or anywhere: all other distances equal the slow twin's, offsets included."""
    X = drawn(4, channels, seed) + offset
    Y = with_far(drawn(m, channels, seed + 1) + offset, at % (m + 1), fill)

    wanted = by_loop(X, Y)
    # Of 4 and some squares of size one; 2^26 has 27 of 53 bits.
    np.testing.assert_allclose(wanted, squared_distances(X, Y), rtol=1e-9, atol=1e-7)


@given(some, st.integers(0, 100), fills, seeds)
@example(6, 0, 1e9, 0)
def test_nor_those_of_sparse_rows(m, at, fill, seed):
    """CSR rows are taken about zero: what is far is in no other row's way."""
    X = np.where(np.abs(drawn(4, 9, seed)) > 1, drawn(4, 9, seed), 0.0)
    Y = with_far(drawn(m, 9, seed + 1), at % (m + 1), fill)

    found = squared_distances(sparse.csr_array(X), Y)
    np.testing.assert_allclose(by_loop(X, Y), found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("at", [0, 3, 6])
def test_a_far_row_pulls_no_other(at, fill):
    """Gradients are sums of slopes times differences, one at a time."""
    X, Y, slopes = drawn(4, 3), with_far(drawn(6, 3, 8), at, fill), drawn(4, 7, 9)
    slopes[:, at] = 0.0  # of any kernel that falls off
    wanted = [(2 * s[:, None] * (x - Y)).sum(axis=0) for x, s in zip(X, slopes, strict=True)]

    np.testing.assert_allclose(wanted, radial_pull(X, Y, slopes), atol=1e-12)


def test_far_rows_may_come_at_any_beat():
    """Every third of many rows, and more than are asked for the middle: distances stand."""
    Y = drawn(300, 3)
    for start in range(3):
        far = Y.copy()
        far[start::3] = 1e9
        near = np.arange(300) % 3 != start
        found = squared_distances(drawn(4, 3, 8), far)[:, near]
        np.testing.assert_allclose(by_loop(drawn(4, 3, 8), far[near]), found, rtol=1e-9)


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_a_common_offset_costs_kernels_no_digits(kernel):
    """Readings far from zero are as far from one another as ever."""
    X, Y = drawn(4, 3), drawn(6, 3, 8)

    np.testing.assert_allclose(kernel(X, Y), kernel(X + 2.0**26, Y + 2.0**26), atol=1e-7)
    np.testing.assert_allclose(np.ones(4), np.diag(kernel(X, X)), atol=1e-7)


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("at", [0, 10])
@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_landmarks_lift_as_without_a_far_one(kernel, at, fill):
    """A landmark of fill values is a coordinate of its own, and nothing else."""
    X, L = drawn(5, 3), drawn(10, 3, 8)

    phi = Landmarks(kernel, with_far(L, at, fill)).lift(X)
    np.testing.assert_allclose(Landmarks(kernel, L).lift(X), np.delete(phi, at, axis=1), atol=1e-7)
    np.testing.assert_allclose(np.zeros(5), phi[:, at], atol=1e-6)


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("at", [0, 40])
def test_rows_find_their_centers_beside_a_far_one(at, fill):
    """Nearest is nearest, where one center is a fill value's."""
    rows, centers = drawn(200, 2), drawn(40, 2, 8)
    wanted = by_loop(rows, centers)

    labels, distances = nearest(rows, with_far(centers, at, fill))

    np.testing.assert_array_equal(wanted.argmin(axis=1), labels - (labels >= at) * (at == 0))
    np.testing.assert_allclose(wanted.min(axis=1), distances, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fill", FILLS)
def test_a_kernel_matrix_in_passing_survives_a_far_row(fill):
    """Two clouds and a fill value in the first row: three scores separate them."""
    clouds = np.vstack([drawn(30, 2) / 10, drawn(30, 2, 8) / 10 + 5])
    X = with_far(clouds, 0, fill)

    found = one_pass(
        columns_of(Gaussian(0.5), X, block_size=16), sketch_matrix(61, 12, seed=0), rank=3
    )
    K = Gaussian(0.5)(clouds, clouds)

    # The far row is like itself alone: a score of its own, and none of the others'.
    assert np.isclose(1, np.square(found.scores[0]).sum(), atol=1e-3)
    assert np.linalg.norm(K - found.scores[1:] @ found.scores[1:].T) < 0.1 * np.linalg.norm(K)


def test_entries_of_one_place_are_one():
    """CSR that names a place twice means the sum, and the caller's rows stay as they are."""
    twice = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), [0, 3, 3]), (2, 2))
    before, Y = twice.data.copy(), np.eye(2)

    for kernel in [*RADIAL, Polynomial(2, 1.0, 1.0)]:
        dense = twice.toarray()
        np.testing.assert_allclose(kernel(dense, Y), kernel(twice, Y))
        np.testing.assert_allclose(np.diag(kernel(dense, dense)), kernel.diagonal(twice))
    np.testing.assert_array_equal(before, twice.data)


@pytest.mark.parametrize("kernel", [*RADIAL, Polynomial(3, 0.2, 1.0)], ids=repr)
def test_the_diagonal_is_the_kernel_of_a_row_with_itself(kernel):
    """Of dense rows and sparse ones, and of none."""
    X = drawn(5, 3)

    np.testing.assert_allclose(np.diag(kernel(X, X)), kernel.diagonal(X), rtol=1e-7)
    np.testing.assert_allclose(kernel.diagonal(X), kernel.diagonal(sparse.csr_array(X)))
    assert (0,) == kernel.diagonal(X[:0]).shape
