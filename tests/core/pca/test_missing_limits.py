"""What gaps take from limits: against dense algebra, and against rows that are drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Schema, ShapeError, Subspace, hotelling, spe
from submerge.pca.missing import LEAST_LEFT, fill, shrunk
from support import oracle
from support.strategies import rows_of

kinds = st.sampled_from(["noise", "decaying"])


def learnt(kind: str, dim: int, rank: int, seed: int) -> Subspace:
    """A model about zero."""
    X = rows_of(kind, 8 * dim, dim, seed=seed)
    model = Subspace.of(X, Schema.anonymous(dim), rank=rank)
    return replace(model, mean=np.zeros(dim))


@given(kinds, st.integers(3, 12), st.integers(1, 10), st.integers(0, 999), st.data())
def test_limits_come_down_by_the_root_of_what_is_left(kind, dim, rank, seed, data):
    """Of the trace of each statistic times the covariance of filled rows."""
    model = learnt(kind, dim, min(rank, dim - 1), seed)
    present = np.array(data.draw(st.lists(st.booleans(), min_size=dim, max_size=dim)))
    present[seed % dim] = True

    found = shrunk(present, model)

    U, whole = model.basis, oracle.covariance_of(model)
    filled = oracle.filled_covariance(whole, present)
    along = U @ np.diag(1 / model.explained_variance) @ U.T
    for share, form in zip(found, (np.eye(dim) - U @ U.T, along), strict=True):
        expected = np.trace(form @ filled) / np.trace(form @ whole)
        # Near nothing the twin knows no more than rounding leaves of it.
        assert max(expected, LEAST_LEFT**2) == pytest.approx(share**2, rel=1e-4, abs=1e-6)


@given(kinds, st.integers(2, 9), st.integers(1, 9), st.integers(0, 99))
def test_gaps_only_ever_take(kind, dim, rank, seed):
    """Nothing missing takes nothing, more takes more, and something is left in any case."""
    model = learnt(kind, dim, min(rank, dim), seed)
    present = np.ones(dim, dtype=bool)
    shares = [shrunk(present, model)]
    for channel in np.random.default_rng(seed).permutation(dim):
        present[channel] = False
        shares.append(shrunk(present, model))

    assert (1.0, 1.0) == shares[0]
    assert (np.diff(shares, axis=0) <= 1e-6).all()
    assert min(shares[-1]) >= LEAST_LEFT


def test_scores_of_filled_rows_are_less_by_that():
    """Rows drawn from the model: the mean score of those with gaps, over that of whole ones."""
    model, rng = learnt("decaying", 10, 3, 1), np.random.default_rng(0)
    rows = rng.standard_normal((40_000, 10)) @ np.linalg.cholesky(oracle.covariance_of(model)).T
    present = np.ones(10, dtype=bool)
    present[[0, 4, 5]] = False
    filled = fill(np.where(present, rows, np.nan), model)[0]

    found = shrunk(present, model)

    for share, score in zip(found, (spe, hotelling), strict=True):
        drawn = score(filled, model).mean() / score(rows, model).mean()
        assert drawn == pytest.approx(share**2, abs=0.02)


def test_a_divided_score_passes_a_far_limit_about_as_often():
    """By the mean's own share it would ten times as often; the root keeps within three."""
    model, rng = learnt("noise", 24, 6, 1), np.random.default_rng(0)
    rows = rng.standard_normal((80_000, 24)) @ np.linalg.cholesky(oracle.covariance_of(model)).T
    limit, rows = np.quantile(spe(rows, model), 0.999), rows[:20_000]
    present = np.ones(24, dtype=bool)
    present[:8] = False
    scores = spe(fill(np.where(present, rows, np.nan), model)[0], model)
    share = shrunk(present, model)[0]

    assert np.mean(scores > limit) < 0.0002
    assert 0.0003 < np.mean(scores / share > limit) < 0.003
    assert np.mean(scores / share**2 > limit) > 0.003


def test_a_pattern_is_of_all_channels():
    """With the shape expected and the shape received."""
    with pytest.raises(ShapeError, match=r"\(6,\), got \(5,\)"):
        shrunk(np.ones(5, dtype=bool), learnt("noise", 6, 2, 0))
