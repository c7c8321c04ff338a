"""Block length: how long scores stay alike, and what the group makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.stats.block_length import (
    ALIKE,
    FIRST,
    LONGEST,
    PAIRS,
    ScoreCorrelation,
    block_rows,
    group_block_s,
)


def alike_rows(scores: np.ndarray) -> int:
    """Return the slow, obvious answer: the first span whose successive means are not alike."""
    means, rows = np.log(scores[: len(scores) // FIRST * FIRST].reshape(-1, FIRST).mean(axis=1)), 8
    while True:
        first, second = means[0 : len(means) // 2 * 2 : 2], means[1::2]
        if len(first) < PAIRS:
            return rows
        both = np.concatenate((first, second))
        covariance = (first * second).mean() - both.mean() ** 2
        if covariance < ALIKE * both.var() or both.var() <= 0:
            return rows
        means, rows = (first + second) / 2, 2 * rows


def scores(seed: int, n: int, keeps: float) -> np.ndarray:
    """Return scores that forget what they were by a factor a row."""
    steps = np.random.default_rng(seed).standard_normal(n)
    for i in range(1, n):
        steps[i] = keeps * steps[i - 1] + np.sqrt(1 - keeps**2) * steps[i]
    return np.exp(steps)


@given(
    st.integers(0, 99),
    st.integers(1, 400),
    st.floats(0, 0.99),
    st.lists(st.integers(0, 400), max_size=5),
)
def test_it_is_the_same_however_rows_are_dealt(seed, n, keeps, cuts):
    """And what the slow way says, of all rows at once."""
    values, seen = scores(seed, n, keeps), ScoreCorrelation()
    for part in np.split(values, sorted(min(cut, n) for cut in cuts)):
        seen = seen.after(part, float(len(part)))

    assert (n, float(n)) == (seen.rows, seen.seen_s)
    assert alike_rows(values) == seen.alike_rows


def test_scores_that_stay_alike_call_for_longer_blocks():
    """Sixty-four rows are enough for those that do not; a day is no block for a machine."""
    quick, slow = (
        ScoreCorrelation().after(scores(1, 4000, keeps), 4000.0) for keeps in (0.0, 0.99)
    )

    assert 6 == quick.exponent
    assert 7 <= slow.exponent <= 10
    assert 16 == ScoreCorrelation().after(scores(1, 4000, 0.0), 4000 * 3600.0).exponent
    assert 13 == ScoreCorrelation().after(scores(1, 4000, 0.999), 4000 * 30.0).exponent
    assert -1 == ScoreCorrelation().exponent


@given(st.lists(st.integers(0, 2**40), max_size=LONGEST + 1), st.integers(0, LONGEST))
def test_a_length_is_a_power_of_two_or_an_hour(lengths, now):
    """Whatever nodes report."""
    length_s = group_block_s(lengths, 2.0**now)

    assert np.log2(length_s) % 1 == 0
    assert 1 <= length_s <= 2.0**LONGEST


def test_one_node_in_four_does_not_move_the_length():
    """The upper quartile does, if it is far from the present length; few nodes get more blocks."""
    assert 64.0 == group_block_s([0] * 6 + [39] + [0] * 12 + [1], 0.0)
    assert 0.0 == group_block_s([0] * 12 + [40], 0.0)
    assert 2.0**15 == group_block_s([0] * 15 + [40], 0.0)
    assert 0.0 == group_block_s([0] * 15 + [1], 0.0)
    assert 0.0 == group_block_s([], 0.0)


@pytest.mark.parametrize(
    ("block_s", "period_s", "rows"),
    [(0.0, 60.0, 60), (64.0, 1.0, 64), (64.0, 3600.0, 1), (64.0, 0.0, 0)],
)
def test_a_block_is_a_whole_number_of_rows(block_s, period_s, rows):
    """One at least; where rows have no period, blocks go by the clock."""
    assert rows == block_rows(block_s, period_s)
