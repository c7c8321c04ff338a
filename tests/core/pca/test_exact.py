"""The exact path: where the budget has room for it, and what it then promises."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import submerge
from submerge import SAPCA, EnergyRank, FixedRank, Schema, UsageError
from submerge.pca.budget import exact_bytes, is_exact, low_rank_bytes, rows_at_once
from submerge.pca.expectation import Guesses
from support import checks, oracle
from support.strategies import KINDS, cuts, rows_of


def copies(n: int, dim: int, seed: int) -> np.ndarray:
    """Channels in pairs that differ by 1e-7 of what they share."""
    X = rows_of("noise", n, dim, seed)
    X[:, 1::2] = X[:, : dim - dim % 2 : 2] + 1e-7 * X[:, 1::2]
    return X


def learnt(X: np.ndarray, parts: list[slice], **settings: object) -> SAPCA:
    engine = SAPCA(1, **settings)
    for part in parts:
        engine.partial_fit(X[part])
    return engine


@given(
    st.sampled_from([*KINDS, "copies"]),
    st.integers(1, 400),
    st.integers(61, 80),
    st.sampled_from([1.0, 0.999, 0.9, 0.3]),
    st.booleans(),
    st.sampled_from([None, 1, 17, 45]),
    st.data(),
)
@example("noise", 400, 64, 1.0, True, None, None)
def test_the_whole_scatter_is_that_of_all_rows(kind, n, dim, factor, center, block, data):
    """Above k + b columns too, under forgetting, means of 1e6, near-copies, cuts of every kind."""
    X = copies(n, dim, 0) if kind == "copies" else rows_of(kind, n, dim, seed=n)
    parts = [slice(0, n)] if data is None else data.draw(cuts(n))
    settings = {"forgetting_factor": factor, "center": center, "block_size": block}

    engine = learnt(X, parts, **settings)

    truth = oracle.twin(X, oracle.decay(n, factor), center=center)
    blocks = n / (block or 31) + len(parts)
    assert engine.algorithm == "exact covariance"
    assert engine.whole.spectral_bound <= dim * checks.EPS * truth.eigenvalues[0]
    checks.never_overstates(engine.whole, truth, blocks=blocks)
    checks.never_overstates(engine.subspace, truth, blocks=blocks)


@given(
    st.sampled_from(KINDS),
    st.integers(1, 200),
    st.integers(61, 70),
    st.sampled_from([np.float64, np.float32]),
    st.data(),
)
def test_float32_products_obey_the_same_laws(kind, n, dim, came_as, data):
    """To 1e-5, however rows are cut; the mean is subtracted before anything is rounded."""
    X = rows_of(kind, n, dim, seed=n).astype(came_as)
    parts = data.draw(cuts(n))

    engine = learnt(X, parts, dtype=np.float32, block_size=data.draw(st.none() | st.just(9)))

    truth = oracle.twin(X.astype(np.float64))
    checks.never_overstates(engine.subspace, truth, blocks=n / 9 + len(parts))


def test_the_mean_of_float32_rows_is_subtracted_with_all_of_its_digits():
    """Rows a float32 step apart, far from zero: their mean lies between two float32 numbers."""
    step = float(np.spacing(np.float32(1e6)))
    X = (1e6 + step * rows_of("noise", 400, 64, seed=0).round()).astype(np.float32)
    engine = SAPCA(10, dtype=np.float32)
    for start in range(0, 400, 100):
        engine.partial_fit(X[start : start + 100])

    truth = oracle.twin(X.astype(np.float64))
    assert np.abs(engine.subspace.mean - truth.mean).max() <= 1e-6 * step
    np.testing.assert_allclose(engine.subspace.energy, truth.energy, rtol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_float32_products_cost_no_accuracy_of_directions(offset):
    """What the ten leading directions miss is the optimum's, to 1e-11: errors enter squared."""
    X = rows_of("noise", 3000, 64, seed=0) * 0.9 ** np.arange(64) + offset
    engine = SAPCA(10, dtype=np.float32)
    for start in range(0, len(X), 500):
        engine.partial_fit(X[start : start + 500])

    truth = oracle.twin(X)
    Q = np.linalg.qr(np.asarray(engine.shown.basis, dtype=np.float64))[0]
    missed = truth.energy - float(np.trace(Q.T @ truth.scatter @ Q))
    assert missed / truth.eigenvalues[10:].sum() - 1 <= 1e-11
    np.testing.assert_allclose(engine.subspace.mean, truth.mean, rtol=1e-12, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-30, 1e-15, 1e25, 1e36])
def test_squares_that_float32_cannot_hold_are_taken_in_float64(scale):
    """Readings up to 1e37 are accepted, and their squares overflow."""
    X = rows_of("decaying", 120, 70, seed=0)
    engine = SAPCA(3, dtype=np.float32).partial_fit(X * scale)

    truth = oracle.twin(X)
    np.testing.assert_allclose(engine.subspace.energy, truth.energy * scale**2, rtol=1e-5)
    np.testing.assert_allclose(engine.shown.sigma, truth.eigenvalues[:3] ** 0.5 * scale, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("dim", [80, 200])
def test_no_direction_is_invented_from_rounding(dim, dtype):
    """Three directions in the data are three in the model, in both precisions."""
    X = rows_of("noise", 2000, 3, seed=1) @ rows_of("noise", 3, dim, seed=2)

    engine = SAPCA(10, dtype=dtype)
    for start in range(0, len(X), 50):
        engine.partial_fit(X[start : start + 50].astype(dtype))

    assert engine.algorithm == "exact covariance"
    assert engine.whole.rank == 3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("dim", [48, 390])
def test_rows_wait_whatever_the_calls_are(dim, dtype):
    """Blocks are of 500 rows, or of what the budget has room for: the same bytes by 1, 50, 740."""
    X = rows_of("decaying", 1480, dim, seed=0).astype(dtype)
    engines = [SAPCA(10, dtype=dtype) for _ in range(3)]

    for call, engine in zip((1, 50, 740), engines, strict=True):
        for start in range(0, len(X), call):
            engine.partial_fit(X[start : start + call])

    first, *others = engines
    assert "exact covariance" == first.algorithm
    assert 1480 % first.block_size == first._waiting
    for other in others:
        checks.same_bytes(first.whole, other.whole)


def test_rows_with_gaps_come_when_more_rows_wait_than_with_gaps():
    """Those without gaps are learnt first; nothing is lost or counted twice."""
    X = rows_of("noise", 700, 110, seed=0)
    engine = SAPCA(10, memory=2_000_000).partial_fit(X[:449])
    assert engine.patience <= engine._waiting == 449 < engine.block_size
    mask = np.zeros((251, 110), dtype=bool)
    mask[0, 3] = True

    engine.partial_fit(X[449:], gaps=Guesses(mask, None))

    assert 700 == engine.subspace.weight


def functions_called(learn: Callable[[], object]) -> int:
    """Return how many functions of ours are called; others count calls of garbage collection."""
    files = []
    sys.setprofile(lambda f, event, _: files.append(f.f_code.co_filename) if event == "call" else 0)
    try:
        learn()
    finally:
        sys.setprofile(None)
    return sum(file.startswith(str(Path(submerge.__file__).parent)) for file in files)


@pytest.mark.parametrize("rows", [1, 10])
def test_a_call_of_few_rows_calls_few_functions(rows):
    """As many at 10 columns as at 1,000, scores too: nothing is done for each column in Python."""
    learnt, scored = set(), set()
    for dim in (10, 400, 1000):
        X = rows_of("noise", 200, dim, seed=0)
        engine = SAPCA(4).partial_fit(X[:49])
        engine.score_samples(X[:1])
        scored.add(functions_called(lambda e=engine, X=X: e.score_samples(X[:rows])))
        learnt.add(functions_called(lambda e=engine, X=X: e.partial_fit(X[50 : 50 + rows])))

    assert {2} == learnt  # `partial_fit`, and the memory's `write`
    assert 1 == len(scored)


# -- the budget ----------------------------------------------------------------------


def path_of(dim: int, **settings: object) -> str:
    return SAPCA(10, schema=Schema.anonymous(dim), **settings).algorithm


@pytest.mark.parametrize(
    ("memory", "exact", "not_exact"),
    [(4_200_000, 405, 406), (3_000_000, 339, 340), (1_000_000, 187, 188), (0, 92, 93)],
)
def test_the_budget_says_up_to_which_dimension_it_is_exact(memory, exact, not_exact):
    """By the contract's bytes. Without a budget: where the exact path takes the less."""
    assert "exact covariance" == path_of(exact, memory=memory)
    assert "SPCA" == path_of(not_exact, memory=memory)
    assert "SPCA" == path_of(12, memory=memory, exact="never")


def test_the_default_has_500_rows_at_once_to_316_columns():
    """And says what it takes; float32 rows take half, so it is more columns."""
    engine, single = (SAPCA(10, dtype=d, schema=Schema.anonymous(316)) for d in ("f8", "f4"))

    assert 500 == engine.block_size == single.block_size
    assert 500 == rows_at_once(373, 15, 45, engine.memory, number=4)
    assert (
        exact_bytes(316, 15, 500) == engine.most_bytes <= engine.memory < exact_bytes(317, 15, 500)
    )
    assert exact_bytes(316, 15, 500, number=4) == single.most_bytes


def test_the_low_rank_path_never_refuses_for_the_budget_and_says_what_it_takes():
    """Ten thousand columns take more than three megabytes."""
    wide = SAPCA(10, schema=Schema.anonymous(10_000))

    assert wide.memory < low_rank_bytes(10_000, 15, 45) == wide.most_bytes
    assert SAPCA(10).most_bytes is None


@given(st.integers(1, 4000), st.integers(1, 60), st.integers(1, 600), st.integers(0, 10**8))
def test_no_engine_takes_more_than_budget_or_low_rank_contract(dim, k, block, memory):
    """Whichever is larger; and a larger budget is never the end of the exact path."""
    k = min(k, dim)
    for sized in (block, None):
        engine = SAPCA(
            k, oversample=0, block_size=sized, memory=memory, schema=Schema.anonymous(dim)
        )
        least = low_rank_bytes(dim, k, engine.block_size)
        assert engine.most_bytes <= max(memory, least)
    if is_exact(dim, k, block, memory, adaptive=False):
        assert is_exact(dim, k, block, memory + 1, adaptive=False)


def test_an_adaptive_rule_is_asked_as_often_as_ever():
    """It decomposes each block: blocks have k + 30 rows, and no more than k + b is exact."""
    rule = EnergyRank(0.8, 0.9, start=10)

    assert "exact covariance" == SAPCA(rule, schema=Schema.anonymous(60)).algorithm
    assert "SAPCA" == SAPCA(rule, schema=Schema.anonymous(61)).algorithm
    assert 45 == SAPCA(rule, schema=Schema.anonymous(60)).block_size
    assert 500 == SAPCA(FixedRank(10), schema=Schema.anonymous(60)).block_size
    assert 45 == SAPCA(10, block_size=45, schema=Schema.anonymous(60)).block_size


@pytest.mark.parametrize("memory", [-1, 2.5, "1MB", None])
def test_a_budget_is_a_number_of_bytes(memory):
    """Text is for configuration files."""
    with pytest.raises(UsageError, match="memory must be a whole number of at least 0"):
        SAPCA(2, memory=memory)
