"""Limits of distances from counts on a grid, against a sort of all rows."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import PeerError
from submerge.jobs.kinds.kmeans import (
    EDGES,
    check_distance_counts,
    distance_counts,
    distance_limits,
)


def sorted_limits(squares: np.ndarray) -> list[float]:
    """Distances that 95, 99 and 99.9 % do not exceed: the slow twin."""
    ordered = sorted(float(each) ** 0.5 for each in squares)
    return [
        ordered[int(np.ceil(round(level * len(ordered), 6))) - 1] for level in (0.95, 0.99, 0.999)
    ]


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_limits_are_those_of_a_sort_to_a_step(size):
    """Never below, and at most 4.5 % above."""
    squares = size * np.random.default_rng(0).chisquare(3, size=2000)

    found = distance_limits(distance_counts(squares))
    ratio = found["distance_limits"] / sorted_limits(squares)

    assert [0.95, 0.99, 0.999] == found["distance_levels"].tolist()
    assert (ratio >= 1.0).all()
    assert (ratio <= 1.045).all()


def test_counts_of_parts_add_up():
    """The limits of all rows are those of the summed counts."""
    squares = np.random.default_rng(1).chisquare(2, size=500)
    parts = sum(distance_counts(part) for part in np.array_split(squares, 7))

    np.testing.assert_array_equal(distance_counts(squares), parts)


@pytest.mark.parametrize(("rows", "levels"), [(0, 0), (19, 0), (20, 1), (100, 2), (1000, 3)])
def test_a_level_needs_its_rows(rows, levels):
    """One row in twenty, a hundred, a thousand is beyond: so many there must be."""
    found = distance_limits(distance_counts(np.ones(rows)))

    assert [levels, levels] == [len(array) for array in found.values()]


def test_distances_beyond_the_grid_are_counted():
    """Zero, and what is larger than the largest step: its limit is the end of the grid."""
    counts = distance_counts(np.array([0.0] * 20 + [1e80] * 80))

    assert 100 == counts.sum()
    assert EDGES[-1] ** 0.5 == distance_limits(counts)["distance_limits"][-1]


@pytest.mark.parametrize("change", [-1.0, 0.5, 1.0])
def test_other_counts_are_refused(change):
    """Negative ones, halves, and those of another number of rows."""
    counts = distance_counts(np.ones(3))
    counts[0] += change

    with pytest.raises(PeerError):
        check_distance_counts(counts, 3.0)
