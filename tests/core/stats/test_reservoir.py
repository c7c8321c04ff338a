"""Reservoirs: samples that merge, of rows that stay where they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import ShapeError, UsageError
from submerge.stats.moments import (
    KEPT,
    LARGEST_POINT,
    LEAST_WIDTH,
    SETS,
    SHARE,
    TYPICAL,
    Reservoir,
    _signs,
    merged,
    typical_square,
)
from support.strategies import cuts, rows_of

seeds = st.integers(0, 2**32)


def priorities(n: int, seed: int) -> np.ndarray:
    """So many as a node would draw."""
    return np.random.default_rng(seed).integers(2**64, size=n, dtype=np.uint64)


def naive(rows: np.ndarray, drawn: np.ndarray) -> Reservoir:
    """The rows of the smallest priorities, one after the other, in NumPy's widest floats."""
    smallest = sorted(range(len(rows)), key=lambda i: int(drawn[i]))[:KEPT]
    points = [
        _signs(rows.shape[1], int(drawn[i]) % SETS).astype(np.longdouble) @ rows[i] / 2
        for i in smallest
    ]
    return Reservoir(drawn[smallest], np.array(points, dtype=np.float32).reshape(-1, 4))


def line(n: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Rows (n, width) that vary along one line, by 1."""
    direction = rng.standard_normal(width)
    return rng.standard_normal((n, 1)) * direction / np.linalg.norm(direction)


# -- merging ------------------------------------------------------------------------


@given(st.data(), seeds)
def test_merged_in_any_grouping_it_is_the_sample_of_all_rows(data, seed):
    """To the bit: cut, order, group and nest as you like."""
    width = data.draw(st.integers(LEAST_WIDTH, 40))
    X = rows_of("badly scaled", data.draw(st.integers(1, 300)), width, seed)
    drawn = priorities(len(X), seed)
    parts = [Reservoir.of(X[cut], drawn[cut]) for cut in data.draw(cuts(len(X)))]
    parts = data.draw(st.permutations(parts))
    while len(parts) > 1:
        n = data.draw(st.integers(2, len(parts)))
        parts = [merged(*parts[:n]), *parts[n:]]

    assert Reservoir.of(X, drawn).packed == parts[0].packed


@given(seeds, st.integers(1, 200))
def test_twice_is_once(seed, n):
    """A sample that comes again, by whatever way, changes nothing."""
    X, drawn = rows_of("noise", n, 9, seed), priorities(n, seed)
    whole, part = Reservoir.of(X, drawn), Reservoir.of(X[::2], drawn[::2])

    assert whole.packed == merged(whole).packed == merged(part, whole, part, whole).packed


@given(seeds, st.integers(1, 200), st.integers(LEAST_WIDTH, 70))
def test_it_is_what_a_list_of_rows_would_be(seed, n, width):
    """Beside the obvious: sort by priority, keep the first, project each."""
    X, drawn = rows_of("noise", n, width, seed), priorities(n, seed)
    expected, got = naive(X, drawn), Reservoir.of(X, drawn)

    np.testing.assert_array_equal(expected.priorities, got.priorities)
    # Sums of so many float64, rounded to float32.
    np.testing.assert_allclose(expected.points, got.points, rtol=1e-6, atol=1e-12)


def test_what_is_said_twice_in_different_words_depends_on_no_order():
    """A liar gives two rows one priority: one of them stays, the same one wherever it is merged."""
    drawn = np.array([7], dtype=np.uint64)
    one, other = (Reservoir.of(np.full((1, 8), value), drawn) for value in (1.0, -2.0))

    assert merged(one, other).packed == merged(other, one).packed
    assert 1 == len(merged(one, other).priorities)


def test_nobody_can_change_a_sample():
    """It is a value, shared by all that have merged it."""
    sample = Reservoir.of(np.ones((3, 8)), priorities(3, 0))
    for array in (sample.priorities, sample.points):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


# -- what a sample reveals of a row ---------------------------------------------------


def test_signs_never_change():
    """Bits of Philox, pinned: points of two programs must compare."""
    text = "".join("+" if sign > 0 else "-" for sign in _signs(8, 3).ravel())

    assert "+--+--+---+----++++-+--+---++-+-" == text
    np.testing.assert_array_equal(_signs(8, 3), _signs(500, 3)[:, :8])


@pytest.mark.slow
def test_distances_are_right_on_average():
    """Over directions: unbiased, and the quantile is that of chi-squared with 4 degrees, over 4."""
    rng = np.random.default_rng(1)
    ratios = []
    for i in range(2000):
        pair = np.vstack([np.zeros(20), rng.standard_normal(20)])
        sample = Reservoir.of(pair, np.array([i, i + SETS], dtype=np.uint64))
        ratios.append(((sample.points[1] - sample.points[0]) ** 2).sum() / (pair[1] @ pair[1]))

    # Each is 0.7 off: five standard errors.
    np.testing.assert_allclose(1.0, np.mean(ratios), atol=0.08)
    np.testing.assert_allclose(TYPICAL, np.quantile(ratios, SHARE), atol=0.1)


def test_no_row_can_be_read_from_it():
    """Four numbers of each: rows that differ in all but those have the same points."""
    rng, drawn = np.random.default_rng(2), np.arange(0, 3 * SETS, SETS, dtype=np.uint64)
    X = rng.standard_normal((3, 12))
    signs = _signs(12, 0)
    unseen = np.linalg.svd(signs)[2][4:]
    other = X + 5 * rng.standard_normal((3, 8)) @ unseen
    expected, got = Reservoir.of(X, drawn), Reservoir.of(other, drawn)

    np.testing.assert_allclose(expected.points, got.points, atol=1e-5)


@pytest.mark.parametrize("width", [1, 4, 7])
def test_short_rows_have_no_reservoir(width):
    """Four numbers would reveal them."""
    with pytest.raises(ShapeError, match="8 or more"):
        Reservoir.of(np.ones((3, width)), priorities(3, 0))


@pytest.mark.parametrize(
    "drawn", [np.arange(2, dtype=np.uint64), np.arange(3), np.zeros((3, 1), dtype=np.uint64)]
)
def test_each_row_needs_a_priority(drawn):
    """64 bits of chance, or it is no sample."""
    with pytest.raises(UsageError, match="uint64 priority for each of 3 rows"):
        Reservoir.of(np.ones((3, 9)), drawn)


def test_wild_rows_are_told_as_far_away():
    """As large as readings may be: points stay numbers, and squares of them, too."""
    X = 1e139 * rows_of("noise", 100, 9, seed=1)
    sample = Reservoir.of(X, priorities(100, 1))

    assert np.abs(sample.points).max() <= np.float32(LARGEST_POINT)
    assert 0 < typical_square(sample) < 4 * 8 * LARGEST_POINT**2


# -- distances ----------------------------------------------------------------------


def off(rows: np.ndarray, seed: int) -> float:
    """By what factor it is off the mean squared distance, which it stands in for."""
    mean = 2 * rows.var(axis=0).sum()
    return typical_square(Reservoir.of(rows, priorities(len(rows), seed))) / float(mean)


@pytest.mark.slow
def test_the_usual_distance_is_that_of_all_rows():
    """Rows that vary in many directions: within a fifth in 18 cases of 20."""
    found = [off(rows_of("noise", 300, 8 + i, i), i) for i in range(60)]

    assert 0.8 < np.quantile(found, 0.05) <= np.quantile(found, 0.95) < 1.2
    assert 0.9 < np.median(found) < 1.05


@pytest.mark.slow
def test_rows_along_one_line_are_not_lost_sight_of():
    """One set of signs may look across it, and see a tenth of it; one of eight does not decide."""
    rng = np.random.default_rng(4)
    found = [off(line(200, 8 + i, rng), i) for i in range(60)]
    common = [off(line(200, 8 + i, rng)[:, :1] * np.ones(8 + i), i) for i in range(60)]

    assert 1 / 4 < np.quantile(found, 0.05) <= np.quantile(found, 0.95) < 2
    assert 1 / 4 < np.quantile(common, 0.05) <= np.quantile(common, 0.95) < 2


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_distances_are_in_the_rows_units(scale):
    """Ten times the rows, a hundred times their squares; an offset of all does not matter."""
    X, drawn = rows_of("noise", 64, 12, seed=3), priorities(64, 3)
    expected = scale**2 * typical_square(Reservoir.of(X, drawn))

    np.testing.assert_allclose(
        expected, typical_square(Reservoir.of(scale * (X + 100), drawn)), rtol=1e-3
    )


@pytest.mark.parametrize(
    "rows",
    [
        np.ones((1, 8)),
        np.full((100, 8), 5.0),
        1e9 + rows_of("noise", 100, 8, seed=5),
        np.zeros((0, 8)),
    ],
    ids=["one row", "one value", "an offset of a billion", "nothing"],
)
def test_where_nothing_can_be_told_it_says_so(rows):
    """0: the moments have to do. What float32 makes of an offset is no distance."""
    assert 0.0 == typical_square(Reservoir.of(rows, priorities(len(rows), 5)))
