"""The steps that replace a block's eigenproblem: what they find is right, or refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import SAPCA, _linalg
from submerge.pca import ritz
from submerge.pca.serial import dumps, loads
from support import checks, oracle
from support.strategies import cuts, rows_of

FLIPS = "other channels in each block"
JUMPS = "a jump in each block"
KINDS = ("noise", "decaying", "constant channels", "late channel", "badly scaled")
KINDS += ("far from zero", "one row repeated", "zeros", FLIPS, JUMPS)

wide_engines = st.fixed_dictionaries(
    {
        "oversample": st.sampled_from([0, 1, 5]),
        "block_size": st.integers(72, 100),
        "center": st.booleans(),
        "forgetting_factor": st.sampled_from([1.0, 0.999, 0.97]),
        "exact": st.just("never"),
    }
)


def rows(kind: str, n: int, dim: int, seed: int) -> np.ndarray:
    """(n, dim) rows of one kind; two kinds turn against what was learnt before."""
    X = rows_of("noise" if kind in (FLIPS, JUMPS) else kind, n, dim, seed)
    if kind == FLIPS:
        for number, start in enumerate(range(0, n, 80)):
            X[start : start + 80, number % 4 :: 4] *= 30
    if kind == JUMPS:
        X[40::80] += 1e4
    return X


@st.composite
def wide_streams(draw) -> np.ndarray:
    """Rows for a few blocks of 72 to 100."""
    n, dim = draw(st.integers(150, 420)), draw(st.integers(12, 60))
    return rows(draw(st.sampled_from(KINDS)), n, dim, draw(st.integers(0, 2**16)))


@st.composite
def grams(draw) -> tuple[np.ndarray, int]:
    """A Gram matrix of weighed orthonormal rows above a block of any kind, and how many."""
    old, b, dim = draw(st.integers(3, 20)), draw(st.integers(60, 100)), draw(st.integers(25, 200))
    seed = draw(st.integers(0, 2**16))
    block = rows(draw(st.sampled_from(KINDS)), b, dim, seed)
    rng = np.random.default_rng(seed)
    past = np.linalg.qr(rng.standard_normal((dim, old)))[0].T
    # From a past that turns with the block to one that has nothing to do with it.
    if draw(st.booleans()):
        past = np.linalg.svd(block)[2][:old]
    sigma = np.geomspace(1, draw(st.sampled_from([1.0, 0.1, 1e-3])), old)
    size = draw(st.sampled_from([1e-3, 1.0, 30.0, 1e4])) * max(1.0, float(np.abs(block).max()))
    stack = np.vstack([size * sigma[:, None] * past, block])
    return stack @ stack.T, old


@given(grams(), st.data())
def test_what_is_returned_is_orthonormal_and_its_bound_is_true_and_tight(given_gram, data):
    """Ritz pairs never overstate, and lack at most `dropped`: 1.3 times the least possible."""
    gram, old = given_gram
    k = data.draw(st.integers(1, old))

    found = ritz.certified(gram, old, k)

    if found is None:
        return
    values, V, dropped, _ = found
    exact = np.linalg.eigvalsh(gram)[::-1]
    slack = 1e-12 * np.trace(gram)
    assert np.abs(V.T @ V - np.eye(k)).max() < 1e-13
    assert np.abs(V.T @ gram @ V - np.diag(values)).max() < slack
    assert oracle.lacking(gram, V) <= dropped + 1e-14 * np.trace(gram)
    assert dropped <= 1.3 * exact[k] + slack
    assert (values <= exact[:k] + slack).all()
    assert (exact[:k] <= values + dropped + slack).all()


@pytest.mark.parametrize("times", [0.3, 0.9])
def test_a_bound_that_is_too_small_is_not_proven(times, monkeypatch):
    """Nothing is taken on trust: below the truth, no factorisation succeeds."""
    stack = rows_of("noise", 100, 400, seed=1)
    stack[:15] = np.linalg.qr(stack[:15].T)[0].T * 40
    monkeypatch.setattr(ritz, "TRIES", (times,))

    assert ritz.certified(stack @ stack.T, 15, 15) is None


def test_few_rows_and_a_short_past_are_left_to_the_full_eigenproblem():
    """Also rows whose small directions squaring loses, and squares that cannot be squared."""
    stack = rows_of("noise", 100, 400, seed=1)
    stack[:15] = np.linalg.qr(stack[:15].T)[0].T * 40
    gram = stack @ stack.T
    steep = np.concatenate([np.geomspace(1, 1e-6, 15), np.ones(85)])

    assert ritz.certified(gram, 15, 15) is not None
    assert ritz.certified(gram[:79, :79], 15, 15) is None
    assert ritz.certified(gram, 14, 15) is None
    assert ritz.certified(gram * 1e60, 15, 15) is None
    assert ritz.certified(np.zeros((100, 100)), 15, 15) is None
    assert ritz.certified(gram * np.multiply.outer(steep, steep), 15, 15) is None


def test_a_sensor_that_starts_late_is_found_in_its_first_block():
    """The past knows nothing of it, and is orthogonal to it: the fixed vectors show it."""
    X = rows_of("noise", 900, 120, seed=0) * 3.0
    X[:, 0] = 0.0
    X[810:, 0] = 60.0 * rows_of("noise", 90, 1, seed=1)[:, 0]
    engine = SAPCA(10, block_size=90, exact="never").partial_fit(X)

    assert engine.fallbacks == 0
    truth = oracle.twin(X)
    np.testing.assert_allclose(engine.subspace.sigma[0] ** 2, truth.eigenvalues[0], rtol=1e-3)
    assert abs(engine.subspace.basis[0, 0]) > 0.99


def test_a_sound_stream_needs_the_full_eigenproblem_only_at_the_start(monkeypatch):
    """A few of a hundred blocks at most have a bound that two tries do not prove."""
    sizes = []
    real = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda G: sizes.append(len(G)) or real(G))

    SAPCA(10, exact="never").partial_fit(rows_of("noise", 20 * 85, 300, seed=0))

    assert len(sizes) >= 20
    assert 1 <= sum(size > 20 for size in sizes) <= 3


@given(wide_streams(), wide_engines, st.data())
def test_every_law_holds_for_large_blocks(X, settings, data):
    """Exact weight, mean, energy; sigma never overstates; both bounds hold."""
    rank = data.draw(st.integers(1, 12))

    engine = SAPCA(rank, **settings).partial_fit(X)

    weights = oracle.decay(len(X), settings["forgetting_factor"])
    truth = oracle.twin(X, weights, center=settings["center"])
    blocks = len(X) / settings["block_size"] + 1
    checks.never_overstates(engine.subspace, truth, blocks=blocks)
    checks.never_overstates(engine.shown, truth, blocks=blocks)


@given(wide_streams(), wide_engines, st.data())
def test_every_law_holds_for_large_blocks_in_float32(X, settings, data):
    """Multiplied in float32: the laws hold to 1e-5."""
    rank = data.draw(st.integers(1, 12))

    engine = SAPCA(rank, **settings, dtype=np.float32).partial_fit(X)

    weights = oracle.decay(len(X), settings["forgetting_factor"])
    truth = oracle.twin(X, weights, center=settings["center"])
    checks.never_overstates(engine.subspace, truth, blocks=len(X) / settings["block_size"] + 1)


@given(wide_streams(), wide_engines, st.data())
def test_how_rows_are_cut_changes_nothing_for_large_blocks(X, settings, data):
    """One call or many, read in between or not: the same bytes."""
    whole, cut = SAPCA(8, **settings), SAPCA(8, **settings)

    whole.partial_fit(X)
    for part in data.draw(cuts(len(X))):
        cut.partial_fit(X[part])
        _ = cut.subspace

    assert whole.subspace.basis.tobytes() == cut.subspace.basis.tobytes()
    assert whole.subspace.sigma.tobytes() == cut.subspace.sigma.tobytes()
    assert whole.subspace.spectral_bound == cut.subspace.spectral_bound


@pytest.mark.parametrize(("last", "single"), [(1.0, True), (1e-1, True), (1e-3, False)])
def test_float32_products_are_trusted_where_they_hold_what_is_wanted(last, single):
    """Small directions, and blocks that float32 cannot square, are multiplied in float64."""
    steep = np.concatenate([np.geomspace(1, last, 20), np.full(280, last)])
    stack = (rows_of("noise", 100, 300, seed=3) * steep).astype(np.float32)
    mix = _linalg.Mix(np.ones(100), np.zeros(100), 0.0)

    found = ritz.decomposed(stack, 0, 15, mix=mix, cancelled=0.0)
    huge = ritz.decomposed(stack * np.float32(1e20), 0, 15, mix=mix, cancelled=0.0)

    exact = np.linalg.eigvalsh(_linalg.inner(stack))[::-1]
    assert found.single == single
    assert not huge.single
    np.testing.assert_allclose(found.values, exact[:15], rtol=1e-5)
    np.testing.assert_allclose(huge.values, 1e40 * exact[:15], rtol=1e-5)


@pytest.mark.parametrize(
    ("dim", "k", "asked", "rows_of_a_block"),
    [
        (200, 15, None, 85),
        (1000, 15, None, 85),
        (3000, 15, None, 65),
        (10_000, 15, None, 45),
        (1000, 55, None, 125),
        (1000, 15, 45, 45),
        (1000, 15, 500, 85),
        (10_000, 15, 500, 85),
        (10_000, 155, 500, 325),
    ],
)
def test_how_many_rows_a_block_has(dim, k, asked, rows_of_a_block):
    """The fastest number by default, fewer if asked for, and never many times as many."""
    assert rows_of_a_block == ritz.block_rows(dim, k, asked)


def test_a_block_size_that_would_be_slow_is_cut():
    """At 120 columns a block of 500 is learnt as blocks of 85, in their memory."""
    X = rows_of("noise", 400, 120, seed=0)

    cut, fast = (SAPCA(10, block_size=b, exact="never").partial_fit(X).subspace for b in (500, 85))

    assert fast.basis.tobytes() == cut.basis.tobytes()


def test_a_default_engine_is_restored_with_its_blocks():
    """The default depends on the number of columns; a saved engine has the number chosen."""
    X = rows_of("noise", 300, 90, seed=0)
    engine = SAPCA(10, exact="never").partial_fit(X[:200])
    restored = loads(dumps(engine))

    assert engine.block_size == restored.block_size == 85
    assert dumps(engine.partial_fit(X[200:])) == dumps(restored.partial_fit(X[200:]))
