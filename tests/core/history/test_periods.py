"""The time that a row stands for follows from all rows."""

from __future__ import annotations

import numpy as np
import pytest

from submerge.history.layout import Periods


def typical(*times: np.ndarray) -> float:
    periods = Periods()
    for each in times:
        periods.add("m", each)
    return periods.typical


def test_it_is_the_median_distance():
    """Whatever the first rows are, and however long an outage was."""
    slow = np.concatenate((np.arange(300.0), 300 + 60 * np.arange(1.0, 30_001)))

    assert 60.0 == typical(slow)
    assert 60.0 == typical(60.0 * np.arange(500), 1e6 + 60.0 * np.arange(500))
    assert 0.01 == pytest.approx(typical(1.7e9 + 0.01 * np.arange(1000)), rel=1e-3)


def test_a_coarse_clock_is_seen_through():
    """A hundred rows a second, and whole seconds."""
    assert 0.01 == pytest.approx(typical(np.floor(np.arange(100_000) / 100)), rel=0.01)
    assert 1 / 300 == pytest.approx(typical(np.floor(np.arange(90_000) / 300)), rel=0.01)


def test_rows_of_irregular_times_have_a_mean_like_distance():
    """In bounded memory."""
    periods = Periods()
    apart = np.random.default_rng(0).exponential(2.0, 50_000)
    for part in np.array_split(apart.cumsum(), 50):
        periods.add("m", part)

    assert 2.0 * np.log(2) == pytest.approx(periods.typical, rel=0.05)
    assert len(periods.counts) <= 8192


def test_without_times_that_differ_there_is_none():
    assert 0.0 == typical()
    assert 0.0 == typical(np.array([5.0]))
    assert 0.0 == typical(np.full(10, 5.0))


def test_machines_are_counted_apart():
    """From one machine's last row to the next one's first is no distance."""
    periods = Periods()
    periods.add("a", np.arange(0.0, 100.0))
    periods.add("b", np.arange(0.0, 100.0))

    assert {1.0} == set(periods.counts)
