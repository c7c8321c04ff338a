"""AnotherLevel: a level is the median of rows, however they are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge_files.score.model import AT_ONCE, FEWEST, AnotherLevel

NAMES = ("flow", "speed")


def level(*blocks: np.ndarray) -> AnotherLevel:
    """Return the level of blocks, beside one of mean 0 and deviation 1."""
    found = AnotherLevel(NAMES, np.zeros(2), np.ones(2))
    for each in blocks:
        found.add(each)
    return found


@given(st.integers(FEWEST, 200), st.lists(st.integers(0, 200), max_size=6), st.integers(0, 99))
def test_few_rows_are_one_median_however_they_are_cut(n, cuts, seed):
    """Also with gaps: the median of each channel's readings."""
    rows = np.random.default_rng(seed).normal(20.0, 3.0, (n, 2))
    rows[: n // 7, 1] = np.nan

    off, said = level(*np.split(rows, sorted(min(cut, n) for cut in cuts))).far

    expected = np.nanmedian(rows, axis=0)
    assert off == pytest.approx(expected.max() if n - n // 7 >= FEWEST else expected[0])
    assert said.startswith(NAMES[expected.argmax()] if n - n // 7 >= FEWEST else "flow")


def test_a_short_fault_at_the_end_of_a_file_is_no_level():
    """Its rows count as rows, and not as a block of their own."""
    rows = np.zeros((AT_ONCE + 3, 2))
    rows[AT_ONCE:, 0] = 500.0

    assert (0.0, "") == level(rows[:AT_ONCE], rows[AT_ONCE:]).far
    assert "" == level(rows[:AT_ONCE], rows[AT_ONCE:]).said


def test_another_level_is_seen_beside_a_short_normal_end():
    """The other way round."""
    rows = np.full((AT_ONCE + 3, 2), 9.0)
    rows[AT_ONCE:] = 0.0

    assert 9.0 == level(rows[:AT_ONCE], rows[AT_ONCE:]).far[0]


def test_parts_of_workers_are_the_level_of_all():
    """Few rows of a worker are few in the sum, too."""
    rows = np.full((FEWEST - 1, 2), 50.0)
    whole = level()
    worker = whole.fresh()
    worker.add(rows)
    whole.take(worker.parts)
    few = whole.far
    whole.take(level(rows[:1]).parts)

    assert (0.0, "") == few
    assert 50.0 == whole.far[0]


def test_a_channel_that_stood_still_has_no_level():
    """Nothing says how far is far."""
    found = AnotherLevel(NAMES, np.zeros(2), np.array([0.0, 1.0]))
    found.add(np.full((100, 2), 7.0))

    assert "speed is 7 standard deviations higher" == found.far[1]
