"""NY-KPCA: exact within its landmarks' span, never below exact, additive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge.features import Gaussian, Landmarks, Laplace, Polynomial
from submerge.kernel.nystrom import CHUNK, Covariance, NystromPCA, outside_span
from support import kernels, oracle
from support.kernels import KERNELS, clustered

SEEDS = st.integers(0, 10_000)


def learnt(X: np.ndarray, m: int, kernel=KERNELS[0], *, rank: int = 3, center=True) -> NystromPCA:
    """NY-KPCA with the first m rows as landmarks."""
    return NystromPCA.of(X, Landmarks(kernel, X[:m]), rank=rank, center=center)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_with_all_rows_as_landmarks_it_is_exact(kernel, center):
    """Eigenvalues, and scores up to sign, are those of the whole Gram matrix."""
    X = clustered(60)

    model = learnt(X, 60, kernel, center=center)

    scores, eigenvalues = kernels.exact_kernel_pca(kernel(X, X), 3, center=center)
    np.testing.assert_allclose(eigenvalues, model.directions.eigenvalues, rtol=1e-8)
    np.testing.assert_allclose(np.abs(scores), np.abs(model.scores(X)), atol=1e-6)


@settings(max_examples=40)
@given(
    SEEDS,
    st.integers(1, 40),
    st.integers(1, 5),
    st.sampled_from(KERNELS),
    st.sampled_from([1.0, 1e-3, 1e-6]),
    st.booleans(),
)
def test_never_below_exact(seed, m, rank, kernel, size, center):
    """No landmarks, however alike, let it miss less than exact kernel PCA of that rank."""
    X = clustered(40, seed=seed)
    X[1:20] = X[0] + size * (X[1:20] - X[0])

    scores = learnt(X, m, kernel, rank=rank, center=center).scores(X)

    K = kernel(X, X)
    # Rounding of the trace, which both are taken from.
    slack = 1e-9 * np.trace(K)
    missed = kernels.missed(K, scores, center=center)
    assert kernels.optimum(K, scores.shape[1], center=center) <= missed + slack


@given(SEEDS, st.integers(1, 30), st.sampled_from(KERNELS))
def test_eigenvalues_never_overstate(seed, m, kernel):
    """Each is at most the exact one, and all of them with what is missed make the whole."""
    X = clustered(30, seed=seed)
    model, K = learnt(X, m, kernel, rank=30), kernel(X, X)

    found = model.directions.eigenvalues
    exact = kernels.exact_kernel_pca(K, 30)[1]

    assert (found <= exact[: len(found)] + 1e-9 * exact[0]).all()
    assert np.isclose(model.energy, found.sum() + model.covariance.outside, rtol=1e-9)


def test_equal_landmarks_count_once():
    """The eigenvalue cut leaves out what repeats: it changes no score."""
    X = clustered(50)
    once = Landmarks(KERNELS[0], X[:8])
    again = Landmarks(KERNELS[0], np.vstack([X[:8], X[:8], X[3:5]]))

    one, other = (NystromPCA.of(X, span, rank=3) for span in (once, again))

    np.testing.assert_allclose(one.residual(X), other.residual(X), atol=1e-9)
    np.testing.assert_allclose(np.abs(one.scores(X)), np.abs(other.scores(X)), atol=1e-6)


@pytest.mark.parametrize("apart", [1e-15, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3])
def test_landmarks_that_nearly_coincide_make_nothing_up(apart):
    """Below the cut, K is rounding: no coordinate grows from it, nor any direction's coefficients.

    Their sizes show by how much a rounding of the kernel, 1e-16, is multiplied: by 1e5.
    """
    X = clustered(30)
    near = np.repeat(X[:5], 3, axis=0) * (1 + apart * clustered(15))
    assert 15 == len(np.unique(near, axis=0))

    model = NystromPCA.of(X, Landmarks(Gaussian(0.1), near), rank=5)

    lengths = (model.landmarks.lift(X) ** 2).sum(axis=1)
    assert (lengths <= 1 + 1e-6).all()
    assert np.abs(model.coefficients).max() <= 1e5
    K = Gaussian(0.1)(near, near)
    gram = model.coefficients @ K @ model.coefficients.T
    np.testing.assert_allclose(np.eye(5), gram, atol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("repeated", [False, True])
def test_coefficients_are_the_directions(kernel, repeated):
    """Orthonormal in feature space, and K(x, L) times them are the scores; to rounding."""
    X = clustered(60)
    landmarks = np.vstack([X[:8], X[:8]]) if repeated else X[:12]
    model = NystromPCA.of(X, Landmarks(kernel, landmarks), rank=3, center=False)
    B = model.coefficients
    # Laplace's distances are roots: a rounding of 1e-15 under them is one of 3e-8.
    atol = 1e-5 if isinstance(kernel, Laplace) else 1e-9 * np.abs(model.scores(X)).max()

    np.testing.assert_allclose(np.eye(3), B @ kernel(landmarks, landmarks) @ B.T, atol=1e-7)
    np.testing.assert_allclose(kernel(X, landmarks) @ B.T, model.scores(X), atol=atol)


def test_coordinates_depend_on_landmarks_alone():
    """The root is symmetric, so another order of landmarks only reorders the coordinates.

    Eigenvectors, which it is made from, turn with the LAPACK, and would not do for summaries
    that are to be added up across machines.
    """
    X, order = clustered(40), np.random.default_rng(0).permutation(12)

    expected = Landmarks(KERNELS[0], X[:12]).lift(X)[:, order]

    np.testing.assert_allclose(expected, Landmarks(KERNELS[0], X[:12][order]).lift(X), atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_what_lies_outside_the_span(kernel):
    """It is the distance that no combination of landmarks beats."""
    X = clustered(30)
    span = Landmarks(kernel, X[:6])
    K = kernel(X[:6], X[:6])

    twin = kernels.off_span(K, kernel(X, X[:6]), np.diag(kernel(X, X)))

    np.testing.assert_allclose(twin, outside_span(X, span.lift(X), kernel), atol=1e-7)


def test_with_the_linear_kernel_the_residual_is_spe():
    """Landmarks that span R^d leave plain PCA: its squared distances off the subspace."""
    X = clustered(80, dim=5)
    truth = oracle.twin(X)
    U = truth.basis(2)
    off = X - truth.mean

    residual = learnt(X, 10, Polynomial(1, 1.0), rank=2).residual(X)

    np.testing.assert_allclose(((off - off @ U @ U.T) ** 2).sum(axis=1), residual, atol=1e-9)


@settings(max_examples=40)
@given(SEEDS, st.lists(st.integers(1, 25), min_size=1, max_size=6), st.booleans())
def test_federated_is_pooled(seed, sizes, center):
    """However rows are dealt out, summaries seen from the same landmarks add up, to 1e-12."""
    parts = [clustered(n, seed=seed + i) for i, n in enumerate(sizes)]
    X = np.vstack(parts)
    span = Landmarks(KERNELS[0], clustered(9, seed=seed))

    whole = Covariance.of(X, span)
    first, *others = (Covariance.of(part, span) for part in parts)
    one = NystromPCA(span, first, 3, center).joined(*others)

    assert whole.count == one.covariance.count
    for center_ in (True, False):
        np.testing.assert_allclose(
            whole.about(center=center_), one.covariance.about(center=center_), atol=1e-12 * len(X)
        )
    np.testing.assert_allclose(whole.mean, one.covariance.mean, atol=1e-12)
    assert np.isclose(whole.outside, one.covariance.outside, rtol=1e-12, atol=1e-12)


def test_many_rows_are_taken_a_few_at_a_time():
    """A summary, a score and a residual of more rows than are held at once are the same."""
    X = clustered(CHUNK + 300)
    span = Landmarks(KERNELS[0], X[:9])
    C = span.lift(X)

    model = NystromPCA.of(X, span, rank=3)

    np.testing.assert_allclose(oracle.twin(C).scatter, model.covariance.scatter, atol=1e-9)
    np.testing.assert_allclose((C - C.mean(axis=0)) @ model.directions.axes, model.scores(X))
    np.testing.assert_allclose(
        model.residual(X), np.concatenate([model.residual(X[:9]), model.residual(X[9:])])
    )


@pytest.mark.parametrize("form", ["csr_array", "coo_matrix"])
def test_sparse_rows_are_those_rows(form):
    """Of whatever form, more than are held at once: summaries, scores and residuals."""
    sparse = pytest.importorskip("scipy.sparse")
    X = clustered(CHUNK + 300, 6) * (np.random.default_rng(1).random((CHUNK + 300, 6)) < 0.4)
    Z, span = getattr(sparse, form)(X), Landmarks(Gaussian(0.1), X[:9])

    dense, same = (NystromPCA.of(rows, span, rank=3) for rows in (X, Z))

    assert np.isclose(dense.energy, same.energy, rtol=1e-12)
    np.testing.assert_allclose(dense.scores(X), same.scores(Z), atol=1e-9)
    np.testing.assert_allclose(dense.residual(X), same.residual(Z), atol=1e-9)


def test_equal_rows_have_no_direction():
    """Rounding of their mean is none."""
    model = NystromPCA.of(np.full((50, 3), 0.1), Landmarks(Gaussian(0.1), clustered(9, 3)), rank=3)

    assert model.directions.axes.shape == (9, 0)
    assert model.scores(clustered(4, 3)).shape == (4, 0)


@pytest.mark.parametrize("m", [1, 5, 30])
def test_the_energy_bounds_the_total(m):
    """Of what lies outside of the span the mean is not known: the total is less by its square."""
    X, kernel = clustered(200), KERNELS[0]
    K = kernel(X, X)
    model = learnt(X, m)

    C = model.landmarks.lift(X)
    unseen = float(np.mean(K - C @ C.T))  # the squared length of the mean, outside

    total = np.trace(kernels.centered(K))
    assert np.isclose(total + len(X) * unseen, model.energy)
    assert total <= model.energy <= total + model.covariance.outside
    assert np.isclose(np.trace(K), learnt(X, m, center=False).energy)
