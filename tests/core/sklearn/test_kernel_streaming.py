"""StreamingPCA with a kernel: the engine on random features, and merging."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import IncrementalPCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.utils import estimator_checks

from submerge import SAPCA, SchemaMismatch, UsageError
from submerge.features import Gaussian, Identity, RandomFourier
from submerge.sklearn import StreamingPCA
from support import estimators, oracle
from support.estimators import normal

BATTERY = [
    StreamingPCA(kernel="gaussian"),
    StreamingPCA(2, kernel="laplace", n_random_features=64, dtype=np.float64),
    StreamingPCA(2, kernel="matern", feature_map="fourier-cos", n_random_features=65),
    StreamingPCA(2, kernel="poly", degree=3, coef0=1.0, n_random_features=64, center=False),
]


@pytest.mark.parametrize(("estimator", "check"), estimators.battery(BATTERY), ids=estimators.what)
def test_it_keeps_every_rule_of_scikit_learn(estimator, check):
    """No check is expected to fail."""
    check(estimator)


@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names:UserWarning")
@pytest.mark.parametrize("name", estimators.FOR_ITS_OWN)
def test_it_keeps_the_rules_for_scikit_learns_own(name):
    """Names and containers come out as from scikit-learn's own transformers."""
    getattr(estimator_checks, name)("StreamingPCA", StreamingPCA(2, kernel="gaussian"))


def test_it_is_the_engine_on_lifted_rows():
    """As KERNELS section 1 sets it: D = 512, blocks of 64, float32, 5 spares."""
    X = normal(300)
    map_ = RandomFourier(Gaussian(0.2), 512, "orthogonal", 7)
    engine = SAPCA(3, oversample=5, block_size=64, dtype=np.float32).partial_fit(map_.lift(X))

    streaming = StreamingPCA(3, kernel="gaussian", gamma=0.2, random_state=7).fit(X)

    np.testing.assert_array_equal(engine.shown.basis.T, streaming.components_)
    np.testing.assert_allclose(engine.transform(map_.lift(X)), streaming.transform(X), atol=1e-12)
    assert map_ == streaming.feature_map_
    assert (3, 512) == streaming.components_.shape
    assert (512,) == streaming.mean_.shape


def test_without_a_kernel_it_is_pca_as_before():
    """The map is the identity, and rows are not cut."""
    learnt = StreamingPCA(2).fit(normal(30))

    assert Identity() == learnt.feature_map_
    assert np.float64 == learnt.engine_.dtype
    assert hasattr(learnt, "inverse_transform")


def test_with_a_kernel_nothing_comes_back():
    """Features have no pre-image: inverse_transform is missing, and the error gives the reason."""
    learnt = StreamingPCA(2, kernel="gaussian").fit(normal(30))

    assert not hasattr(learnt, "inverse_transform")
    with pytest.raises(AttributeError) as caught:
        learnt.inverse_transform(np.zeros((1, 2)))
    assert "no pre-image" in str(caught.value.__cause__)


def test_two_halves_merge_into_the_whole():
    """With one gamma and seed; kernel PCA of both is that of all rows, to truncation."""
    X = normal(400)
    options = {"kernel": "gaussian", "gamma": 0.1, "oversample": 20, "dtype": np.float64}
    north, south = (StreamingPCA(3, **options).fit(part) for part in (X[:150], X[150:]))
    whole = StreamingPCA(3, **options).fit(X)

    both = north.merge(south)

    assert 400 == both.n_samples_seen_
    np.testing.assert_allclose(whole.mean_, both.mean_, atol=1e-12)
    np.testing.assert_allclose(whole.explained_variance_, both.explained_variance_, rtol=1e-3)
    assert oracle.angle(whole.components_.T, both.components_.T) < 1
    assert 410 == both.partial_fit(X[:10]).n_samples_seen_


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ({"gamma": 0.2}, "gamma: expected 0.1, got 0.2"),
        ({"kernel": "laplace"}, "kernel: expected gaussian, got laplace"),
        ({"random_state": 1}, "seed: expected 0, got 1"),
        ({"n_random_features": 256}, "features: expected 512, got 256"),
        ({"feature_map": "fourier-pair"}, "map: expected orthogonal, got fourier-pair"),
        ({"kernel": None}, "kernel: expected gaussian, got none"),
        ({"center": False}, "center: expected fleet, got none"),
    ],
    ids=str,
)
def test_different_features_never_merge(other, line):
    """Another gamma, kernel, seed, number or kind of features: named, and refused both ways."""
    X = normal(50)
    one = StreamingPCA(2, kernel="gaussian", gamma=0.1).fit(X)
    another = clone(one).set_params(**other).fit(X)

    with pytest.raises(SchemaMismatch, match=line) as refused:
        one.merge(another)
    assert (one.schema_.fingerprint, another.schema_.fingerprint) == (
        refused.value.expected,
        refused.value.got,
    )
    with pytest.raises(SchemaMismatch):
        another.merge(one)


@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_sparse_rows_are_those_rows(kernel):
    """CSR in, the same numbers out, auto gamma included; it stays sparse until it is lifted."""
    X = normal(90, 30) * (np.random.default_rng(1).random((90, 30)) < 0.2)

    dense = StreamingPCA(3, kernel=kernel).fit(X)
    learnt = StreamingPCA(3, kernel=kernel).partial_fit(sparse.csr_matrix(X))

    assert np.isclose(dense.feature_map_.kernel.gamma, learnt.feature_map_.kernel.gamma)
    np.testing.assert_allclose(
        dense.score_samples(X), learnt.score_samples(sparse.csr_array(X)), rtol=1e-4
    )
    # Float32's features of dense rows, float64's of sparse ones.
    assert oracle.angle(dense.components_.T, learnt.components_.T) < 0.1


def test_linear_pca_takes_no_sparse_rows():
    """As before: scikit-learn's own refusal."""
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        StreamingPCA(2).fit(sparse.csr_matrix(normal(9)))


@pytest.mark.slow
def test_it_takes_a_third_of_the_memory():
    """At D = 512, r = 32, blocks of 64: of RBFSampler and IncrementalPCA, temporaries included."""
    blocks = np.split(normal(640, 20), 10)
    sampler = RBFSampler(n_components=512, random_state=0).fit(blocks[0])

    def ours() -> None:
        streaming = StreamingPCA(32, kernel="gaussian", gamma=0.05)
        for block in blocks:
            streaming.partial_fit(block)

    def theirs() -> None:
        incremental = IncrementalPCA(32)
        for block in blocks:
            incremental.partial_fit(sampler.transform(block))

    assert peak_bytes(ours) <= peak_bytes(theirs) / 3


def peak_bytes(run) -> int:
    """The most that a second run holds at once: what is loaded or cached once is not counted."""
    run()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        run()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("center", [True, False])
def test_fading_and_centering_are_the_engines(center):
    """forgetting_factor and center mean in feature space what they mean for rows."""
    X = normal(120)
    options = {"forgetting_factor": 0.97, "center": center, "exact": "never"}
    map_ = RandomFourier(Gaussian(0.2), 64)
    engine = SAPCA(2, block_size=64, dtype=np.float32, **options).partial_fit(map_.lift(X))

    learnt = StreamingPCA(2, kernel="gaussian", gamma=0.2, n_random_features=64, **options)

    np.testing.assert_array_equal(engine.shown.basis.T, learnt.fit(X).components_)


def test_a_call_that_is_refused_half_way_teaches_nothing():
    """Rows are lifted 64 at a time: what came before the one that overflows is not kept."""
    X = normal(200)
    learnt = StreamingPCA(2, kernel="polynomial", gamma=1.0, degree=4).fit(X)
    before = learnt.transform(X)
    bad = X.copy()
    bad[150] = 1e100

    with pytest.raises(UsageError, match="finite"):
        learnt.partial_fit(bad)

    assert 200 == learnt.n_samples_seen_
    np.testing.assert_array_equal(before, learnt.transform(X))


def test_a_merged_estimator_learns_as_the_first_did():
    """Parameters that were changed since count from the next fit, as everywhere."""
    X = normal(100)
    one, other = (StreamingPCA(2, kernel="gaussian", gamma=0.1).fit(part) for part in (X, X + 1))
    expected = one.merge(other).partial_fit(X).components_

    one.set_params(n_components=5, center=False, kernel=None, block_size=0, n_random_features=9)

    np.testing.assert_array_equal(expected, one.merge(other).partial_fit(X).components_)
