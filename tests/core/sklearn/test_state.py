"""What is fitted: whole or not at all, the estimator's own, and deaf to parameters set since."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone

from submerge.sklearn import (
    KernelSpectralClustering,
    NystromKPCA,
    OnePassKernelKMeans,
    StreamingPCA,
)
from support.estimators import normal, results, what

LINEAR = StreamingPCA(2)
STREAMING = StreamingPCA(2, kernel="gaussian", n_random_features=64)
NYSTROM = NystromKPCA(2, n_landmarks=10)
ONE_PASS = OnePassKernelKMeans(3)
SPECTRAL = KernelSpectralClustering(3, n_random_features=64)

ALL = [LINEAR, STREAMING, NYSTROM, ONE_PASS, SPECTRAL]

every = pytest.mark.parametrize("estimator", ALL, ids=what)

REFUSED = [
    (LINEAR, {"n_components": 99}),
    (LINEAR, {"block_size": 0}),
    (LINEAR, {"kernel": "none"}),
    (STREAMING, {"n_components": 99}),
    (STREAMING, {"gamma": 0.3, "oversample": -1}),
    (STREAMING, {"kernel": "polynomial", "degree": 64, "gamma": 1e9}),
    (NYSTROM, {"n_components": 99}),
    (NYSTROM, {"landmarks": "best"}),
    (NYSTROM, {"kernel": "polynomial", "degree": 64, "gamma": 1e9}),
    (ONE_PASS, {"n_clusters": 999}),
    (ONE_PASS, {"n_init": 0}),
    (ONE_PASS, {"kernel": "polynomial", "degree": 64, "gamma": 1e9}),
    (SPECTRAL, {"n_clusters": 999}),
    (SPECTRAL, {"n_init": 0}),
    (SPECTRAL, {"kernel": "polynomial"}),
]


@pytest.mark.parametrize(("estimator", "bad"), REFUSED, ids=what)
def test_a_refused_fit_leaves_the_last_one(estimator, bad):
    """Other columns, other names, bad parameters: what was learnt is all as it was."""
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(normal(40), columns=list("abcd"))
    wider = pandas.DataFrame(normal(40, 6, seed=1), columns=list("efghij"))
    fitted = clone(estimator).fit(X)
    parameters, state = fitted.get_params(), _state(fitted)
    before = results(fitted, X)

    with pytest.raises(ValueError, match=r"must|most|need|finite"):
        fitted.set_params(**bad).fit(wider)

    assert _state(fitted.set_params(**parameters)) == state
    assert 4 == fitted.n_features_in_
    assert list("abcd") == fitted.feature_names_in_.tolist()
    np.testing.assert_array_equal(before, results(fitted, X))


@every
def test_a_first_fit_that_is_refused_leaves_nothing(estimator):
    """Not even the number of columns."""
    estimator = clone(estimator)
    key = "n_components" if "n_components" in estimator.get_params() else "n_clusters"
    estimator.set_params(**{key: 999})

    with pytest.raises(ValueError, match=r"must|most|need|finite"):
        estimator.fit(normal(30))

    assert not hasattr(estimator, "n_features_in_")
    assert vars(estimator) == estimator.get_params(deep=False)


LATER = [
    (LINEAR, {"n_components": 1, "kernel": "gaussian", "center": False, "dtype": np.float32}),
    (STREAMING, {"kernel": None, "gamma": 9.0, "center": False, "block_size": 0}),
    (STREAMING, {"n_random_features": 7, "feature_map": "best", "random_state": None}),
    (NYSTROM, {"n_components": 9, "kernel": "best", "landmarks": "best", "center": False}),
    (ONE_PASS, {"block_size": 0, "kernel": "laplace", "gamma": 7.0, "n_clusters": 2}),
    (SPECTRAL, {"kernel": "laplace", "gamma": 7.0, "n_random_features": 8, "n_clusters": 2}),
]


@pytest.mark.parametrize(("estimator", "later"), LATER, ids=what)
def test_parameters_count_from_the_next_fit(estimator, later):
    """Until then results and learning follow the last fit."""
    X, more = normal(60), normal(30, seed=1)
    fitted, changed = (clone(estimator).fit(X) for _ in range(2))
    expected, tags = results(fitted, X), fitted.__sklearn_tags__()
    offers = hasattr(fitted, "inverse_transform")

    changed.set_params(**later)

    np.testing.assert_array_equal(expected, results(changed, X))
    assert tags == changed.__sklearn_tags__()
    assert offers == hasattr(changed, "inverse_transform")
    if hasattr(estimator, "partial_fit"):
        expected, got = (each.partial_fit(more).components_ for each in (fitted, changed))
        np.testing.assert_array_equal(expected, got)


def test_sparse_rows_are_taken_as_long_as_the_features_are():
    """Of an estimator that was fitted with a kernel, until it is fitted without."""
    sparse = pytest.importorskip("scipy.sparse")
    X = normal(30)
    fitted = clone(STREAMING).fit(X).set_params(kernel=None)

    np.testing.assert_allclose(results(fitted, X), results(fitted, sparse.csr_matrix(X)), atol=1e-6)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        fitted.fit(sparse.csr_matrix(X))


@every
def test_rows_that_were_learnt_are_the_callers_own(estimator):
    """Writing over them afterwards changes nothing."""
    X, asked = normal(100), normal(20, seed=1)
    fitted = clone(estimator).fit(X)
    before = results(fitted, asked)

    X[:] = 0

    np.testing.assert_array_equal(before, results(fitted, asked))


@every
def test_what_was_read_is_the_readers_own(estimator):
    """Writing into any array among the attributes changes no result."""
    X = normal(60)
    fitted = clone(estimator).fit(X)
    before, written = results(fitted, X), 0

    for name in dir(fitted):
        array = getattr(fitted, name) if name.endswith("_") and name[0] != "_" else None
        if isinstance(array, np.ndarray) and array.flags.writeable:
            array.fill(0)
            written += 1

    assert written >= 3
    np.testing.assert_array_equal(before, results(fitted, X))


def test_landmarks_that_were_given_are_the_callers_own():
    """Writing over them afterwards changes nothing."""
    X, landmarks = normal(50), normal(10, seed=1)
    learnt = NystromKPCA(2, landmarks=landmarks).fit(X)
    before = learnt.score_samples(X)

    landmarks[:] = 0

    np.testing.assert_array_equal(before, learnt.score_samples(X))


def _state(fitted) -> dict[str, int]:
    """Which values an estimator holds, by identity."""
    return {name: id(value) for name, value in vars(fitted).items()}
