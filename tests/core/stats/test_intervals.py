"""Intervals of shares and counts hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from submerge.stats.block_maxima import count_interval, share_interval


@pytest.mark.parametrize(("of", "n"), [(0, 1), (1, 1), (3, 5), (40, 50), (0, 30), (99, 100)])
def test_the_interval_of_a_share_is_that_of_wilson(of, n):
    expected = stats.binomtest(of, n).proportion_ci(0.95, method="wilson")
    assert (expected.low, expected.high) == pytest.approx(share_interval(of, n), abs=1e-3)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 30, 400])
def test_the_interval_of_a_count_is_nearly_the_exact_one(count):
    """Of Garwood, by the chi-squared distribution; within 4 % of its ends."""
    low = stats.chi2.ppf(0.025, 2 * count) / 2 if count else 0.0
    high = stats.chi2.ppf(0.975, 2 * count + 2) / 2
    assert np.array([low, high]) == pytest.approx(count_interval(count), rel=0.04, abs=0.02)
