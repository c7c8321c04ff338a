"""A sample of rows in groups of eight: uniform, bounded, and split into whole groups."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.errors import ShapeError, UsageError
from submerge.jobs.points import split
from submerge.jobs.row_groups import GROUP, RowGroups


def rows_of(n: int) -> np.ndarray:
    """Rows that name themselves."""
    return np.arange(1.0, 1.0 + n)[:, None]


def names(rows: np.ndarray) -> set[int]:
    return {int(each) for each in rows[:, 0]}


@given(
    st.integers(1, 80),
    st.lists(st.integers(0, 60), max_size=12),
    st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9]), min_size=1, max_size=4),
    st.integers(0, 2**32),
)
def test_what_two_jobs_learn_from_differs_by_whole_groups(most, sizes, shares, seed) -> None:
    """Whatever they hold out, and whatever has come between them."""
    sample, rows = RowGroups(most, 1, np.random.default_rng(seed)), rows_of(sum(sizes))
    learnt = list[set[int]]()
    for begin, end in pairwise(np.cumsum([0, *sizes]).tolist()):
        sample.add(rows[begin:end])
        for share in shares:
            points = split(sample.rows, {"held_out": share, "seed": len(learnt)}, sample.order)
            learnt += [names(points.rows), names(points.held_out)]
        assert len(sample) <= most

    for one in learnt:
        for other in learnt:
            assert len(one - other) % GROUP == 0


def test_every_row_is_as_likely_as_any_other() -> None:
    """Of 100 samples of 256 in 2,560: the older, the middle and the newer rows, a tenth of each."""
    found = np.zeros(2560)
    for seed in range(100):
        sample = RowGroups(256, 1, np.random.default_rng(seed))
        sample.add(rows_of(2560)[:700])
        sample.add(rows_of(2560)[700:])
        found[sample.rows[:, 0].astype(int) - 1] += 1
    shares = found.reshape(10, 256).mean(axis=1) / 100

    # The newest wait until their group is full.
    assert (np.abs(shares[:-1] - 0.1) < 0.02).all()
    assert 0.05 < shares[-1] < 0.1
    assert 25600 == found.sum()


def test_it_is_the_rows_that_came_until_it_is_full() -> None:
    """So a device with few rows holds them as they came, and what is read is a copy."""
    sample = RowGroups(24, 1, np.random.default_rng(0))
    for row in rows_of(23):
        sample.add(row[None])
    sample.rows[:] = -1.0

    np.testing.assert_array_equal(rows_of(16), sample.rows)


def test_rows_of_another_width_are_refused() -> None:
    """And so is a sample of no rows; one of fewer than eight holds none."""
    with pytest.raises(ShapeError):
        RowGroups(8, 2, np.random.default_rng(0)).add(np.zeros((1, 3)))
    with pytest.raises(UsageError):
        RowGroups(0, 2, np.random.default_rng(0))
    sample = RowGroups(7, 1, np.random.default_rng(0))
    sample.add(rows_of(20))

    assert 0 == len(sample)
