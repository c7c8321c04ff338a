"""Clusterers on kernels: scikit-learn's rules, the paper's figures, and no kernel matrix."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

from submerge import SchemaMismatch, UsageError, merge
from submerge.features import Laplace, Polynomial
from submerge.sklearn import KernelSpectralClustering, OnePassKernelKMeans
from support import clusters, estimators
from support.estimators import what

BATTERY = [
    OnePassKernelKMeans(n_init=2),
    OnePassKernelKMeans(3, kernel="poly", coef0=1.0, n_components=1, oversample=0, n_init=2),
    OnePassKernelKMeans(2, kernel=Laplace(0.5), block_size=29, n_init=2, random_state=7),
    KernelSpectralClustering(n_init=2),
    KernelSpectralClustering(3, kernel="matern", nu=2.5, gamma=0.5, n_random_features=64, n_init=2),
]

EACH = [OnePassKernelKMeans(3, n_init=3), KernelSpectralClustering(3, n_init=3)]


def blobs(n: int = 150, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three clouds, far apart and far from zero, and which is whose."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    return 100 + 8 * np.eye(3, 4)[truth] + rng.standard_normal((n, 4)), truth


@pytest.mark.parametrize(("estimator", "check"), estimators.battery(BATTERY), ids=what)
def test_it_keeps_every_rule_of_scikit_learn(estimator, check):
    """No check is expected to fail."""
    check(estimator)


# -- what both do --------------------------------------------------------------


@pytest.mark.parametrize("estimator", EACH, ids=what)
def test_clouds_are_found_and_new_rows_join_theirs(estimator):
    """Labels are the clouds; predict labels new rows, and training rows as fit did."""
    X, truth = blobs()
    new, new_truth = blobs(60, seed=1)

    found = clone(estimator).fit(X)

    assert clusters.accuracy(truth, found.labels_) == 1
    np.testing.assert_array_equal(found.labels_, found.predict(X))
    both = np.append(found.labels_, found.predict(new))
    assert clusters.accuracy(np.append(truth, new_truth), both) == 1


@pytest.mark.parametrize("estimator", EACH, ids=what)
def test_a_seed_fixes_everything(estimator):
    """Equal seeds give equal bytes; another seed gives another embedding."""
    X, _ = blobs()
    first, second, other = (
        clone(estimator).set_params(random_state=seed).fit(X).embedding_ for seed in (1, 1, 2)
    )

    np.testing.assert_array_equal(first, second)
    assert not np.allclose(first, other)


@pytest.mark.parametrize("estimator", EACH, ids=what)
def test_a_pickled_clusterer_still_predicts(estimator):
    """A pickled copy predicts the same for new rows."""
    X, _ = blobs()
    found = clone(estimator).fit(X)

    copy = pickle.loads(pickle.dumps(found))  # noqa: S301 (our own bytes)

    np.testing.assert_array_equal(found.predict(X + 1), copy.predict(X + 1))


@pytest.mark.parametrize("estimator", EACH, ids=what)
def test_one_cluster_is_all_rows(estimator):
    """n_clusters=1 is no special case."""
    found = clone(estimator).set_params(n_clusters=1).fit(blobs(20)[0])

    assert not found.labels_.any()
    assert found.embedding_.shape == (20, 1)


@pytest.mark.parametrize("estimator", EACH, ids=what)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_equal_rows_are_one_cluster(estimator):
    """With a gamma that is given: nothing is divided by their distance."""
    found = clone(estimator).set_params(gamma=1.0).fit(np.full((9, 4), 0.1))

    assert len(set(found.labels_)) == 1


BAD = [
    ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1, got 0"),
    ({"n_clusters": 2.0}, "n_clusters must be a whole number of at least 1, got 2.0"),
    ({"n_clusters": 31}, "n_clusters must be at most n_samples=30, got 31"),
    ({"n_init": 0}, "n_init must be a whole number of at least 1, got 0"),
]
BAD_ONE_PASS = [
    ({"kernel": "polynomial", "degree": 0}, "degree must be .* got 0"),
    ({"kernel": "polynomial", "coef0": -1}, "coef0 must be .* got -1"),
    ({"kernel": "polynomial", "degree": 60, "gamma": 1e6}, "kernel values must be finite"),
    ({"n_components": 31}, "n_components must be at most n_samples=30, got 31"),
    ({"n_components": 0}, "n_components must be a whole number of at least 1, got 0"),
    ({"oversample": -1}, "oversample must be a whole number of at least 0, got -1"),
    ({"block_size": 0}, "block_size must be a whole number of at least 1, got 0"),
]
BAD_SPECTRAL = [
    ({"kernel": "polynomial"}, "Fourier features"),
    ({"feature_map": "nystrom"}, "feature_map must be one of"),
]


@pytest.mark.parametrize(
    ("estimator", "parameters", "message"),
    [(each, *bad) for each in EACH for bad in BAD]
    + [(EACH[0], *bad) for bad in BAD_ONE_PASS]
    + [(EACH[1], *bad) for bad in BAD_SPECTRAL],
    ids=str,
)
def test_bad_parameters_are_refused_in_fit(estimator, parameters, message):
    """The constructor takes anything; fit raises one line with what was expected and received."""
    bad = clone(estimator).set_params(**parameters)

    with pytest.raises(UsageError, match=message) as refused:
        bad.fit(blobs(30)[0])
    assert "\n" not in str(refused.value)
    with pytest.raises(NotFittedError):
        bad.predict(blobs(3)[0])


@pytest.mark.parametrize("estimator", EACH, ids=what)
def test_nan_is_refused(estimator):
    """By fit and by predict, in scikit-learn's own words."""
    X, _ = blobs(30)
    bad = X.copy()
    bad[3, 1] = np.nan

    with pytest.raises(ValueError, match="Input X contains NaN"):
        clone(estimator).fit(bad)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        clone(estimator).fit(X).predict(bad)


# -- one pass ------------------------------------------------------------------


def test_the_estimator_never_holds_the_kernel_matrix():
    """fit on 2000 rows, k-means included, takes an eighth of what their kernel matrix would."""
    X, _ = clusters.rings(1000, seed=0)
    estimator = OnePassKernelKMeans(2, kernel="polynomial", block_size=32, n_init=1)
    tracemalloc.start()
    try:
        estimator.fit(X).predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 2000 * 2000 * 8 / 8


def test_the_embedding_is_the_kernels_and_its_error_is_told():
    """K is about embedding @ embedding', no further off than error_bound_."""
    X, _ = blobs()
    found = OnePassKernelKMeans(3, n_components=5).fit(X)
    K = found.kernel_(X, X)

    error = clusters.relative_error(K, found.embedding_)
    assert error <= found.error_bound_ < 0.3
    np.testing.assert_allclose((found.embedding_**2).sum(axis=0), found.eigenvalues_)


def test_components_default_to_the_clusters():
    """n_components=None is n_clusters, and the sketch never has more columns than rows."""
    X, _ = blobs(5)

    assert OnePassKernelKMeans(3).fit(X).embedding_.shape == (5, 3)
    assert OnePassKernelKMeans(5, n_components=2).fit(X).embedding_.shape == (5, 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_two_rings_are_found_where_k_means_and_nystrom_fail(seed):
    """<x, y>^2, r = 2, l = 10: accuracy .99 and more; Nystrom's, cut in W, is below on average."""
    X, truth = clusters.rings(seed=seed)

    # Half of the outer ring costs almost as little: ten runs end there now and then.
    found = OnePassKernelKMeans(
        2, kernel=Polynomial(2, 1.0), oversample=10, n_init=50, random_state=seed
    ).fit(X)

    assert clusters.accuracy(truth, found.labels_) >= 0.99
    np.testing.assert_allclose(0.40, found.error_bound_, atol=0.01)
    for landmarks in (20, 100):
        theirs = [
            clusters.accuracy(truth, KMeans(2, n_init=10, random_state=0).fit_predict(embedded))
            for embedded in (
                clusters.nystrom_scores(
                    clusters.squared_product, X, landmarks=landmarks, rank=2, seed=draw
                )
                for draw in range(5)
            )
        ]
        assert np.mean(theirs) < 0.97
    plain = KMeans(2, n_init=10, random_state=0).fit_predict(X)
    assert 0.5 <= clusters.accuracy(truth, plain) < 0.75


def test_clusters_are_those_of_the_whole_kernel_matrix():
    """Kernel k-means by its definition finds the same, where clusters are clear."""
    X, _ = blobs()
    ours = OnePassKernelKMeans(3, kernel="laplace", oversample=20).fit(X)

    full = clusters.kernel_kmeans(ours.kernel_(X, X), 3, seed=0)

    assert clusters.accuracy(full, ours.labels_) == 1


@pytest.mark.slow
def test_on_the_segmentation_table_it_is_as_good_as_the_whole_kernel():
    """Rows of unit length, <x, y>^2: full kernel k-means .46, and one pass no worse."""
    X, truth = clusters.segments()
    full = clusters.kernel_kmeans(clusters.squared_product(X, X), 7, seed=0)

    ours = [
        clusters.accuracy(
            truth,
            OnePassKernelKMeans(
                7, kernel=Polynomial(2, 1.0), n_components=2, random_state=seed
            ).fit_predict(X),
        )
        for seed in range(5)
    ]

    np.testing.assert_allclose(0.46, clusters.accuracy(truth, full), atol=0.02)
    assert np.mean(ours) >= 0.46 - 0.02


# -- spectral ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("feature_map", ["orthogonal", "quasi"])
def test_spectral_clustering_finds_the_rings_by_the_eigengap(seed, feature_map):
    """Of a quarter, one and four times the automatic gamma the last has the gap: .98 and more."""
    X, truth = clusters.rings(seed=seed)

    found = KernelSpectralClustering(2, feature_map=feature_map, random_state=seed).fit(X)

    assert found.kernel_.gamma == found.gammas_[2] == 16 * found.gammas_[0]
    assert found.eigengaps_[2] > 5 * max(found.eigengaps_[:2])
    assert clusters.accuracy(truth, found.labels_) >= 0.98


def test_a_gamma_that_is_given_is_taken():
    """No sweep then."""
    found = KernelSpectralClustering(3, gamma=0.01).fit(blobs()[0])

    assert (found.kernel_.gamma, len(found.gammas_), len(found.eigengaps_)) == (0.01, 1, 1)


def test_what_it_learnt_merges():
    """Two sites' subspaces under one schema are that of all rows; under two they are refused."""
    X, _ = blobs()
    a, b, both, other = (
        KernelSpectralClustering(3, gamma=gamma, n_random_features=32, n_init=1).fit(rows)
        for rows, gamma in ((X[:70], 0.01), (X[70:], 0.01), (X, 0.01), (X[70:], 0.02))
    )

    merged = merge(a.subspace_, b.subspace_, rank=3)

    # Of the two directions that count: the third is where truncation shows.
    np.testing.assert_allclose(both.subspace_.sigma[:2], merged.sigma[:2], rtol=1e-6)
    with pytest.raises(SchemaMismatch):
        merge(a.subspace_, other.subspace_, rank=3)


def test_one_pass_clusters_sparse_rows_as_dense_ones():
    """Labels of the rows, and of rows that come later, in either form."""
    X, _ = clusters.rings(60, seed=0)
    here = OnePassKernelKMeans(2, kernel="polynomial", n_init=20).fit(X)
    there = OnePassKernelKMeans(2, kernel="polynomial", n_init=20).fit(sparse.csr_matrix(X))

    assert 1.0 == clusters.accuracy(here.labels_, there.labels_)
    for estimator in (here, there):
        for form in (np.asarray, sparse.csr_array):
            np.testing.assert_array_equal(estimator.labels_, estimator.predict(form(X)))


@pytest.mark.slow
def test_one_pass_never_makes_wide_sparse_rows_dense():
    """400 rows of a million columns, which would be 3.2 GB."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((400, 10**6), density=1e-5, rng=rng, format="csr")
    tracemalloc.start()
    try:
        OnePassKernelKMeans(3, gamma=0.1, n_init=1).fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 60 * 2**20
