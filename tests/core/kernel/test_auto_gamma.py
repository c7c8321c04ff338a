"""gamma="auto": the spread of rows, however they are stored, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge.features import Gaussian, Laplace, Matern, Polynomial
from submerge.kernel.auto_gamma import CHUNK, auto_gamma, settled_for, spread_of

sparse = pytest.importorskip("scipy.sparse")

KERNELS = [Gaussian(), Laplace(), Matern(), Polynomial()]
FORMS = [np.asarray, sparse.csr_matrix, sparse.csc_array]


def normal(n: int, dim: int = 4, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, dim))


@settings(max_examples=40)
@given(
    st.integers(0, 999),
    st.integers(1, 60),
    st.integers(1, 5),
    st.sampled_from([0.0, 1.0, 1e6]),
    st.sampled_from([0.0, 0.2, 1.0]),
    st.sampled_from(FORMS),
)
def test_the_spread_is_half_the_mean_squared_distance(seed, n, dim, offset, density, form):
    """Of all pairs, one row with itself included: tr C, of dense rows and of sparse ones."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, dim)) + offset) * (rng.random((n, dim)) < density)

    pairs = ((X[:, None] - X[None]) ** 2).sum(axis=2)

    np.testing.assert_allclose(pairs.mean() / 2, spread_of(form(X)), rtol=1e-9, atol=1e-18)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_mean_far_away_costs_no_digits(dtype, form):
    """100,000 rows about 1000, deviation 1e-3: their squares differ by 1e-12 of their size."""
    X = (1000 + 1e-3 * normal(100_000, 1)).astype(dtype)

    spread = spread_of(form(X))

    assert np.isclose(float(np.var(X.astype(float) - 1000)), spread, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_float32_is_squared_in_float64(form):
    """Rows of 1e20 have squares, though float32 has none of that size."""
    X = (1e20 * normal(50)).astype(np.float32)

    assert np.isclose(X.astype(float).var(axis=0).sum(), spread_of(form(X)), rtol=1e-9)


def test_many_rows_are_taken_a_few_at_a_time():
    """More rows than are squared at once have the same spread."""
    X = normal(2 * CHUNK + 3) + np.arange(2 * CHUNK + 3)[:, None]

    assert np.isclose(X.var(axis=0).sum(), spread_of(X), rtol=1e-12)


def test_entries_of_one_place_are_summed():
    """As all of scipy has it."""
    twice = sparse.csr_matrix((np.array([1.0, 1.0]), np.array([0, 0]), np.array([0, 2, 2])))

    assert 1.0 == spread_of(twice)
    assert 2 == twice.nnz  # and the caller's rows stay as they are


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_constant_channels_have_no_spread(form):
    """What rounding leaves of one is no distance, and hides none in the others."""
    flat = 1e9 + 1e-4 * normal(30, 1)

    assert 0.0 == spread_of(form(np.full((9, 3), 0.1)))
    assert 0.0 == spread_of(form(flat))
    small = 1e-5 * normal(30)
    assert np.isclose(small.var(axis=0).sum(), spread_of(form(np.hstack([small, flat]))))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gamma_is_the_kernels_own(kernel):
    """Of that spread; one that is settled stays."""
    X = normal(40)

    assert kernel.settled_at(kernel.auto(spread_of(X))) == settled_for(kernel, X)
    assert kernel.settled_at(3.0) == settled_for(kernel.settled_at(3.0), 0 * X)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("spread", [0.0, 1e-310, np.inf, np.nan, 1e305])
def test_what_is_no_size_has_no_gamma(kernel, spread):
    """Nothing varies, or squares are none: refused in a line, and never infinite or zero."""
    with pytest.raises(UsageError, match=r'gamma="auto" expects rows that differ.* give gamma'):
        auto_gamma(kernel, spread)


@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_what_can_be_squared_has_a_gamma(size):
    """Whatever its unit: a kernel sees the same rows."""
    X = normal(20)
    expected = settled_for(Gaussian(), X)(X, X)

    np.testing.assert_allclose(
        expected, settled_for(Gaussian(), size * X)(size * X, size * X), rtol=1e-9
    )
