"""Resolution: the least step of a channel's readings, however rows are cut, and its noise."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.stats.resolution import ENOUGH, Resolution, as_read


@given(st.lists(st.sampled_from([0.0, 0.5, 1.5, 21.0, np.nan]), min_size=1, max_size=30), st.data())
def test_steps_are_the_least_differences_however_rows_are_cut(values, data):
    """At each row those of the rows up to it, and how often; a gap is no reading."""
    rows = np.array(values)[:, None]
    known, found = Resolution.none(1), []
    while len(rows):
        cut = data.draw(st.integers(1, len(rows)))
        known, steps = known.after(rows[:cut])
        steps = known.steps[:, None] if steps is None else steps
        found += np.broadcast_to(steps[..., 0], (3, cut)).T.tolist()
        rows = rows[cut:]

    expected, often = [], []
    for n in range(1, len(values) + 1):
        heard = [value for value in values[:n] if not np.isnan(value)]
        moved = [abs(b - a) for a, b in pairwise(heard) if a != b]
        expected.append(min(moved, default=np.nan))
        often.append(min(moved.count(expected[-1]), ENOUGH))
    np.testing.assert_array_equal(expected, [step for step, _, _ in found])
    at_once, _ = Resolution.none(1).after(np.array(values)[:, None])
    np.testing.assert_array_equal(at_once, known)
    assert often == [seen for _, _, seen in found]


def test_after_a_restart_a_channel_is_as_coarse_as_either_readings():
    """Those of a file with two decimals, after a history with nine; and one that stands still."""
    history, _ = Resolution.none(3).after(np.array([[0, 0, 5], [1e-9, 0.5, 5], [1, 1, 5]]) + 1)
    _, steps = history.restarted.after(np.array([[0.00, 1, 5], [0.01, 1, 5], [0.03, 1, 5.25]]))

    assert steps[2].tolist() == [[0, 0, 0], [1, 0, 0], [1, 0, 1]]
    steps[2, -1] = ENOUGH, 0, 1
    noise = as_read(np.array([0.1, 0.1, 1e-15]), steps, np.array([False, False, True]))
    assert noise[0].tolist() == pytest.approx([0.1, 0.1, 1e11])
    assert noise[-1].tolist() == pytest.approx([0.1 + 0.01**2 / 12, 0.1, 0.25**2 / 12])


def test_rounding_is_no_step():
    """A sum that comes out in two ways does not move."""
    known, steps = Resolution.none(1).after(np.array([[0.1 + 0.2], [0.3], [0.3]]))

    assert steps is None
    assert np.isnan(known.step).all()
