"""StreamingPCA: what sites have learnt merges into PCA of all their rows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("sklearn")

from sklearn.exceptions import NotFittedError

from submerge import EnergyRank, SchemaMismatch, UsageError, merge
from submerge.sklearn import StreamingPCA
from support import checks, oracle
from support.pca import CLOSE, DIM, decaying, pca, same_numbers
from support.strategies import streams


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
    """a.merge(b) and b.merge(a) are equal, to rounding."""
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
