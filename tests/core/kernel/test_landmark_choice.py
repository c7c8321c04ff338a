"""Which rows become landmarks: chances that are ridge leverages, and rare rows found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge.features import Gaussian, Landmarks, Laplace
from submerge.kernel.nystrom import NystromPCA, Pilots, choose, leverage
from support import kernels
from support.kernels import KERNELS, clustered

SEEDS = st.integers(0, 10_000)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("ridge", [0.1, 5.0])
def test_leverage_from_all_rows_is_exact(kernel, ridge):
    """With every row in the sample it is the diagonal of K (K + ridge I)^-1."""
    X = clustered(50)

    found = Pilots.of(X, kernel, share=1).leverage(X, ridge=ridge)

    K = kernel(X, X)
    np.fill_diagonal(K, kernel.diagonal(X))
    atol = 1e-5 if isinstance(kernel, Laplace) else 1e-8  # its distances are roots, of rounding
    np.testing.assert_allclose(kernels.ridge_leverage(K, ridge), found, atol=atol)


def test_leverage_from_a_sample_that_stands_for_more():
    """Where each row is there twice, one of each pair, counted twice, is enough."""
    X, kernel = clustered(30), KERNELS[0]
    twice = np.vstack([X, X])

    found = Pilots.of(X, kernel, share=2).leverage(twice, ridge=0.5)

    np.testing.assert_allclose(kernels.ridge_leverage(kernel(twice, twice), 0.5), found, atol=1e-8)


@given(SEEDS, st.integers(1, 30), st.sampled_from([0.01, 1.0]))
def test_leverage_from_some_rows_never_understates(seed, s, ridge):
    """A row that the sample does not know is thought rarer than it is, not commoner."""
    X, kernel = clustered(40, seed=seed), KERNELS[0]

    found = Pilots.of(X[:s], kernel, share=1).leverage(X, ridge=ridge)

    assert (kernels.ridge_leverage(kernel(X, X), ridge) <= found + 1e-9).all()


def ridge_for(K: np.ndarray, rank: int) -> float:
    """What rank misses, over rank (Musco and Musco)."""
    return kernels.optimum(K, rank, center=False) / rank


@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[2], KERNELS[3]], ids=str)
@pytest.mark.parametrize("rank", [1, 4])
def test_chances_are_ridge_leverages(kernel, rank):
    """Exactly, where two pilots for each landmark are all the rows there are."""
    X = clustered(60)
    K = kernel(X, X)

    found = leverage(X, 30, kernel, rank=rank, rng=np.random.default_rng(0))

    exact = kernels.ridge_leverage(K, ridge_for(K, rank))
    np.testing.assert_allclose(exact, found, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_chances_from_pilots_are_nearly_ridge_leverages(seed):
    """From an eighth of 800 rows: the sum within a fifth, and nearly all rows within half.

    The sum is how many landmarks the data need; a pilot for each row that it stands for would
    give eight times as many, a ridge that is off by its share likewise.
    """
    X, rank, kernel = clustered(800, seed=seed), 5, KERNELS[0]
    K = kernel(X, X)
    exact = kernels.ridge_leverage(K, ridge_for(K, rank))

    found = leverage(X, 50, kernel, rank=rank, rng=np.random.default_rng(seed))

    assert abs(found.sum() / exact.sum() - 1) < 0.2
    assert np.mean(np.abs(found / exact - 1) < 0.5) > 0.9


def test_where_nothing_is_missed_chances_are_numbers():
    """Rows of fewer directions than the rank, and rows without any: no ridge of zero."""
    X = np.repeat(clustered(2), 20, axis=0)

    for kernel in KERNELS:
        for some in (X, 0 * X):
            found = leverage(some, 10, kernel, rank=5, rng=np.random.default_rng(0))
            assert (np.isfinite(found) & (found >= 0)).all()
            # Two kinds of rows need two landmarks; Laplace's roots of rounding may ask for more.
            assert found.sum() <= 2.1 or isinstance(kernel, Laplace)


@pytest.mark.parametrize("how", ["uniform", "leverage", "residual"])
@settings(max_examples=25)
@given(seed=SEEDS, n=st.integers(1, 40), kernel=st.sampled_from(KERNELS), data=st.data())
@example(seed=3, n=40, kernel=KERNELS[3], data=None)  # rounding must not draw one again
def test_landmarks_are_different_rows(how, seed, n, kernel, data):
    """m row numbers, none twice, even where rows are all alike; the seed determines which."""
    m = data.draw(st.integers(1, n)) if data else n - 1
    X = np.repeat(clustered(1), n, axis=0) if seed % 2 else clustered(n, seed=seed)

    first, again = (
        choose(how, X, m, kernel, rank=min(3, m), rng=np.random.default_rng(seed)) for _ in range(2)
    )

    assert m == len(set(first.tolist()))
    assert set(first.tolist()) <= set(range(n))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("how", ["leverage", "residual"])
def test_rare_rows_become_landmarks(how):
    """Of six clusters with 10 of 2000 rows each, none is left out."""
    X = kernels.unbalanced(0)

    chosen = choose(how, X, 80, Gaussian(1 / 16), rank=20, rng=np.random.default_rng(0))

    assert set(range(6)) == {(row - 1940) // 10 for row in chosen if row >= 1940}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_rare_rows_are_worth_finding(seed):
    """1940 + 6 x 10 points, gamma 1/16, l = 20, m = 80: at most half of uniform's excess."""
    X, kernel = kernels.unbalanced(seed), Gaussian(1 / 16)
    Kc = kernels.centered(kernel(X, X))
    best = kernels.optimum(Kc, 20, center=False)

    def excess(how: str) -> float:
        rng = np.random.default_rng(seed)
        span = Landmarks(kernel, X[choose(how, X, 80, kernel, rank=20, rng=rng)])
        scores = NystromPCA.of(X, span, rank=20).scores(X)
        return kernels.missed(Kc, scores, center=False) / best - 1

    uniform = excess("uniform")
    assert excess("leverage") <= 0.5 * uniform
    assert excess("residual") <= 0.5 * uniform


@pytest.mark.parametrize("how", ["leverage", "residual"])
def test_sparse_rows_are_chosen_as_dense_ones(how):
    """By the same chances."""
    sparse = pytest.importorskip("scipy.sparse")
    X = clustered(200, 9) * (np.random.default_rng(1).random((200, 9)) < 0.4)

    dense, same = (
        choose(how, Z, 20, KERNELS[0], rank=3, rng=np.random.default_rng(0))
        for Z in (X, sparse.csr_matrix(X))
    )

    np.testing.assert_array_equal(dense, same)


def test_an_unknown_choice_is_named():
    """The error names the choices in one line."""
    with pytest.raises(UsageError, match=r'"uniform", "leverage", "residual", or rows, got .best'):
        choose("best", clustered(9), 3, KERNELS[0], rank=2, rng=np.random.default_rng(0))
