"""One pass over a kernel matrix: what is kept, what is proven, and what is never held."""

from __future__ import annotations

import hashlib
import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from submerge import ShapeError, UsageError
from submerge.features.kernels import Gaussian, Laplace, Matern, Polynomial
from submerge.kernel.one_pass import columns_of, one_pass, sketch_matrix
from support import clusters

KERNELS = (Gaussian(0.5), Laplace(0.5), Matern(0.5), Polynomial(2, 1.0), Polynomial(3, 0.5, 1.0))
# Their squares, and those of readings of 1e3, are no numbers.
FAR = (Polynomial(2, 1e-90), Polynomial(2, 1e90), Polynomial(1, 1e-100), Polynomial(1, 1e100))
# Eigenvalues below CUT count as none, and what is left of rounding is 1e-11 of |K|.
CLOSE = 1e-8


def normal(n: int, d: int = 3, *, seed: int = 0) -> np.ndarray:
    """Rows without structure."""
    return np.random.default_rng(seed).standard_normal((n, d))


def approximated(kernel, X, *, rank, columns, seed=0, block_size=7):
    """What `one_pass` makes of rows X."""
    test = sketch_matrix(len(X), columns, seed=seed)
    return one_pass(columns_of(kernel, X, block_size=block_size), test, rank=rank)


@pytest.mark.slow
@given(
    st.sampled_from([*KERNELS, *FAR]),
    st.integers(1, 40),
    st.integers(1, 12),
    st.integers(0, 6),
    st.integers(0, 2**63 - 1),
    st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_it_never_overstates_and_its_bound_holds(kernel, n, rank, spare, seed, size):
    """0 <= K_hat <= K for any sketch, and the error is at most the one that is claimed."""
    X = size * normal(n, seed=seed % 1000)
    K = kernel(X, X)
    largest = np.abs(K).max()
    norm = np.linalg.norm(K / largest)

    rank = min(rank, n)
    found = approximated(kernel, X, rank=rank, columns=rank + spare, seed=seed)

    # Squares of K's entries need not be numbers: the twin has them of size one.
    scores = found.scores / largest**0.5
    K, K_hat = K / largest, scores @ scores.T
    assert np.linalg.eigvalsh(K - K_hat)[0] >= -CLOSE * norm
    # The bound is a root of a difference: the rounding of that is the root of its own.
    assert clusters.relative_error(K, scores) <= found.error_bound + CLOSE**0.5
    assert np.isclose(norm, found.norm / largest)
    values = np.linalg.eigvalsh(K_hat)[::-1][:rank]
    np.testing.assert_allclose(found.eigenvalues / largest, values, atol=CLOSE * norm)
    assert (found.eigenvalues >= 0).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_with_as_many_columns_as_rows_it_is_the_best_of_its_rank(kernel):
    """Nothing is sketched then: scores are the leading eigenvectors, scaled."""
    X = normal(30)
    values, vectors = np.linalg.eigh(kernel(X, X))
    values, vectors = values[-4:], vectors[:, -4:]

    found = approximated(kernel, X, rank=4, columns=30)

    np.testing.assert_allclose(values[::-1], found.eigenvalues, rtol=1e-8)
    np.testing.assert_allclose(
        vectors * values @ vectors.T, found.scores @ found.scores.T, atol=1e-8 * values[-1]
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("seed", [0, 1])
def test_it_is_the_papers_algorithm(kernel, seed):
    """With B solved from Q and then symmetrised, as printed, the approximation is the same."""
    X = normal(100, seed=seed)
    K, test = kernel(X, X), sketch_matrix(100, 8, seed=seed)
    printed = clusters.one_pass_as_printed(K, test, 3)

    found = approximated(kernel, X, rank=3, columns=8, seed=seed)

    # B as printed is symmetric to the rounding of an 8 x 8 solve.
    tolerance = 1e-8 * np.linalg.norm(K)
    np.testing.assert_allclose(printed @ printed.T, found.scores @ found.scores.T, atol=tolerance)


def test_cutting_to_the_rank_afterwards_is_what_makes_it_accurate():
    """r + l columns cut to r beat r columns, and come within a hundredth of the optimum."""
    X = normal(200, 5)
    kernel = Gaussian(0.1)
    K = kernel(X, X)
    values = np.linalg.eigvalsh(K)
    best = np.sqrt((values[:-3] ** 2).sum() / (values**2).sum())

    errors = {
        columns: np.mean(
            [
                clusters.relative_error(
                    K, approximated(kernel, X, rank=3, columns=columns, seed=seed).scores
                )
                for seed in range(5)
            ]
        )
        for columns in (3, 23)
    }

    assert best <= errors[23] < best + 0.01 < errors[3]


@given(st.integers(1, 60))
def test_blocks_change_nothing(block_size):
    """However many columns come at once, scores are the same to rounding."""
    X = normal(50)

    whole, cut = (
        approximated(Gaussian(0.5), X, rank=2, columns=9, block_size=size)
        for size in (50, block_size)
    )

    np.testing.assert_allclose(
        whole.scores @ whole.scores.T, cut.scores @ cut.scores.T, rtol=0, atol=1e-9
    )


def test_scores_are_the_extension_at_the_columns_own_rows():
    """K @ coefficients gives back the scores: new rows and old ones live in one space."""
    X = normal(60)
    kernel = Gaussian(0.5)

    found = approximated(kernel, X, rank=3, columns=10)

    np.testing.assert_allclose(found.scores, kernel(X, X) @ found.coefficients, atol=1e-9)


def test_directions_that_k_does_not_have_are_zeros():
    """A kernel matrix of rank 3 has no fourth score, and one of zeros has none."""
    X = normal(40, 2)

    three = approximated(Polynomial(2, 1.0), X, rank=5, columns=12)
    none = approximated(Polynomial(2, 1.0), 0 * X, rank=5, columns=12)

    assert (three.scores.shape, none.scores.shape) == ((40, 5), (40, 5))
    assert three.eigenvalues[2] > 1 > 1e-9 > three.eigenvalues[3]
    # What is left of the norm is the root of the rounding of 1.
    assert three.error_bound < 1e-6
    assert not none.scores.any()
    assert none.error_bound == 0


def test_small_directions_are_kept():
    """An eigenvalue of a millionth of the largest comes out, sketched, to four digits."""
    X = normal(40, 3) * [1, 0.03, 1e-3]
    expected = np.linalg.svd(X, compute_uv=False) ** 2

    found = approximated(Polynomial(1, 1.0), X, rank=3, columns=12)

    np.testing.assert_allclose(expected, found.eigenvalues, rtol=1e-4)


@pytest.mark.parametrize(("share", "kept"), [(3e-10, True), (3e-11, False)])
def test_directions_above_the_cut_are_kept(share, kept):
    """An eigenvalue at 3e-10 of the largest counts, one at 3e-11 is taken for rounding."""
    found = one_pass([np.diag([1.0, share])], np.eye(2), rank=2)

    np.testing.assert_allclose([1, kept * share], found.eigenvalues, rtol=1e-9)


@pytest.mark.parametrize("gamma", [1e-90, 1.0, 1e90])
def test_the_bound_has_no_size(gamma):
    """Where squares of the kernel are no numbers, it is what it is for those of size one."""
    X = normal(30)
    plain, found = (
        approximated(Polynomial(2, g), X, rank=2, columns=5, block_size=7) for g in (1.0, gamma)
    )

    assert np.isclose(plain.error_bound, found.error_bound, rtol=1e-6)
    assert np.isclose(plain.norm * gamma**2, found.norm, rtol=1e-12, atol=0)
    assert 0.1 < found.error_bound < 0.9


def test_blocks_of_several_sizes_have_one_norm():
    """Columns too small to be squared, and others too large, and of zeros: one length."""
    small, large = [[3e-160, 4e-160], [3e-170, 4e-170]], [[3e170, 4e170]]
    for sizes in (*small, *large, [0.0, 5.0], [1e-200, 5.0], [0.0, 0.0]):
        K = np.diag(sizes)
        found = one_pass([K[:1], K[1:]], np.eye(2), rank=1).norm
        assert np.isclose(np.hypot(*sizes), found, rtol=1e-12, atol=0)


def test_the_kernel_matrix_is_never_held():
    """2000 rows take a tenth of what their kernel matrix would."""
    X = normal(2000)
    tracemalloc.start()
    try:
        approximated(Gaussian(0.5), X, rank=2, columns=12, block_size=32)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 2000 * 2000 * 8 / 10


# -- what clusters cost: Theorem 1 ----------------------------------------------


def partitions(n: int, k: int) -> list[np.ndarray]:
    """All ways to put n rows into k clusters, none of them empty."""
    ways = (np.array(each) for each in itertools.product(range(k), repeat=n - 1))
    return [each for each in (np.append(0, w) for w in ways) if len(np.unique(each)) == k]


def cost(K: np.ndarray, labels: np.ndarray) -> float:
    """The objective of kernel k-means: tr((I - C'C) K (I - C'C)), cluster by cluster."""
    return float(sum(cost_of(K[np.ix_(at, at)]) for at in map(labels.__eq__, np.unique(labels))))


def cost_of(block: np.ndarray) -> float:
    """Squared distances of a cluster's rows from its mean, from its own kernel matrix."""
    return float(np.trace(block) - block.sum() / len(block))


def regret(K: np.ndarray, K_hat: np.ndarray, k: int) -> float:
    """How much more the best clusters for K_hat cost under K than the best for K."""
    ways = partitions(len(K), k)
    chosen = min(ways, key=lambda labels: cost(K_hat, labels))
    return cost(K, chosen) - min(cost(K, labels) for labels in ways)


@pytest.mark.slow
@given(
    st.sampled_from(KERNELS),
    st.integers(2, 6),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 2**31),
)
def test_theorem_1_clusters_of_an_approximation_cost_little_more(kernel, n, k, rank, seed):
    """At most the trace norm of E = K - K_hat; tr E for the best of a rank, and for ours."""
    k, rank = min(k, n), min(rank, n)
    K = kernel(X := normal(n, seed=seed), X)
    values, vectors = np.linalg.eigh(K)
    best = vectors[:, -rank:] * values[-rank:] @ vectors[:, -rank:].T
    scores = approximated(kernel, X, rank=rank, columns=min(n, rank + 1), seed=seed).scores
    other = np.random.default_rng(seed + 1).standard_normal((n, rank))
    rounding = CLOSE * np.trace(K)

    assert regret(K, best, k) <= np.trace(K - best) + rounding
    assert regret(K, scores @ scores.T, k) <= np.trace(K - scores @ scores.T) + rounding
    # The paper has twice the norm: but two projections differ by one that is at most 1 long.
    K_hat = other @ other.T
    assert regret(K, K_hat, k) <= np.linalg.norm(K - K_hat, "nuc") + rounding


def test_theorem_1_leaves_no_room():
    """Four rows for which the clusters of K_hat cost all of tr E more, and all of |E|_*."""
    u, v = np.array([1, 1, -1, -1]) / 2, np.array([1, -1, 1, -1]) / 2
    U, V = np.outer(u, u), np.outer(v, v)

    assert regret(1e-3 * U + V, 1e-3 * U, 2) > 0.99 * np.trace(V)
    # Each direction of E = 1.01 V - U tells against the clusters that K_hat = U + 0.99 V prefers.
    assert regret(2 * V, U + 0.99 * V, 2) > 0.99 * np.linalg.norm(1.01 * V - U, "nuc")


def test_the_bound_on_the_error_is_no_estimate():
    """On rows of unit length and with rank 7 it holds, and is more than three times the error."""
    X = np.abs(normal(200, 6)) + 1.0
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    kernel = Polynomial(2, 1.0)

    found = approximated(kernel, X, rank=7, columns=9)
    error = clusters.relative_error(kernel(X, X), found.scores)

    assert 3 * error < found.error_bound


# -- the sketch ----------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 5, 63])
def test_the_sketch_has_columns_of_a_hadamard_matrix(columns):
    """For a power of two all entries are of one size and columns orthogonal, exactly."""
    test = sketch_matrix(64, columns, seed=3) * np.sqrt(columns)

    np.testing.assert_array_equal(np.ones_like(test), np.abs(test).round(12))
    np.testing.assert_allclose(64 * np.eye(columns), test.T @ test, atol=1e-9)


def test_no_two_columns_agree_where_n_is_just_above_a_power_of_two():
    """Cut to the first 65 of 128 rows, half of the columns would equal another but once."""
    test = sketch_matrix(65, 64, seed=0)

    overlap = np.abs(test.T @ test)[~np.eye(64, dtype=bool)] * 64 / 65
    assert overlap.max() < 0.7


def test_the_sketch_has_unit_rows_on_average():
    """E Omega Omega' = I: a sketch's inner products are right on average."""
    found = [sketch_matrix(6, 4, seed=seed) for seed in range(1000)]

    mean = np.mean([test @ test.T for test in found], axis=0)
    # Entries have variance below 1: five standard deviations of the mean of 1000.
    np.testing.assert_allclose(np.eye(6), mean, atol=5 / np.sqrt(1000))


def test_the_sketch_is_the_same_everywhere():
    """Its signs are pinned: no library's stream of random numbers moves them."""
    test = sketch_matrix(100, 12, seed=42)

    digest = hashlib.sha256(np.sign(test).astype(np.int8).tobytes()).hexdigest()
    assert digest == "701b46fe13356fa524ad92453158c6daaf5c89f1bbaf1a80ff77e2ca80614744"


# -- what is refused -----------------------------------------------------------


def test_what_has_no_answer_is_refused():
    """A rank above the columns, too many, too few or other columns, an overflow, invalid seeds."""
    X = normal(10)
    K, test = Gaussian(0.5)(X, X), sketch_matrix(10, 4, seed=0)

    with pytest.raises(UsageError, match="rank must be at most the 4 columns"):
        one_pass([K], test, rank=5)
    with pytest.raises(UsageError, match="rank must be a whole number of at least 1, got 0"):
        one_pass([K], test, rank=0)
    with pytest.raises(UsageError, match="all 10 of the kernel matrix, got 6"):
        one_pass([K[:6]], test, rank=2)
    with pytest.raises(ShapeError, match=r"\(at most 4, 10\), got \(6, 10\)"):
        one_pass([K[:6], K[:6]], test, rank=2)
    with pytest.raises(ShapeError, match=r"\(at most 10, 10\), got \(10, 9\)"):
        one_pass([K[:, :9]], test, rank=2)
    with pytest.raises(UsageError, match="kernel values must be finite"):
        list(columns_of(Polynomial(9, 1.0), 1e40 * X, block_size=5))
    with pytest.raises(UsageError, match="block_size must be a whole number of at least 1, got 0"):
        list(columns_of(Gaussian(1.0), X, block_size=0))
    with pytest.raises(UsageError, match="columns must be a whole number of at least 1, got 0"):
        sketch_matrix(10, 0, seed=0)
    for seed in (-1, 2**63, 0.5):
        with pytest.raises(UsageError, match=f"seed must be a whole number from 0 .* got {seed}"):
            sketch_matrix(10, 4, seed=seed)


# -- the paper's figures -------------------------------------------------------


@pytest.mark.slow
def test_two_rings_are_approximated_as_in_the_paper():
    """Rank 2 of <x, y>^2 with l = 10: error .40, where Nystrom has .45 to .60 and .41 to .46."""
    one, few, many = [], [], []
    for seed in range(3):
        X, _ = clusters.rings(seed=seed)
        K = clusters.squared_product(X, X)
        found = approximated(Polynomial(2, 1.0), X, rank=2, columns=12, seed=seed, block_size=256)
        one.append(clusters.relative_error(K, found.scores))
        # K has rank 3 < 12: the sketch loses nothing, and the bound is the error.
        assert np.isclose(one[-1], found.error_bound, rtol=1e-6)
        for landmarks, errors in ((20, few), (100, many)):
            errors += [
                clusters.relative_error(
                    K,
                    clusters.nystrom_scores(
                        clusters.squared_product, X, landmarks=landmarks, rank=2, seed=draw
                    ),
                )
                for draw in range(5)
            ]

    np.testing.assert_allclose(one, 0.40, atol=0.01)
    assert 0.45 < np.mean(few) < 0.60
    assert 0.41 < np.mean(many) < 0.46


@pytest.mark.slow
def test_on_the_segmentation_table_it_beats_nystrom():
    """Rows of unit length, <x, y>^2, r = 2, l = 10: a lower error than of 50 landmarks."""
    X, _ = clusters.segments()
    K = clusters.squared_product(X, X)

    ours = [
        clusters.relative_error(
            K, approximated(Polynomial(2, 1.0), X, rank=2, columns=12, seed=seed).scores
        )
        for seed in range(5)
    ]
    theirs = [
        clusters.relative_error(
            K, clusters.nystrom_scores(clusters.squared_product, X, landmarks=50, rank=2, seed=seed)
        )
        for seed in range(5)
    ]

    assert max(ours) < np.mean(theirs)


@pytest.mark.parametrize("kernel", KERNELS)
def test_sparse_rows_have_the_columns_of_the_same_rows_made_dense(kernel):
    """In blocks that do not divide the rows."""
    X = np.where(np.random.default_rng(3).random((50, 8)) < 0.2, normal(50, 8), 0.0)
    here = np.concatenate(list(columns_of(kernel, X, block_size=7)))
    there = np.concatenate(list(columns_of(kernel, sparse.csr_array(X), block_size=7)))

    # Squared distances are good to 1e-16, and a row's distance to itself to the root of that.
    np.testing.assert_allclose(here, there, rtol=1e-11, atol=1e-7)
