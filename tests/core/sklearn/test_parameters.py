"""All estimators on kernels: what their common parameters mean, and what they refuse."""

from __future__ import annotations

import doctest
import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_circles
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from submerge import UsageError
from submerge.features import Gaussian, Laplace, Matern, Polynomial, RandomFourier
from submerge.sklearn import (
    KernelSpectralClustering,
    NystromKPCA,
    OnePassKernelKMeans,
    StreamingPCA,
)
from submerge.sklearn.kernel_names import named_kernel
from support.estimators import normal, results, what

STREAMING = StreamingPCA(2, kernel="gaussian")
NYSTROM = NystromKPCA(2)
ONE_PASS = OnePassKernelKMeans(3, n_init=2)
SPECTRAL = KernelSpectralClustering(3, n_random_features=32, n_init=2)
ALL = [STREAMING, NYSTROM, ONE_PASS, SPECTRAL]

every = pytest.mark.parametrize("estimator", ALL, ids=what)
pcas = pytest.mark.parametrize("estimator", [STREAMING, NYSTROM], ids=what)


# -- kernels -------------------------------------------------------------------


def test_names_stand_for_kernels():
    """Each name is its kernel, with the parameters that are its own; gamma may stay open."""
    options = {"gamma": 2, "degree": 3, "coef0": 1.0, "nu": 2.5}
    expected = [Gaussian(2.0), Laplace(2.0), Matern(2.0, 2.5), Polynomial(3, 2.0, 1.0)]

    names = ("gaussian", "laplace", "matern", "polynomial")
    assert expected == [named_kernel(name, **options) for name in names]
    assert expected[::3] == [named_kernel(name, **options) for name in ("rbf", "poly")]
    assert named_kernel("gaussian").gamma is None
    assert named_kernel(Gaussian(3.0)).gamma == 3
    assert named_kernel(Gaussian(), gamma=5).gamma == 5


NAMED = [
    ({"kernel": "rbf", "gamma": 0.5}, Gaussian(0.5)),
    ({"kernel": "laplace", "gamma": 0.5}, Laplace(0.5)),
    ({"kernel": "matern", "nu": 2.5, "gamma": 0.5}, Matern(0.5, nu=2.5)),
    ({"kernel": "poly", "degree": 3, "coef0": 1.0, "gamma": 0.5}, Polynomial(3, 0.5, 1.0)),
    ({"kernel": Matern(0.5, nu=2.5)}, Matern(0.5, nu=2.5)),
    ({"kernel": Gaussian(), "gamma": 0.5}, Gaussian(0.5)),
]


@pytest.mark.parametrize(
    ("estimator", "parameters", "expected"),
    [
        (estimator, *named)
        for estimator in ALL
        for named in NAMED
        if estimator is not SPECTRAL or not isinstance(named[1], Polynomial)  # radial ones only
    ],
    ids=what,
)
def test_the_kernel_is_what_the_parameters_name(estimator, parameters, expected):
    """By its name, an alias, or a value; `kernel_` is the one that was learnt with."""
    fitted = clone(estimator).set_params(**parameters).fit(normal(40))

    assert expected == fitted.kernel_


def test_without_a_kernel_there_is_none():
    """Plain PCA raises a clear error."""
    assert StreamingPCA(2).fit(normal(9)).kernel_ is None
    with pytest.raises(NotFittedError):
        StreamingPCA(2).kernel_  # noqa: B018


@every
@pytest.mark.parametrize("kernel", [Gaussian(), Laplace(), Matern(nu=2.5)], ids=str)
def test_auto_gamma_is_the_kernels_own_for_the_rows(estimator, kernel):
    """tr C by the kernel's rule, for all alike; spectral clustering tries three around it."""
    X = normal(80)

    fitted = clone(estimator).set_params(kernel=kernel).fit(X)

    expected = kernel.auto(float(X.var(axis=0).sum()))
    assert np.isclose(expected * _times(fitted), fitted.kernel_.gamma, rtol=1e-12)


@pcas
def test_the_first_rows_settle_gamma(estimator):
    """Of partial_fit, the first call's."""
    first, more = normal(80), 10 * normal(80, seed=1)

    learnt = clone(estimator).partial_fit(first).partial_fit(more)

    assert np.isclose(1 / (2 * first.var(axis=0).sum()), learnt.kernel_.gamma, rtol=1e-12)


@every
@pytest.mark.parametrize(("offset", "size"), [(1000, 1), (0, 1e20)])
def test_gamma_does_not_mind_float32(estimator, offset, size):
    """It is that of the same numbers in float64: far from zero, or large."""
    X = ((normal(200, 3) + offset) * size).astype(np.float32)

    single, double = (clone(estimator).fit(rows).kernel_.gamma for rows in (X, X.astype(float)))

    assert np.isclose(double, single, rtol=1e-6)


# -- what is refused -----------------------------------------------------------


@every
@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ({"kernel": "laplacian"}, 'kernel must be one of "gaussian", "laplace", .* got .laplacian'),
        ({"kernel": 3}, 'kernel must be one of "gaussian", .*, or a Kernel, got 3'),
        ({"kernel": RandomFourier(Gaussian(1.0))}, "kernel must be .* got RandomFourier"),
        ({"kernel": Gaussian}, r"kernel must be a value, Gaussian\(\), got the class itself"),
        pytest.param({"kernel": np.dot}, "kernel must be .* got <", id="kernel-a function"),
        ({"kernel": "matern", "nu": 2}, "nu must be 1.5 or 2.5, got 2"),
        ({"gamma": 0}, 'gamma must be a positive number or "auto", got 0'),
        ({"gamma": -1.0}, "gamma must be a positive number .* got -1.0"),
        ({"gamma": np.inf}, "gamma must be a positive number .* got inf"),
        ({"gamma": "scale"}, "gamma must be a positive number .* got .scale"),
        ({"gamma": None}, "gamma must be a positive number .* got None"),
        ({"gamma": True}, "gamma must be a positive number .* got True"),
        ({"kernel": Gaussian(0.1), "gamma": 0.1}, r"gamma must be \"auto\" beside .*, got 0.1"),
        ({"random_state": None}, "random_state must be a whole number from 0 .* got None"),
        ({"random_state": -1}, "random_state must be a whole number from 0 to 4294967295, got -1"),
        pytest.param(
            {"random_state": np.random.RandomState(0)},
            "random_state must be .* got RandomState",
            id="random_state-a generator",
        ),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_in_fit(estimator, parameters, line):
    """The constructor takes anything; fit raises one line with what was expected and received."""
    bad = clone(estimator).set_params(**parameters)

    with pytest.raises(UsageError, match=line) as caught:
        bad.fit(normal(30))
    assert "\n" not in str(caught.value)
    with pytest.raises(NotFittedError):
        results(bad, normal(3))


@pytest.mark.parametrize("estimator", [STREAMING, SPECTRAL], ids=what)
@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ({"n_random_features": 31}, "even number, got 31"),
        ({"n_random_features": 0}, "n_random_features must be a whole number from 2 .* got 0"),
        ({"feature_map": "best"}, 'feature_map must be one of "orthogonal", .* got .best'),
        ({"feature_map": None}, "feature_map must be one of .* got None"),
    ],
    ids=str,
)
def test_bad_maps_are_refused_in_fit(estimator, parameters, line):
    """By the parameters' own names."""
    with pytest.raises(UsageError, match=line):
        clone(estimator).set_params(**parameters).fit(normal(30))


@pcas
@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ({"n_components": 0}, "must be (a whole number of )?at least 1"),
        ({"kernel": "polynomial", "degree": 0}, "degree must be a whole number from 1 .* got 0"),
        ({"kernel": "polynomial", "coef0": -1}, "coef0 must be .* got -1"),
    ],
    ids=str,
)
def test_bad_parameters_of_one_kind_are_refused(estimator, parameters, line):
    """Components and degrees."""
    with pytest.raises(UsageError, match=line):
        clone(estimator).set_params(**parameters).fit(normal(30))


def test_more_components_than_features_are_refused():
    """By the engine."""
    with pytest.raises(UsageError, match="at most the 64 columns, got 99"):
        StreamingPCA(99, kernel="gaussian", n_random_features=64).fit(normal(30))


@every
@pytest.mark.parametrize(
    "rows",
    [
        np.full((9, 4), 0.1),
        1e9 + 1e-4 * normal(9),  # apart by the rounding of 1e9
        1e-170 * normal(9),
        1e170 * normal(9),
    ],
    ids=["equal", "equal to rounding", "tiny", "huge"],
)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_rows_without_a_size_settle_no_gamma(estimator, rows):
    """One policy for all: refused, in one line; equal rows with a gamma are fine."""
    estimator = clone(estimator)

    with pytest.raises(UsageError, match=r'gamma="auto" expects .* differ,|landmarks .* at most'):
        estimator.fit(rows)

    with pytest.raises(NotFittedError):
        results(estimator, rows)
    assert 9 == len(
        results(estimator.set_params(gamma=1.0).fit(np.full((9, 4), 0.1)), rows[:9] * 0)
    )


@pcas
def test_one_row_settles_no_scale(estimator):
    """A first partial_fit of one row is refused, and nothing is kept."""
    estimator = clone(estimator)

    with pytest.raises(UsageError, match=r'gamma="auto" expects .* that differ.* n_samples=1\)'):
        estimator.partial_fit(normal(1))

    estimator.partial_fit(normal(30)).partial_fit(normal(1))
    assert 31 == estimator.n_samples_seen_


# -- sparse rows ---------------------------------------------------------------


@pytest.mark.parametrize("estimator", [STREAMING, NYSTROM, SPECTRAL], ids=what)
def test_sparse_rows_are_taken_where_the_map_takes_them(estimator):
    """CSR and CSC, as the same rows dense; and the tags of estimators that take them say so."""
    X = normal(60, 20) * (np.random.default_rng(1).random((60, 20)) < 0.3)
    dense = clone(estimator).fit(X)

    for rows in (sparse.csr_matrix(X), sparse.csc_array(X)):
        learnt = clone(estimator).fit(rows)
        assert np.isclose(dense.kernel_.gamma, learnt.kernel_.gamma)
        np.testing.assert_allclose(
            np.abs(results(dense, X)), np.abs(results(learnt, rows)), atol=1e-4
        )
    assert dense.__sklearn_tags__().input_tags.sparse


# -- what they are for ---------------------------------------------------------


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_the_examples_say_what_comes(estimator):
    """Those of the docstrings."""
    found = doctest.DocTestFinder(recurse=False).find(type(estimator), globs={})
    runner = doctest.DocTestRunner()

    assert [(0, True)] == [(runner.run(each).failed, bool(each.examples)) for each in found]


@pcas
def test_a_pickled_estimator_goes_on(estimator):
    """A copy that was pickled half-way learns the rest to the same bytes."""
    X = normal(130)
    learnt = clone(estimator).fit(X[:65])

    copy = pickle.loads(pickle.dumps(learnt))  # noqa: S301 (our own bytes)

    expected, got = (e.partial_fit(X[65:]).components_ for e in (learnt, copy))
    np.testing.assert_array_equal(expected, got)


@pytest.mark.parametrize("estimator", [StreamingPCA(4, kernel="gaussian"), NystromKPCA(4)], ids=str)
def test_they_unfold_what_is_curved(estimator):
    """Two rings, which no plane parts, are parted by one in feature space."""
    X, ring = make_circles(300, factor=0.3, noise=0.05, random_state=0)

    pipeline = make_pipeline(clone(estimator), LogisticRegression(C=100)).fit(X[:200], ring[:200])

    assert pipeline.score(X[200:], ring[200:]) > 0.97
    assert make_pipeline(StreamingPCA(2), LogisticRegression()).fit(X, ring).score(X, ring) < 0.7


def test_rows_off_the_curve_score_lower():
    """Inside of a ring, where linear PCA sees the most normal row of all."""
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, 400)
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    inside = np.zeros((1, 2))
    linear = StreamingPCA(1).fit(ring)

    for learnt in (StreamingPCA(4, kernel="gaussian").fit(ring), NystromKPCA(4).fit(ring)):
        assert learnt.score_samples(inside) < learnt.score_samples(ring).min()
    assert linear.score_samples(inside) > linear.score_samples(ring).max()


def _times(fitted) -> float:
    """What spectral clustering takes of the automatic gamma; others take it."""
    if len(getattr(fitted, "gammas_", ())) < 2:
        return 1.0
    return (0.25, 1.0, 4.0)[int(fitted.eigengaps_.argmax())]


@pytest.mark.parametrize("estimator", [*ALL, StreamingPCA(2)], ids=what)
def test_masked_rows_are_refused_as_gaps_are(estimator):
    """Estimators without gaps refuse a masked array as NaN: they learnt what is under the mask."""
    masked = np.ma.masked_array(np.random.default_rng(4).normal(size=(60, 3)))
    masked[::20, 1] = np.ma.masked

    with pytest.raises(ValueError, match="contains NaN"):
        clone(estimator).fit(masked)


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("value", [1e120, 1e200, -1e308])
def test_features_that_overflow_are_refused_and_not_nan(value):
    """A score that is NaN compares as normal: where features overflow there is none."""
    X = normal(80)
    far = X[:2].copy()
    far[1, 1] = value

    for estimator in (NystromKPCA(2, kernel="poly", degree=3), StreamingPCA(2, kernel="poly")):
        fitted = clone(estimator).fit(X)
        for ask in ("transform", "score_samples"):
            if hasattr(fitted, ask):
                with pytest.raises(ValueError, match="finite"):
                    getattr(fitted, ask)(far)
