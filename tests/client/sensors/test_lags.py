"""Lags: rows beside their past."""

from __future__ import annotations

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import UsageError
from submerge_client.sensors.gather import Lags


def embedded(rows: np.ndarray, lags: int) -> np.ndarray:
    """Slow twin: each row that has a past, and its past, one after another."""
    n, width = rows.shape
    out = [np.concatenate([rows[i - lag] for lag in range(lags)]) for i in range(lags - 1, n)]
    return np.array(out).reshape(-1, lags * width)


@given(
    rows=arrays.arrays(
        np.float64,
        st.tuples(st.integers(0, 12), st.integers(1, 3)),
        elements=st.floats(-9, 9) | st.just(np.nan),
    ),
    lags=st.integers(1, 5),
    cuts=st.lists(st.integers(0, 12), max_size=4),
)
def test_however_rows_are_cut_they_stand_beside_their_past(rows, lags, cuts) -> None:
    """Blocks of any size, empty ones too, give what the whole gives; the lead-in is counted."""
    machine = Lags(lags, rows.shape[1])

    got = [
        machine.embed(block) for block in np.split(rows, sorted(min(c, len(rows)) for c in cuts))
    ]

    np.testing.assert_array_equal(embedded(rows, lags), np.concatenate(got))
    assert min(lags - 1, len(rows)) == machine.counts["lead_in"]


def test_channels_stay_together() -> None:
    """All channels as they are come first, then all as they were a row ago."""
    got = Lags(2, 2).embed(np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]))

    np.testing.assert_array_equal([[2, 20, 1, 10], [3, 30, 2, 20]], got)


def test_one_lag_copies_nothing() -> None:
    """With lags = 1, the rows that go in are the rows that come out."""
    rows = np.ones((3, 2))

    assert Lags(1, 2).embed(rows) is rows


def test_the_past_does_not_change_with_what_the_caller_does_to_a_block() -> None:
    """A sensor may reuse its buffer."""
    machine, rows = Lags(2, 1), np.array([[1.0]])
    machine.embed(rows)
    rows[:] = 99

    np.testing.assert_array_equal([[2, 1]], machine.embed(np.array([[2.0]])))


@pytest.mark.parametrize(("lags", "width"), [(0, 1), (1.5, 1), (2, 0)])
def test_lags_and_width_are_whole_numbers(lags, width) -> None:
    """Zero lags would be no row at all."""
    with pytest.raises(UsageError, match="must be a whole number of at least 1"):
        Lags(lags, width)


def test_rows_of_another_width_are_refused() -> None:
    """The message has both shapes."""
    with pytest.raises(UsageError, match=r"rows must have shape \(n, 2\), got \(4, 3\)"):
        Lags(3, 2).embed(np.zeros((4, 3)))
