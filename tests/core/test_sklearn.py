"""StreamingPCA: scikit-learn's rules, PCA's numbers, and merging."""

from __future__ import annotations

import importlib
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import checks, oracle
from support.strategies import rows_of, streams

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import estimator_checks_generator

from submerge import EnergyRank, SapcaRank, SchemaMismatch, UsageError, merge, spe
from submerge.sklearn import StreamingPCA

DIM = 12
ATTRIBUTES = (
    "components_",
    "explained_variance_",
    "explained_variance_ratio_",
    "singular_values_",
    "mean_",
    "noise_variance_",
)
# Rounding of a covariance of condition 1e3, far below what anyone reads off a plot.
CLOSE = {"rtol": 1e-9, "atol": 1e-11}


def decaying(n: int, dim: int = DIM, *, seed: int = 0, factor: float = 0.7) -> np.ndarray:
    """Rows with a gap below every direction, far from zero, in no channel's own direction."""
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    return 30 + rng.standard_normal((n, dim)) * factor ** np.arange(dim) @ turned


def pca(n_components: int | None = None) -> PCA:
    """PCA by its SVD: its quick solver centers after squaring, and so loses digits to the mean."""
    return PCA(n_components, svd_solver="full")


def same_numbers(expected, got) -> None:
    """All attributes alike, components up to sign."""
    for name in ATTRIBUTES:
        want, have = getattr(expected, name), getattr(got, name)
        if name == "components_":
            have = have * np.sign(np.sum(want * have, axis=1, keepdims=True))
        np.testing.assert_allclose(have, want, **CLOSE, err_msg=name)


# -- scikit-learn's own battery ------------------------------------------------

BATTERY = [
    StreamingPCA(),
    StreamingPCA(exact="never", block_size=7),
    StreamingPCA(n_components=2, forgetting_factor=0.99, dtype=np.float32),
    StreamingPCA(n_components=EnergyRank(start=1)),
    StreamingPCA(n_components=1, center=False),
]

# What scikit-learn runs on its own transformers only; those for pandas skip without it.
FOR_ITS_OWN = [
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_global_output_transform_pandas",
    "check_dataframe_column_names_consistency",
]


def what(case: object) -> str:
    """A check's own name, and an estimator's."""
    return getattr(case, "func", case).__name__ if callable(case) else str(case)


# What parametrize_with_checks does, as a list: scikit-learn 1.6 hands pytest a generator,
# which pytest 9 warns of, and a warning here is an error.
@pytest.mark.parametrize(
    ("estimator", "check"),
    [case for estimator in BATTERY for case in estimator_checks_generator(estimator)],
    ids=what,
)
def test_it_keeps_every_rule_of_scikit_learn(estimator, check):
    """No check is expected to fail.

    One skips by itself, from scikit-learn 1.9 on: check_array_api_input, unless
    SCIPY_ARRAY_API is set before scipy is imported; with it set, it passes.
    """
    check(estimator)


# Those for pandas learn frames and transform arrays, and the other way round, and mean to.
@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names:UserWarning")
@pytest.mark.parametrize("name", FOR_ITS_OWN)
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
    """Where nothing varies, asking for one is an error that says so."""
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


# -- merging -------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [3, DIM])
@pytest.mark.parametrize("exact", ["auto", "never"])
def test_merged_sites_are_pca_of_all_their_rows(n_components, exact):
    """merge equals PCA of the stacked data, and neither site has changed."""
    north, south = decaying(90), decaying(130, seed=1) + 2
    a, b = (
        StreamingPCA(n_components, exact=exact, oversample=DIM).fit(site) for site in (north, south)
    )
    before = [pickle.dumps(site) for site in (a, b)]

    both = a.merge(b)

    assert before == [pickle.dumps(site) for site in (a, b)]
    assert both.n_samples_seen_ == 220
    same_numbers(pca(n_components).fit(np.vstack([north, south])), both)


def test_the_exact_memory_merges_whole():
    """Few components shown, no spares: what is merged is all that was learnt."""
    north, south = decaying(90), decaying(130, seed=1)
    a, b = (StreamingPCA(2, oversample=0).fit(site) for site in (north, south))

    same_numbers(pca(2).fit(np.vstack([north, south])), a.merge(b))


@pytest.mark.parametrize("exact", ["auto", "never"])
def test_a_merged_estimator_goes_on(exact):
    """partial_fit after merge adds to what both have seen, full blocks and single rows."""
    parts = [decaying(n, seed=n) for n in (35, 50, 41, 1)]
    a, b = (StreamingPCA(4, exact=exact, oversample=DIM).fit(part) for part in parts[:2])

    both = a.merge(b).partial_fit(parts[2]).partial_fit(parts[3])

    assert both.n_samples_seen_ == 127
    same_numbers(pca(4).fit(np.vstack(parts)), both)


@pytest.mark.slow
@given(
    streams(max_rows=90),
    st.fixed_dictionaries(
        {
            "oversample": st.integers(0, 6),
            "block_size": st.integers(1, 40),
            "exact": st.sampled_from(["auto", "never"]),
            "center": st.booleans(),
        }
    ),
    st.data(),
)
def test_every_law_holds_for_what_was_merged_and_went_on(X, settings, data):
    """On any data, cut anywhere: energy is exact, and nothing is overstated."""
    rank = data.draw(st.integers(1, X.shape[1]))
    first, second = sorted(data.draw(st.tuples(*2 * [st.integers(0, len(X))])))
    parts = [part for part in (X[:first], X[first:second], X[second:]) if len(part)]

    merged = StreamingPCA(rank, **settings).fit(parts[0])
    for part in parts[1:2]:
        merged = merged.merge(StreamingPCA(rank, **settings).fit(part))
    for part in parts[2:]:
        merged.partial_fit(part)

    blocks = len(X) / settings["block_size"] + len(parts)
    truth = oracle.twin(X, center=settings["center"])
    checks.never_overstates(merged.engine_.subspace, truth, blocks=blocks)


def test_merging_is_not_one_sided():
    """a.merge(b) and b.merge(a) say the same, to rounding."""
    a, b = (StreamingPCA(3, exact="never").fit(decaying(90, dim=40, seed=s)) for s in (0, 1))

    same_numbers(a.merge(b), b.merge(a))


def test_what_faded_merges_as_faded():
    """Each part counts with the weight that its own forgetting has left."""
    north, south = decaying(50), decaying(70, seed=1)
    a = StreamingPCA(DIM, forgetting_factor=0.9).fit(north)
    b = StreamingPCA(DIM).fit(south)

    truth = oracle.twin(np.vstack([north, south]), np.append(oracle.decay(50, 0.9), np.ones(70)))
    shown = a.merge(b).engine_.shown

    assert np.isclose(truth.weight, shown.weight)
    np.testing.assert_allclose(truth.eigenvalues, shown.sigma**2, **CLOSE)


def test_different_settings_merge_into_those_of_the_first():
    """An exact memory and a truncated one merge either way; parameters are the first's."""
    X = decaying(400, dim=40, factor=0.5)
    exact = StreamingPCA(3).fit(X[:200])
    truncated = StreamingPCA(5, exact="never", dtype=np.float32).fit(X[200:])
    optimum = pca(3).fit(X).components_.T

    for first, second in [(exact, truncated), (truncated, exact)]:
        both = first.merge(second)
        assert both.get_params() == first.get_params()
        assert both.engine_.algorithm.startswith(first.engine_.algorithm)
        # float32 storage: half a hundredth of a degree is its rounding over the gap.
        assert oracle.angle(optimum, both.components_[:3].T) < 5e-3


def test_an_adaptive_rank_starts_from_the_larger():
    """The union has at least the directions of either part; the rule moves on from there."""
    rule = EnergyRank(start=1)
    flat, steep = decaying(400, factor=0.95), decaying(400, factor=0.2)
    a, b = (StreamingPCA(rule, block_size=20).fit(X) for X in (steep, flat))
    assert a.n_components_ < b.n_components_

    both = a.merge(b)

    assert both.n_components_ == b.n_components_
    assert both.partial_fit(1e3 * steep).n_components_ < b.n_components_


@pytest.mark.parametrize(
    "other",
    [
        StreamingPCA(2).fit(decaying(20, dim=5)),
        StreamingPCA(2, center=False).fit(decaying(20)),
    ],
    ids=["columns", "centering"],
)
def test_different_things_never_merge(other):
    """Other columns, or another centering, are a SchemaMismatch."""
    with pytest.raises(SchemaMismatch):
        StreamingPCA(2).fit(decaying(20)).merge(other)


def test_only_fitted_estimators_of_this_kind_merge():
    """An unfitted one, or another class, is refused by name."""
    fitted = StreamingPCA(2).fit(decaying(20))

    with pytest.raises(NotFittedError):
        fitted.merge(StreamingPCA())
    with pytest.raises(NotFittedError):
        StreamingPCA().merge(fitted)
    with pytest.raises(UsageError, match="got PCA"):
        fitted.merge(pca().fit(decaying(20)))


def test_the_engines_subspace_merges_with_the_fleets():
    """`engine_.subspace` is an ordinary one: submerge.merge takes it."""
    X = decaying(100)
    a, b = (StreamingPCA(DIM).fit(part) for part in (X[:30], X[30:]))

    both = merge(a.engine_.subspace, b.engine_.subspace, rank=DIM)

    np.testing.assert_allclose(both.sigma, pca().fit(X).singular_values_, **CLOSE)


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

    assert copy.get_params() == {
        "n_components": rule,
        "oversample": 2,
        "forgetting_factor": 1.0,
        "center": False,
        "block_size": 9,
        "exact": "auto",
        "dtype": np.float64,
    }
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
    """Without the extra, importing is one error that says what to install."""
    monkeypatch.delitem(sys.modules, "submerge.sklearn")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)

    with pytest.raises(ImportError, match=r"pip install 'submerge\[sklearn\]'"):
        importlib.import_module("submerge.sklearn")
