"""Sparse rows are learnt as the same rows made dense; where they are made dense, it is said."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from submerge import SAPCA, FixedRank, SapcaRank, ShapeError, UsageError
from submerge.errors import ValuesError
from support import oracle


def rows(n: int, dim: int, density: float, seed: int = 0):
    """CSR rows of normal numbers."""
    rng = np.random.default_rng(seed)
    return sparse.random_array(
        (n, dim), density=density, rng=rng, data_sampler=rng.standard_normal, format="csr"
    )


@given(
    st.integers(1, 200),
    st.integers(3, 30),
    st.sampled_from([0.01, 0.1, 0.7]),
    st.sampled_from([1.0, 0.99]),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_the_exact_path_learns_sparse_rows_as_dense_ones(n, dim, density, factor, center, seed):
    """Weight, mean, energy and scatter are the twin's, in turns with dense rows and forgetting."""
    X = rows(n, dim, density, seed)
    dense = X.toarray()
    engine = SAPCA(2, forgetting_factor=factor, center=center)
    third = n // 3
    engine.partial_fit(X[:third]).partial_fit(dense[third : 2 * third])
    engine.partial_fit(X[2 * third :])
    twin = oracle.twin(dense, oracle.decay(n, factor), center=center)
    whole = engine.whole_scatter
    scale = max(float(np.trace(twin.scatter)), 1e-9)

    assert n == engine.n_samples_seen
    assert twin.weight == pytest.approx(whole.weight)
    np.testing.assert_allclose(twin.mean if center else whole.mean, whole.mean, atol=1e-12)
    np.testing.assert_allclose(twin.scatter, whole.scatter, atol=1e-12 * scale)


@pytest.mark.parametrize("rule", [FixedRank(3), SapcaRank(3)])
def test_the_low_rank_path_learns_the_same_bits_and_says_that_it_makes_them_dense(rule):
    """Directions are held alone: the warning says how to keep rows sparse."""
    X = rows(300, 40, 0.1)
    with pytest.warns(UserWarning, match="made dense, 20 at a time: raise memory"):
        there = SAPCA(rule, exact="never", block_size=20).partial_fit(X)
    here = SAPCA(rule, exact="never", block_size=20).partial_fit(X.toarray())

    np.testing.assert_array_equal(here.subspace.basis, there.subspace.basis)
    np.testing.assert_array_equal(here.subspace.sigma, there.subspace.sigma)


def test_the_exact_path_says_nothing():
    """No row is made dense there."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SAPCA(3).partial_fit(rows(300, 40, 0.1))


def test_projections_and_errors_of_sparse_rows_are_those_of_dense_ones():
    """transform and score_samples take both."""
    X = rows(300, 40, 0.1)
    engine = SAPCA(3).partial_fit(X)

    np.testing.assert_array_equal(engine.transform(X.toarray()), engine.transform(X))
    np.testing.assert_array_equal(engine.score_samples(X.toarray()), engine.score_samples(X))


@pytest.mark.slow
def test_memory_does_not_grow_with_rows_that_would_be_dense():
    """5,000 rows of 1,500 columns would be 60 MB; a scatter is 18 MB."""
    X = rows(5000, 1500, 0.005)
    engine = SAPCA(5, memory=2**30)
    engine.partial_fit(X[:1])
    tracemalloc.start()
    try:
        engine.partial_fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 6 * 8 * 1500**2 + 4 * X.data.nbytes


BAD = sparse.csr_array(np.array([[0.0, 1.0, 2.0], [0.0, np.nan, 0.0]]))


@pytest.mark.parametrize(
    ("X", "error", "line"),
    [
        (BAD, ValuesError, "got nan in row 1, column 1"),
        (rows(4, 5, 0.5), ShapeError, r"rows must have shape \(n, 3\), got \(4, 5\)"),
        (rows(4, 3, 0.5).astype(complex), UsageError, "rows must be real numbers, got dtype compl"),
    ],
)
def test_bad_sparse_rows_are_refused_in_one_line_and_nothing_is_learnt(X, error, line):
    """As dense ones are: what was expected, what came, where."""
    engine = SAPCA(2).partial_fit(np.eye(3))

    with pytest.raises(error, match=line):
        engine.partial_fit(X)
    assert 3 == engine.n_samples_seen


def test_columns_out_of_range_are_refused():
    """Indices that no constructor lets through can be set afterwards."""
    X = rows(4, 3, 0.9)
    X.indices[0] = 7

    with pytest.raises(UsageError, match="columns of sparse rows must be 0 to 2, got 0 to 7"):
        SAPCA(2).partial_fit(X)


def test_entries_that_are_stored_twice_stand_for_their_sum():
    """And the caller's array stays as it was."""
    twice = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), [0, 3, 3]), (2, 2))
    engine = SAPCA(1, center=False).partial_fit(twice)

    assert 3 == twice.nnz
    np.testing.assert_allclose([[9.0, 12.0], [12.0, 16.0]], engine.whole_scatter.scatter)


def test_no_rows_are_no_news():
    """An empty block changes nothing."""
    engine = SAPCA(2).partial_fit(rows(30, 5, 0.5))
    before = engine.subspace

    assert before is engine.partial_fit(rows(30, 5, 0.5)[:0]).subspace
