"""CurrentModel: of which rows the model is, and when it is made."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge.history.settings import FitSettings
from submerge.incremental import CurrentModel, RowHistory

WIDTH = 4


def rows(n: int, *, seed: int = 0) -> np.ndarray:
    """Rows (n, WIDTH) of one cause and a noise."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 1)) * np.arange(1, WIDTH + 1) + 0.3 * rng.normal(size=(n, WIDTH))


@settings(max_examples=20, deadline=None)
@given(
    blocks=st.lists(st.integers(1, 90), min_size=1, max_size=12),
    first=st.integers(2, 100),
    window=st.none() | st.integers(100, 150),
)
def test_the_model_is_of_the_newest_rows_and_lags_by_an_eighth(blocks, first, window):
    """Against the list of all ends of blocks: it begins and ends at such ones."""
    model = CurrentModel(WIDTH, first=first, window=window)
    ends = [0, *np.cumsum(blocks).tolist()]
    X = rows(ends[-1])
    for start, stop in itertools.pairwise(ends):
        model.add(X[start:stop])

    assert (model.model is not None) == (ends[-1] >= first)
    assert {model.start, model.stop} <= {*ends}
    if model.model is not None:
        held = model.stop - model.start
        assert ends[-1] - model.stop < max(first, held / 8 + 1)
        assert model.start == 0 or window <= held < 2 * window + 2 * max(blocks)
        assert model.model.weight == held


def test_the_model_is_that_of_a_history_of_the_same_rows():
    """To the last bit, without the scores that a history measures its limit on."""
    X, new = rows(600), rows(20, seed=1)
    model = CurrentModel(WIDTH, first=64)
    history = RowHistory([f"x{i}" for i in range(WIDTH)], FitSettings(rank=1))
    for start in range(0, 600, 200):
        model.add(X[start : start + 200])
        history.add(X[start : start + 200])

    assert (0, 600) == (model.start, model.stop)
    np.testing.assert_array_equal(history.model.distances(new), model.model.distances(new))


def test_nothing_that_varies_is_no_model_yet():
    """Equal rows are waited out; the first that differ bring a model."""
    model = CurrentModel(WIDTH, first=2)
    model.add(np.ones((50, WIDTH)))
    assert model.model is None

    model.add(rows(50))
    assert (0, 100) == (model.start, model.stop)


@pytest.mark.parametrize("measures", [True, False])
def test_a_history_that_measures_nothing_has_the_limit_of_a_distribution(measures):
    """The chi-squared one; a history that measures has that of its own rows."""
    history = RowHistory(["a", "b", "c", "d"], FitSettings(rank=1), measures=measures)
    history.add(rows(400) ** 3)  # tails that are no Gaussian's

    assert (history.limit(0.01) > 2 * 13.28) is measures  # the 99 % quantile of 4 degrees
