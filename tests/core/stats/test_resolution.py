"""Resolution: the least step of a channel's readings, however rows are cut, and its noise."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.stats.resolution import ENOUGH, Resolution, as_read

VALUES = st.sampled_from([0.0, 0.5, 1.5, 21.0, np.nan])


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=30), st.data())
def test_steps_are_the_least_differences_however_rows_are_cut(values, data):
    """At each row those of the rows up to it, and how often; a gap is no reading."""
    every, known, found = np.array(values), Resolution.none(2), []
    rows = every
    while len(rows):
        cut = data.draw(st.integers(1, len(rows)))
        known, steps = known.after(rows[:cut])
        steps = known.steps if steps is None else steps
        for (begin, end), step, seen in zip(steps.runs(cut), steps.step, steps.seen, strict=True):
            found += [(*step, *seen)] * (end - begin)
        rows = rows[cut:]

    expected = [
        np.ravel(np.column_stack([_counted(column) for column in every[:n].T]))
        for n in range(1, len(values) + 1)
    ]
    np.testing.assert_array_equal(expected, found)
    at_once, _ = Resolution.none(2).after(every)
    np.testing.assert_array_equal(at_once, known)


def _counted(values):
    heard = values[~np.isnan(values)]
    moved = [abs(b - a) for a, b in pairwise(heard) if a != b]
    least = min(moved, default=np.nan)
    return least, min(moved.count(least), ENOUGH)


def test_after_a_restart_a_channel_is_as_coarse_as_either_readings():
    """Those of a file with two decimals, after a history with nine; and one that stands still."""
    history, _ = Resolution.none(3).after(np.array([[0, 0, 5], [1e-9, 0.5, 5], [1, 1, 5]]) + 1)
    _, steps = history.restarted.after(np.array([[0.00, 1, 5], [0.01, 1, 5], [0.03, 1, 5.25]]))

    assert steps.seen.tolist() == [[0, 0, 0], [1, 0, 0], [1, 0, 1]]
    steps.seen[-1] = ENOUGH, 0, 1
    noise = as_read(np.array([0.1, 0.1, 1e-15]), steps, np.array([False, False, True]))
    assert noise[0].tolist() == pytest.approx([0.1, 0.1, 1e11])
    assert noise[-1].tolist() == pytest.approx([0.1 + 0.01**2 / 12, 0.1, 0.25**2 / 12])


def test_rounding_is_no_step():
    """A sum that comes out in two ways does not move."""
    known, steps = Resolution.none(1).after(np.array([[0.1 + 0.2], [0.3], [0.3]]))

    assert steps is None
    assert np.isnan(known.step).all()
