"""Rows to choose landmarks from: bounded, and with the rows that make most of a kernel."""

from __future__ import annotations

import numpy as np
import pytest

from submerge.features import Gaussian, Polynomial
from submerge.jobs.landmark_sample import LandmarkSample, RowSample


def stream(n: int = 2000) -> np.ndarray:
    """Rows of which five are far out, in channels of other units."""
    rows = np.random.default_rng(1).standard_normal((n, 3))
    rows[100::400] *= 30
    return rows * [1.0, 10.0, 1000.0] + [0.0, 50.0, 1e6]


def held(kernel, most: int = 16, block: int = 50, seed: int = 0) -> LandmarkSample:
    sample = LandmarkSample(most, 3, kernel, np.random.default_rng(seed), raw=True)
    rows = stream()
    for start in range(0, len(rows), block):
        sample.add(rows[start : start + block])
    return sample


@pytest.mark.parametrize("block", [1, 50, 2000])
def test_rows_far_out_are_held_for_a_polynomial_kernel(block):
    """All five of 2000: their kernel is thousands of times that of the others."""
    far = {tuple(row) for row in stream()[100::400]}

    assert far <= {tuple(row) for row in held(Polynomial(4), block=block).rows}


def test_a_uniform_sample_of_as_many_rows_holds_none_of_them():
    """That is why there is another half."""
    uniform = RowSample(16, 3, np.random.default_rng(0))
    uniform.add(stream())

    assert not {tuple(row) for row in stream()[100::400]} & {tuple(r) for r in uniform.rows}


def test_for_a_radial_kernel_it_is_the_uniform_sample():
    """There k(x, x) is 1 for all rows."""
    uniform = RowSample(16, 3, np.random.default_rng(0))
    for start in range(0, 2000, 50):
        uniform.add(stream()[start : start + 50])

    np.testing.assert_array_equal(uniform.rows, held(Gaussian()).rows)


@pytest.mark.parametrize("most", [1, 2, 7, 16])
def test_memory_is_bounded_and_a_row_is_there_once(most):
    """Whichever half it is in."""
    rows = held(Polynomial(2, coef0=1.0), most=most).rows

    assert 1 <= len(rows) <= most
    assert len(rows) == len({tuple(row) for row in rows})
    assert {tuple(row) for row in rows} <= {tuple(row) for row in stream()}


def test_rows_are_drawn_by_their_weight():
    """Of two kinds of rows, whose k(x, x) are as 16 to 1, the larger is drawn first as often."""
    first = 0
    for seed in range(600):
        sample = LandmarkSample(2, 1, Polynomial(2), np.random.default_rng(seed))
        sample.add(np.array([[2.0], [1.0], [-2.0], [-1.0]]))
        first += abs(float(sample._rows[0, 0])) == 2.0

    # 16 / 17, within three standard deviations of 600 draws.
    assert abs(first / 600 - 16 / 17) < 0.03


def test_a_stuck_stream_is_no_error():
    """Rows that never vary have no scale, and all weigh alike."""
    sample = LandmarkSample(4, 2, Polynomial(3), np.random.default_rng(0), raw=True)
    sample.add(np.full((10, 2), 3.0))

    np.testing.assert_array_equal([[3.0, 3.0]], sample.rows)
