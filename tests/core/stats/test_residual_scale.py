"""The typical size of each channel's residual at one node."""

from __future__ import annotations

import numpy as np
import pytest

from submerge.stats.residual_scale import HALF_LIFE_S, READY_S, ResidualScale, largest_square

DAY = 86400.0


def test_it_is_the_mean_square_of_what_was_there():
    """Gaps do not count, and old errors count for less."""
    errors = np.array([[1.0, np.nan], [3.0, 2.0]])
    scale = ResidualScale.none(2).after(errors, DAY)
    assert [5.0, 4.0] == scale.squares.tolist()
    assert [2.0, 1.0] == scale.weight.tolist()

    later = scale.after(np.array([[0.0, 0.0], [0.0, 0.0]]), HALF_LIFE_S)
    assert [5.0 / 3, 4.0 / 5] == pytest.approx(later.squares.tolist())


def test_it_is_believed_after_a_day():
    """A night says nothing about noon."""
    scale = ResidualScale.none(1).after(np.ones((3, 1)), READY_S - 1)
    assert not scale.ready
    assert scale.after(np.ones((3, 1)), 1.0).ready


def test_the_largest_is_by_what_is_usual():
    """Not the channel that errs most, but the one that errs as it never does."""
    scale = ResidualScale(np.array([100.0, 1.0]), np.ones(2))

    assert [9.0] == largest_square(np.array([[10.0, 3.0]]), scale.weights(np.ones(2))).tolist()


def test_a_channel_that_nobody_uses_does_not_stray():
    """Its errors are rounding: what the model expects of it is their least measure."""
    scale = ResidualScale(np.array([1e-34, 0.0, 1.0]), np.array([9.0, 9.0, 0.0]))
    errors = np.array([[1e-16, 1e-16, 50.0]])

    assert largest_square(errors, scale.weights(np.array([0.1, 0.1, 0.1])))[0] < 1e-20
    assert [0.0] == largest_square(errors, scale.weights(np.zeros(3))).tolist()


def test_a_wild_error_is_not_usual():
    """It counts for five times what is, whatever it was."""
    scale = ResidualScale.none(1).after(np.ones((99, 1)), READY_S)

    assert scale.after(np.array([[1e9]]), 0.0).squares[0] == pytest.approx((99 + 25) / 100)


def test_a_channel_that_came_late_is_judged_after_a_day_of_its_own():
    """Of a few of its rows nothing follows, and what they clip would stay wrong."""
    minute = np.array([[1.0, np.nan]])
    scale = ResidualScale.none(2).after(np.repeat(minute, 2880, axis=0), 2 * DAY)
    few = scale.after(np.full((10, 2), 0.001), 600.0)
    many = few.after(np.ones((1440, 2)), DAY)

    assert [1.0, 0.0] == few.weights(np.ones(2)).round().tolist()
    assert [True, False] == few.mature.tolist()
    assert few.typical[1] == 0
    assert [True, True] == many.mature.tolist()
    assert many.squares[1] == pytest.approx(1440 / 1450, rel=0.01)
