"""StreamingPCA: scikit-learn's rules, and the numbers of PCA."""

from __future__ import annotations

import importlib
import pickle
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.decomposition import IncrementalPCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

from submerge import EnergyRank, SapcaRank, SchemaMismatch, UsageError, spe
from submerge.sklearn import StreamingPCA
from support import estimators, oracle
from support.pca import ATTRIBUTES, CLOSE, DIM, decaying, pca, same_numbers
from support.strategies import rows_of

# -- scikit-learn's own battery ------------------------------------------------

BATTERY = [
    StreamingPCA(),
    StreamingPCA(exact="never", block_size=7),
    StreamingPCA(n_components=2, forgetting_factor=0.99, dtype=np.float32),
    StreamingPCA(n_components=EnergyRank(start=1)),
    StreamingPCA(n_components=1, center=False),
]


@pytest.mark.parametrize(("estimator", "check"), estimators.battery(BATTERY), ids=estimators.what)
def test_it_keeps_every_rule_of_scikit_learn(estimator, check):
    """No check is expected to fail.

    One skips by itself, from scikit-learn 1.9 on: check_array_api_input, unless
    SCIPY_ARRAY_API is set before scipy is imported; with it set, it passes.
    """
    check(estimator)


# Those for pandas learn frames and transform arrays, and the other way round, and mean to.
@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names:UserWarning")
@pytest.mark.parametrize("name", estimators.FOR_ITS_OWN)
def test_it_keeps_the_rules_for_scikit_learns_own(name):
    """Names and containers come out as from scikit-learn's own transformers."""
    getattr(estimator_checks, name)("StreamingPCA", StreamingPCA(n_components=2))


# -- the numbers of PCA --------------------------------------------------------


@pytest.mark.parametrize("n_components", [1, 4, DIM])
@pytest.mark.parametrize("exact", ["auto", "never"])
def test_at_full_rank_it_is_pca(n_components, exact):
    """Where nothing is dropped, every attribute is PCA's, however the rows are cut."""
    X = decaying(200)

    streaming = StreamingPCA(n_components, exact=exact, oversample=DIM)
    for start in range(0, len(X), 17):
        streaming.partial_fit(X[start : start + 17])

    same_numbers(pca(n_components).fit(X), streaming)


def test_fewer_rows_than_columns_give_pcas_noise():
    """With n < n_features the noise is averaged over n directions, as PCA does."""
    X = decaying(6)

    same_numbers(pca(3).fit(X), StreamingPCA(3).fit(X))


def test_projections_and_their_way_back_are_pcas():
    """transform and inverse_transform, up to the components' signs."""
    X, new = decaying(100), decaying(9, seed=1)
    exact, streaming = pca(4).fit(X), StreamingPCA(4).fit(X)

    Z = streaming.transform(new)

    np.testing.assert_allclose(np.abs(Z), np.abs(exact.transform(new)), **CLOSE)
    np.testing.assert_allclose(
        streaming.inverse_transform(Z), exact.inverse_transform(exact.transform(new)), **CLOSE
    )


@pytest.mark.parametrize("n_components", [1, 4, DIM])
def test_scores_are_pcas_log_likelihoods(n_components):
    """score_samples and score agree with PCA's, on rows seen and unseen."""
    X, new = decaying(200), decaying(50, seed=1)
    exact, streaming = pca(n_components).fit(X), StreamingPCA(n_components).fit(X)

    for rows in (X, new):
        np.testing.assert_allclose(
            streaming.score_samples(rows), exact.score_samples(rows), rtol=1e-9
        )
        assert np.isclose(streaming.score(rows), exact.score(rows), rtol=1e-9)


def test_a_row_off_the_subspace_scores_lower():
    """Higher is more normal, the reverse of SPE."""
    X = decaying(300, dim=80)
    streaming = StreamingPCA(3, exact="never").fit(X)
    off = X[:5] + 5 * np.random.default_rng(1).standard_normal((5, 80))

    assert (streaming.score_samples(off) < streaming.score_samples(X[:5])).all()
    assert (spe(off, streaming.engine_.shown) > spe(X[:5], streaming.engine_.shown)).all()


def test_noiseless_data_still_compare():
    """On data of exact rank 3, rows off it score finitely, and far lower."""
    X = rows_of("low rank", 100, 9, seed=0)
    streaming = StreamingPCA(3).fit(X)

    off = streaming.score_samples(X[:4] + np.eye(9)[:4])

    assert np.isfinite(off).all()
    assert (off < streaming.score_samples(X).min()).all()


def test_equal_rows_have_no_likelihood():
    """Where nothing varies, asking for one is a clear error."""
    streaming = StreamingPCA().fit(np.ones((4, 3)))

    assert streaming.components_.shape == (0, 3)
    assert streaming.noise_variance_ == 0
    assert streaming.transform(np.ones((2, 3))).shape == (2, 0)
    np.testing.assert_array_equal(streaming.inverse_transform(np.empty((2, 0))), np.ones((2, 3)))
    with pytest.raises(UsageError, match="got 4 equal rows"):
        streaming.score_samples(np.ones((2, 3)))


def test_uncentered_variance_takes_no_degree_of_freedom_off():
    """With center=False variation is about zero, over n rows."""
    X = decaying(40)

    streaming = StreamingPCA(DIM, center=False).fit(X)

    np.testing.assert_array_equal(np.zeros(DIM), streaming.mean_)
    assert np.isclose((X**2).sum() / len(X), streaming.explained_variance_.sum())


def test_variance_is_over_the_weight_that_forgetting_left():
    """With forgetting, variances are those of the weighted rows."""
    X = decaying(60)
    truth = oracle.twin(X, oracle.decay(len(X), 0.9))

    streaming = StreamingPCA(DIM, forgetting_factor=0.9).fit(X)

    np.testing.assert_allclose(streaming.mean_, truth.mean, **CLOSE)
    np.testing.assert_allclose(
        streaming.explained_variance_, truth.eigenvalues / (truth.weight - 1), **CLOSE
    )


@pytest.mark.parametrize("factor", [0.8, 0.95, 0.99])
def test_it_comes_closer_to_the_optimum_than_incremental_pca(factor):
    """On a decaying spectrum and the same blocks, our excess error is at most theirs."""
    X, rank = decaying(1000, dim=80, factor=factor), 8
    centered = X - X.mean(axis=0)
    optimum = np.square(np.linalg.svd(centered, compute_uv=False)[rank:]).sum()

    def excess(components: np.ndarray) -> float:
        error = np.square(centered - centered @ components.T @ components).sum()
        return float(error / optimum - 1)

    ours = StreamingPCA(rank, exact="never", block_size=50).fit(X)
    theirs = IncrementalPCA(rank, batch_size=50).fit(X)

    # Both below 1e-12 is a draw: that is the rounding of the two sums.
    assert excess(ours.components_) <= max(excess(theirs.components_), 1e-12)


# -- in scikit-learn's company -------------------------------------------------


def test_learning_decomposes_nothing_that_is_not_asked_for(monkeypatch):
    """partial_fit costs no decomposition; all attributes together cost one."""
    calls = []
    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: calls.append(1) or eigh(matrix))
    streaming = StreamingPCA(3)

    for block in np.split(decaying(300), 10):
        streaming.partial_fit(block)
    learning = len(calls)
    for name in ATTRIBUTES:
        getattr(streaming, name)

    assert (learning, len(calls)) == (0, 1)


def test_what_was_read_is_the_readers_own():
    """Writing into an attribute's array changes nothing of the estimator."""
    X = decaying(50)
    streaming = StreamingPCA(3).fit(X)

    for name in ATTRIBUTES[:-1]:
        getattr(streaming, name)[:] = 0

    same_numbers(pca(3).fit(X), streaming)


def test_fit_starts_anew_and_partial_fit_goes_on():
    """fit forgets what came before it; partial_fit after fit does not."""
    X = decaying(80)

    streaming = StreamingPCA(3).fit(1000 * X).fit(X[:50])
    same_numbers(pca(3).fit(X[:50]), streaming)

    same_numbers(pca(3).fit(X), streaming.partial_fit(X[50:]))


@pytest.mark.parametrize("exact", ["auto", "never"])
def test_a_pickled_estimator_goes_on(exact):
    """A copy that was pickled half-way learns the rest to the same bytes."""
    X = decaying(130)
    streaming = StreamingPCA(3, exact=exact).fit(X[:65])

    copy = pickle.loads(pickle.dumps(streaming))  # noqa: S301 (our own bytes)

    expected, got = (e.partial_fit(X[65:]).components_ for e in (streaming, copy))
    np.testing.assert_array_equal(expected, got)


def test_a_clone_has_the_parameters_and_nothing_else():
    """clone keeps every parameter, a rule included, and forgets the data."""
    rule = SapcaRank(start=4)

    copy = clone(StreamingPCA(rule, oversample=2, center=False, block_size=9).fit(decaying(30)))

    given = {"n_components": rule, "oversample": 2, "center": False, "block_size": 9}
    assert copy.get_params() == StreamingPCA().get_params() | given
    with pytest.raises(NotFittedError):
        copy.components_  # noqa: B018
    assert not hasattr(copy, "components_")


def test_a_pipeline_learns_and_scores():
    """After a scaler it is PCA after a scaler: fit, transform and score."""
    X = decaying(100)
    ours = make_pipeline(StandardScaler(), StreamingPCA(3)).fit(X)
    theirs = make_pipeline(StandardScaler(), pca(3)).fit(X)

    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), **CLOSE)
    assert np.isclose(ours.score(X), theirs.score(X))
    assert list(ours.get_feature_names_out()) == [f"streamingpca{i}" for i in range(3)]


def test_a_grid_search_finds_the_rank():
    """score is a likelihood, so cross-validation can choose n_components."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3)) @ rng.standard_normal((3, 10))
    X += 0.1 * rng.standard_normal(X.shape)

    search = GridSearchCV(StreamingPCA(), {"n_components": [1, 2, 3]}, cv=3).fit(X)

    assert search.best_params_ == {"n_components": 3}


def test_the_output_is_a_plain_array_by_default():
    """set_output("default") gives NumPy arrays, of the floats that came in."""
    X = decaying(30).astype(np.float32)

    Z = StreamingPCA(2).set_output(transform="default").fit_transform(X)

    assert type(Z) is np.ndarray
    assert (Z.dtype, Z.shape) == (np.float32, (30, 2))


def test_frames_in_frames_out():
    """With pandas, columns are named, and names are part of what must agree to merge."""
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(decaying(40), columns=[f"sensor {i}" for i in range(DIM)])
    pipeline = make_pipeline(StandardScaler(), StreamingPCA(2)).set_output(transform="pandas")

    Z = pipeline.fit_transform(X)

    assert list(Z.columns) == ["streamingpca0", "streamingpca1"]
    named = StreamingPCA(2).fit(X)
    both = named.merge(StreamingPCA(2).fit(X))
    assert list(both.feature_names_in_) == list(X.columns)
    for other in (X[X.columns[::-1]], X.to_numpy()):
        with pytest.raises(SchemaMismatch):
            named.merge(StreamingPCA(2).fit(other))


def test_components_default_to_ten_or_all():
    """n_components=None shows min(n_features, 10)."""
    assert StreamingPCA().fit(decaying(50, dim=30)).n_components_ == 10
    assert StreamingPCA().fit(decaying(50, dim=4)).n_components_ == 4


def test_components_come_with_the_rows():
    """While rows are fewer than components asked for, so are the components."""
    streaming, shown = StreamingPCA(4), []

    for row in decaying(6):
        shown.append(streaming.partial_fit(row[None]).n_components_)

    assert shown == [0, 1, 2, 3, 4, 4]


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 0},
        {"n_components": DIM + 1},
        {"n_components": 0.95},
        {"n_components": "mle"},
        {"oversample": -1},
        {"forgetting_factor": 1.1},
        {"block_size": 0},
        {"exact": "always"},
        {"dtype": np.int64},
    ],
    ids=str,
)
def test_bad_parameters_are_refused_in_fit(parameters):
    """The constructor takes anything; fit names what was expected and what came."""
    streaming = StreamingPCA(**parameters)

    with pytest.raises(UsageError, match=r"must be|at most"):
        streaming.fit(decaying(30))
    with pytest.raises(NotFittedError):
        streaming.transform(decaying(3))


def test_a_missing_scikit_learn_is_named(monkeypatch):
    """Without the extra, importing raises one error that names what to install."""
    for name in [name for name in sys.modules if name.startswith("submerge.sklearn")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn.base", None)

    with pytest.raises(ImportError, match=r"pip install 'submerge\[sklearn\]'"):
        importlib.import_module("submerge.sklearn")
