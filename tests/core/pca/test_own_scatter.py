"""OwnScatter: what a node scores by, between its own rows and the fleet's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submerge import Schema, Subspace
from submerge.pca.factor import LEAST, Factors, Precision, factors_of
from submerge.pca.own_scatter import KAPPAS, PHI, SOON, USUAL, OwnScatter, covariance_of, of_node
from support import oracle_factor
from support.strategies import rows_of

DIM = 6


def learnt(rows: np.ndarray, fleet: np.ndarray, each: int = 8) -> OwnScatter:
    """Take deviations in as a node does: scored by what was known before."""
    own = OwnScatter.none(rows.shape[1])
    for first in range(0, len(rows), each):
        own = own.after(rows[first : first + each], 1.0)
        if not own.waits:
            own = own.taken_in(fleet)
    return own


def covariance(seed: int, dim: int = DIM) -> np.ndarray:
    loadings = np.random.default_rng(seed).standard_normal((dim, 2))
    return loadings @ loadings.T + 0.1 * np.eye(dim)


def rows_with(matrix: np.ndarray, n: int, seed: int) -> np.ndarray:
    normal = np.random.default_rng(seed).standard_normal((n, len(matrix)))
    return normal @ np.linalg.cholesky(matrix).T


@given(st.integers(0, 999), st.integers(1, 500), st.sampled_from(KAPPAS))
@example(79, 1, 0.1)
@example(868, 1, 0.1)
def test_distances_are_those_of_the_mean_of_both_covariances(seed, n, kappa):
    """The dense twin, written out: (1 - w) C + w F + PHI diag(F), and no less noise than LEAST."""
    X = rows_of("decaying", 60, DIM, seed=seed)
    fleet = Subspace.of(X, Schema.anonymous(DIM), rank=3)
    factors = (factors_of(fleet, fleet),)
    own_rows = rows_of("noise", n, DIM, seed=seed + 1)
    evidence = tuple(100.0 * (each == kappa) for each in KAPPAS)
    own = OwnScatter(own_rows.T @ own_rows, n, np.zeros((DIM, DIM)), evidence=evidence)
    rows = rows_of("noise", 5, DIM, seed=seed + 2)

    found = Precision.of(fleet, *of_node(factors, fleet, own)).measure(rows)[1]

    F = oracle_factor.dense(factors[0].loadings_of(fleet), factors[0].noise)
    w = kappa / (kappa + n)
    both = (1 - w) * own_rows.T @ own_rows / n + w * F
    dense = both + np.diag(np.maximum(PHI * np.diag(F), LEAST * np.diag(both)))
    np.testing.assert_allclose(oracle_factor.distances(rows, dense), found, rtol=1e-6)


def test_a_node_without_rows_scores_as_the_fleet_does():
    fleet = Subspace.of(rows_of("decaying", 60, DIM, seed=0), Schema.anonymous(DIM), rank=3)
    factors = (factors_of(fleet, fleet),)

    assert factors is of_node(factors, fleet, None)
    assert factors is of_node(factors, fleet, OwnScatter.none(DIM))
    assert () == of_node((), fleet, OwnScatter(np.eye(DIM), 9.0, np.eye(DIM)))


def test_those_of_a_kernel_group_stay_as_they_are():
    fleet = Subspace.of(rows_of("decaying", 60, DIM, seed=0), Schema.anonymous(DIM), rank=3)
    both = (Factors(np.ones(9)), factors_of(fleet, fleet))

    assert both is of_node(both, fleet, OwnScatter(np.eye(DIM), 9.0, np.eye(DIM)))


@pytest.mark.parametrize("seed", range(5))
def test_a_machine_like_its_fleet_keeps_to_it(seed):
    """Hundreds of rows of the same law say no more than the fleet's thousands."""
    own = learnt(rows_with(covariance(1), 400, seed), covariance(1))

    assert own.kappa >= 100
    assert own.share > 0.2


@pytest.mark.parametrize("seed", range(5))
def test_a_machine_of_another_kind_keeps_to_itself(seed):
    own = learnt(rows_with(covariance(2), 200, seed), covariance(1))

    assert own.kappa <= 3
    assert own.share < 0.02


def test_a_channel_that_stood_still_in_the_fleet_and_moves_here_is_no_surprise_for_long():
    """Its rows count, however small the fleet's variance is."""
    still = covariance(1)
    still[0], still[:, 0] = 0.0, 0.0
    still[0, 0] = 1e-12
    rows = rows_with(covariance(1), 300, seed=0)
    own = learnt(rows, still)

    fleet = Subspace.of(rows_of("decaying", 60, DIM, seed=0), Schema.anonymous(DIM), rank=3)
    both, noise = own.mixed(still, own.kappa)
    found = np.linalg.inv(both + np.diag(noise))
    assert np.isfinite(found).all()
    assert np.einsum("ij,jk,ik->i", rows, found, rows).mean() < 2 * DIM
    assert covariance_of(factors_of(fleet, fleet), fleet).shape == (DIM, DIM)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_no_row_waits_for_ever_and_none_counts_twice(sizes):
    """In blocks of any size: an eighth of what is known waits at most, and the sums are of all."""
    rows = rows_with(covariance(1), sum(sizes), seed=0)
    own, first = OwnScatter.none(DIM), 0
    for size in sizes:
        own = own.after(rows[first : first + size], 1.0)
        first += size
        if not own.waits:
            own = own.taken_in(covariance(1))
        assert own.rows < (SOON + own.weight) / 8

    assert pytest.approx(first) == own.weight + own.rows
    np.testing.assert_allclose(rows.T @ rows, own.sums + own.recent, rtol=1e-9)


def test_the_first_rows_say_nothing_of_what_the_fleet_is_worth():
    """None was known before them: whatever they are, the fleet counts as usual."""
    rows = rows_with(covariance(2), 13, seed=0)
    own = OwnScatter.none(DIM).after(rows, 1.0).taken_in(covariance(1))

    assert KAPPAS[USUAL] == own.kappa
    assert own.share > 0.9


def test_older_rows_count_less():
    rows = rows_with(covariance(1), 100, seed=0)
    own = learnt(rows, covariance(1)).after(rows[:0], 0.5)

    assert pytest.approx(50.0) == own.weight + own.rows
    np.testing.assert_allclose(rows.T @ rows / 2, own.sums + own.recent, rtol=1e-9)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("rank", [1, DIM])
def test_however_far_a_node_and_its_fleet_are_apart_both_are_finite(size, rank):
    """Also where its rows have fewer directions than channels."""
    directions = np.random.default_rng(1).standard_normal((rank, DIM))
    rows = size * np.random.default_rng(0).standard_normal((100, rank)) @ directions
    fleet = Subspace.of(rows_of("decaying", 60, DIM, seed=0), Schema.anonymous(DIM), rank=3)
    factors = (factors_of(fleet, fleet),)
    own = learnt(rows, covariance_of(factors[0], fleet))

    assert np.isfinite(own.evidence).all()
    distances = Precision.of(fleet, *of_node(factors, fleet, own)).measure(rows)[1]
    assert np.isfinite(distances).all()
    assert (distances >= 0).all()
