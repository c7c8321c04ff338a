"""A job's answer is taken back into the units of the channels."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import Schema
from submerge.errors import ShapeError
from submerge.jobs.local_run import in_channel_units, run_here
from submerge.schema import Channel, Scaling

SCALING = Scaling((10.0, -20.0), (2.0, 0.5))
SCHEMA = Schema((Channel("a", "K"), Channel("b", "bar")), scaling=SCALING)


def test_moments_of_scaled_rows_are_those_of_the_readings():
    """Mean and variance, as NumPy has them of the readings."""
    readings = np.random.default_rng(0).normal((12.0, -21.0), (3.0, 0.2), (500, 2))
    answer = run_here("moments", {}, {"a": SCHEMA.scaled(readings)})
    found = in_channel_units("moments", answer, SCHEMA)

    np.testing.assert_allclose(readings.mean(axis=0), found["mean"], rtol=1e-12)
    np.testing.assert_allclose(readings.var(axis=0), found["variance"], rtol=1e-12)
    np.testing.assert_array_equal(answer["count"], found["count"])


def test_centers_are_readings():
    """Each center is taken back as a row is; counts and cost stay."""
    readings = np.array([[12.0, -21.0], [14.0, -22.0], [50.0, 3.0]])
    answer = {"centers": SCHEMA.scaled(readings), "counts": np.ones(3), "cost": np.ones(1)}
    found = in_channel_units("kmeans", answer, SCHEMA)

    np.testing.assert_allclose(readings, found["centers"], rtol=1e-14)
    assert answer["counts"] is found["counts"]
    assert answer["cost"] is found["cost"]


def test_without_scaling_and_of_unknown_kinds_nothing_changes():
    """What a later kind means is not guessed."""
    answer = {"centers": np.ones((2, 2))}

    assert answer == in_channel_units("later", answer, SCHEMA)
    assert answer == in_channel_units("kmeans", answer, Schema.anonymous(2))


def test_an_answer_of_another_width_is_refused():
    """It is of another schema."""
    with pytest.raises(ShapeError):
        in_channel_units("kmeans", {"centers": np.ones((2, 3))}, SCHEMA)
