"""NystromKPCA: kernel PCA's numbers from landmarks, and merging without loss."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.datasets import make_circles
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from submerge import SchemaMismatch, UsageError
from submerge.features import Gaussian, Polynomial
from submerge.sklearn import NystromKPCA, StreamingPCA
from support import estimators, kernels
from support.estimators import normal

BATTERY = [
    NystromKPCA(),
    NystromKPCA(2, kernel="laplace", landmarks="leverage", n_landmarks=7),
    NystromKPCA(2, kernel=Polynomial(3, coef0=1.0), landmarks="residual", center=False),
    NystromKPCA(1, kernel="matern", gamma=0.3, n_landmarks=1),
]


@pytest.mark.parametrize(("estimator", "check"), estimators.battery(BATTERY), ids=estimators.what)
def test_it_keeps_every_rule_of_scikit_learn(estimator, check):
    """No check is expected to fail."""
    check(estimator)


@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names:UserWarning")
@pytest.mark.parametrize("name", estimators.FOR_ITS_OWN)
def test_it_keeps_the_rules_for_scikit_learns_own(name):
    """Names and containers come out as from scikit-learn's own transformers."""
    getattr(estimator_checks, name)("NystromKPCA", NystromKPCA(2))


def test_with_all_rows_as_landmarks_it_is_kernel_pca():
    """Eigenvalues, and scores of rows seen and unseen up to sign, are KernelPCA's."""
    X, new = normal(60), normal(9, seed=1)
    exact = KernelPCA(3, kernel="rbf", gamma=0.2, eigen_solver="dense").fit(X)

    learnt = NystromKPCA(3, gamma=0.2, n_landmarks=60).fit(X)

    np.testing.assert_allclose(exact.eigenvalues_, learnt.eigenvalues_, rtol=1e-8)
    for Z in (X, new):
        np.testing.assert_allclose(
            np.abs(exact.transform(Z)), np.abs(learnt.transform(Z)), atol=1e-6
        )
    K = Gaussian(0.2)(X, X)
    np.testing.assert_allclose(
        learnt.eigenvalues_ / np.trace(kernels.centered(K)), learnt.explained_variance_ratio_
    )
    assert learnt.outside_ratio_ < 1e-9


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("n_landmarks", [2, 10, 40])
def test_shares_of_the_total_are_bounded(n_landmarks, center):
    """With far fewer landmarks than rows, true shares lie between the two ratios."""
    X = normal(400, 8)
    learnt = NystromKPCA(2, gamma=0.05, n_landmarks=n_landmarks, center=center).fit(X)
    K = Gaussian(0.05)(X, X)
    true = learnt.eigenvalues_ / np.trace(kernels.centered(K) if center else K)

    least, outside = learnt.explained_variance_ratio_, learnt.outside_ratio_

    assert 0.05 < outside < 1  # or the bounds are not tried
    assert (least <= true * (1 + 1e-12)).all()
    assert (true <= least / (1 - outside)).all()
    if not center:
        np.testing.assert_allclose(true, least)


def test_components_are_coefficients_of_landmarks():
    """Orthonormal in feature space; times the kernel with the landmarks they give the scores."""
    X = normal(100)
    learnt = NystromKPCA(3, gamma=0.2, n_landmarks=20, center=False).fit(X)
    K = learnt.kernel_(learnt.landmarks_, learnt.landmarks_)

    np.testing.assert_allclose(np.eye(3), learnt.components_ @ K @ learnt.components_.T, atol=1e-8)
    np.testing.assert_allclose(
        learnt.kernel_(X, learnt.landmarks_) @ learnt.components_.T, learnt.transform(X), atol=1e-8
    )


def test_the_stream_may_be_cut_anywhere():
    """Once landmarks are settled, partial_fit row by row is fit on all rows."""
    X = normal(90)
    streamed = NystromKPCA(3, landmarks=X[:15]).fit(X[:40])
    for row in X[40:]:
        streamed.partial_fit(row[None])

    whole = NystromKPCA(3, landmarks=X[:15]).fit(X)

    assert 90 == streamed.n_samples_seen_
    np.testing.assert_allclose(whole.eigenvalues_, streamed.eigenvalues_, rtol=1e-12)
    np.testing.assert_allclose(whole.score_samples(X), streamed.score_samples(X), atol=1e-12)


def test_nodes_with_the_same_landmarks_merge_without_loss():
    """Federated NY-KPCA equals the pooled one, to 1e-12; who merges first does not matter."""
    X = normal(300)
    landmarks = X[::10]
    a, b, c = (NystromKPCA(4, landmarks=landmarks).fit(part) for part in np.split(X, [30, 200]))
    pooled = NystromKPCA(4, landmarks=landmarks).fit(X)

    for both in (a.merge(b).merge(c), c.merge(a.merge(b))):
        assert 300 == both.n_samples_seen_
        np.testing.assert_allclose(pooled.eigenvalues_, both.eigenvalues_, rtol=1e-12)
        np.testing.assert_allclose(
            pooled.score_samples(X), both.score_samples(X), rtol=1e-10, atol=1e-12
        )


def test_landmarks_settle_gamma():
    """So nodes that share an array need share nothing else."""
    landmarks = normal(20)

    a, b = (NystromKPCA(2, landmarks=landmarks).fit(5 * normal(30, seed=s)) for s in (1, 2))

    assert a.kernel_ == b.kernel_
    assert np.isclose(1 / (2 * landmarks.var(axis=0).sum()), a.kernel_.gamma, rtol=1e-12)
    np.testing.assert_array_equal(landmarks, a.landmarks_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("landmarks", ["uniform", "leverage", "residual", None])
def test_landmarks_go_round(landmarks, dtype):
    """Who is given `landmarks_`, however they were found, merges with whom they are from."""
    X = normal(300).astype(dtype)
    landmarks = X[:15] if landmarks is None else landmarks
    a = NystromKPCA(2, landmarks=landmarks, n_landmarks=15).fit(X[:200])

    b = NystromKPCA(2, landmarks=a.landmarks_).fit(X[200:])
    c = NystromKPCA(2, landmarks=b.landmarks_.tolist()).fit(X[200:])

    assert a.kernel_ == b.kernel_ == c.kernel_
    assert 400 == a.merge(b).merge(c).n_samples_seen_


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ({"landmarks": normal(20, seed=5)}, "landmarks: expected the same, got others"),
        ({"gamma": 0.3}, "gamma: expected 0.1, got 0.3"),
        ({"kernel": "laplace"}, "kernel: expected gaussian, got laplace"),
        ({"center": False}, "center: expected fleet, got none"),
    ],
    ids=["landmarks", "gamma", "kernel", "center"],
)
def test_nodes_that_differ_never_merge(other, line):
    """Other landmarks, kernel, gamma or centering: a SchemaMismatch that names it."""
    X = normal(40)
    options = {"landmarks": normal(20), "gamma": 0.1}

    with pytest.raises(SchemaMismatch, match=line):
        NystromKPCA(2, **options).fit(X).merge(NystromKPCA(2, **options | other).fit(X))


def test_only_fitted_estimators_of_this_kind_merge():
    """An unfitted one, or another class, is refused by name."""
    fitted = NystromKPCA(2).fit(normal(20))

    with pytest.raises(NotFittedError):
        fitted.merge(NystromKPCA())
    with pytest.raises(UsageError, match="got StreamingPCA"):
        fitted.merge(StreamingPCA().fit(normal(20)))


def test_the_seed_says_which_landmarks():
    """The same one the same rows; another one others."""
    X = normal(200)

    first, again, other = (
        NystromKPCA(2, n_landmarks=10, random_state=s).fit(X).landmarks_ for s in (0, 0, 1)
    )

    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_grid_search_finds_gamma():
    """Kernel, gamma and landmarks are parameters like others."""
    X, ring = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    pipeline = make_pipeline(NystromKPCA(2, n_landmarks=30), LogisticRegression())

    grid = {"nystromkpca__gamma": [1e-6, 2.0], "nystromkpca__landmarks": ["uniform", "leverage"]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, ring)

    assert 2.0 == search.best_params_["nystromkpca__gamma"]


@pytest.mark.parametrize("landmarks", ["uniform", "leverage", "residual"])
@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_sparse_rows_are_those_rows(kernel, landmarks):
    """CSR in, the same numbers out: landmarks, gamma, scores; entries that come twice add up."""
    X = normal(90, 30) * (np.random.default_rng(1).random((90, 30)) < 0.2)
    rows, columns = X.nonzero()
    starts = np.append(0, 2 * np.cumsum(np.bincount(rows, minlength=90)))
    halves = np.repeat(X[rows, columns] / 2, 2)
    twice = sparse.csr_matrix((halves, np.repeat(columns, 2), starts), shape=X.shape)
    options = {"kernel": kernel, "landmarks": landmarks, "n_landmarks": 20}

    dense = NystromKPCA(3, **options).fit(X)
    learnt = NystromKPCA(3, **options).partial_fit(twice[:70]).partial_fit(twice[70:])
    same = NystromKPCA(3, **options).fit(twice)

    assert 90 == learnt.n_samples_seen_
    np.testing.assert_allclose(dense.landmarks_, same.landmarks_)
    np.testing.assert_allclose(dense.eigenvalues_, same.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(dense.score_samples(X), same.score_samples(twice), atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ({"n_components": 8, "n_landmarks": 5}, "landmarks must be at least the 8 comp.* got 5"),
        ({"n_components": 8, "landmarks": normal(5)}, "landmarks must be at least the 8 .* got 5"),
        ({"n_landmarks": 0}, "n_landmarks must be a whole number from 1 to 4096, got 0"),
        ({"n_landmarks": 4097}, "n_landmarks must be a whole number from 1 to 4096, got 4097"),
        ({"landmarks": "best"}, "landmarks must be one of .*, or rows, got .best"),
        ({"landmarks": normal(20, 3)}, r"landmarks must have shape \(m, 4\), got \(20, 3\)"),
        ({"n_landmarks": 1}, r'gamma="auto" expects .* got a variance of 0 \(landmarks'),
    ],
    ids=["fewer", "fewer rows", "none", "too many", "unknown", "columns", "one"],
)
def test_bad_landmarks_are_refused_in_fit(parameters, line):
    """One line each."""
    with pytest.raises(UsageError, match=line):
        NystromKPCA(**{"n_components": 1} | parameters).fit(normal(30))


@pytest.mark.parametrize("landmarks", ["uniform", "leverage", "residual"])
@pytest.mark.parametrize("far", [[], [3]], ids=["all rows", "one row"])
@pytest.mark.filterwarnings("error")
def test_a_kernel_that_overflows_is_refused_in_fit(landmarks, far):
    """However landmarks are found, and wherever the row is: one line, and no LinAlgError."""
    X = 1e-3 * normal(60)
    kernel = Polynomial(60, 1.0)
    if far:
        X[far] = 1e9
    else:
        kernel = Polynomial(60, 1e6)
        X *= 1e3

    for seed in range(5):
        with pytest.raises(UsageError, match=r"must be finite.* too steep"):
            NystromKPCA(
                1, kernel=kernel, landmarks=landmarks, n_landmarks=4, random_state=seed
            ).fit(X)
