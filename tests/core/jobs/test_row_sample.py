"""A sample of rows is uniform, bounded, and in order until it is full."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.errors import ShapeError, UsageError
from submerge.jobs.landmark_sample import RowSample
from support import oracle_row_sample


def rows_of(n: int) -> np.ndarray:
    """Rows that name themselves."""
    return np.arange(2.0 * n).reshape(n, 2)


@given(st.integers(1, 20), st.lists(st.integers(0, 30), max_size=8), st.integers(0, 2**32))
def test_it_is_the_rows_with_the_smallest_priorities(most, sizes, seed):
    """However the rows are cut into blocks; as its obvious twin has it."""
    rng, again = np.random.default_rng(seed), np.random.default_rng(seed)
    sample, rows = RowSample(most, 2, rng), rows_of(sum(sizes))
    cuts = np.cumsum([0, *sizes])
    for begin, end in pairwise(cuts):
        sample.add(rows[begin:end])
    expected = oracle_row_sample.smallest(rows, sizes, most, again)

    assert expected == {tuple(row) for row in sample.rows}
    assert (len(rows), min(most, len(rows))) == (sample.seen, len(sample))


def test_rows_are_in_order_until_it_is_full():
    """So a device with few rows holds them as they came."""
    sample = RowSample(10, 2, np.random.default_rng(0))
    for row in rows_of(10):
        sample.add(row[None])

    np.testing.assert_array_equal(rows_of(10), sample.rows)


def test_every_row_is_as_likely_as_any_other():
    """Of 400 samples of 5 in 20, each row is in a quarter: within five standard deviations."""
    found = np.zeros(20)
    for seed in range(400):
        sample = RowSample(5, 2, np.random.default_rng(seed))
        sample.add(rows_of(20)[:7])
        sample.add(rows_of(20)[7:])
        found[(sample.rows[:, 0] / 2).astype(int)] += 1

    assert (np.abs(found - 100) < 5 * (400 * 0.25 * 0.75) ** 0.5).all()


def test_what_is_read_is_a_copy():
    """Nothing that its reader does changes the sample."""
    sample = RowSample(3, 2, np.random.default_rng(0))
    sample.add(rows_of(3))
    sample.rows[:] = -1.0

    np.testing.assert_array_equal(rows_of(3), sample.rows)


def test_rows_of_another_width_are_refused():
    """And so is a sample of no rows."""
    with pytest.raises(ShapeError):
        RowSample(3, 2, np.random.default_rng(0)).add(np.zeros((1, 3)))
    with pytest.raises(UsageError):
        RowSample(0, 2, np.random.default_rng(0))
