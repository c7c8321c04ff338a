"""How long a value is held: three times as long as its channel is usually silent."""

from __future__ import annotations

import pytest

from submerge_client.sensors.grid import FIRST_S, HALF_LIFE_S, MOST_S, Grid, Silences

PERIOD_S = 10.0
LEAST_S = 300.0


def after(*silences_s: float) -> float:
    """How long a value is held after these."""
    silences = Silences(2, PERIOD_S)
    for seconds in silences_s:
        silences.end(1, seconds)
    assert FIRST_S == silences.ages_s[0]
    return float(silences.ages_s[1])


@pytest.mark.parametrize(
    ("silences_s", "expected"),
    [
        ((), FIRST_S),
        ((600.0,), 1800.0),
        ((600.0, 60.0, 60.0), 1800.0),
        ((1.0,), LEAST_S),
        ((7200.0,), 3 * FIRST_S),
        ((60.0, 60.0, 90_000.0), 3 * LEAST_S),
        (10 * (90_000.0,), MOST_S),
    ],
)
def test_a_value_is_held_for_three_usual_silences(silences_s, expected) -> None:
    """At least 30 rows, at most a day. A silence beyond what was held counts as much as that."""
    assert expected == pytest.approx(after(*silences_s), rel=0.01)


def test_a_silence_fades() -> None:
    """What a device did weeks ago is not its habit."""
    silences = Silences(1, PERIOD_S)
    silences.end(0, 3600.0)
    for _ in range(int(HALF_LIFE_S / 600)):
        silences.end(0, 600.0)

    assert 0.5 * 3 * 3600.0 == pytest.approx(silences.ages_s[0], rel=0.01)


def rows_with_a_value(grid: Grid, first_s: float, last_s: float) -> list[float]:
    """When rows had a value of the channel that may die; the other one always has."""
    points = []
    now = first_s
    while now <= last_s:
        grid.put(1, now, 1.0)
        points += [now for row in grid.rows(now) if row[0] == 5.0]
        now += PERIOD_S
    return points


def test_a_device_that_dies_becomes_a_gap() -> None:
    """One that spoke each two minutes, six minutes after its last word."""
    grid = Grid(2, period_s=PERIOD_S, max_age_s=None, lateness_s=0.0)
    grid.rows(0.0)
    for minute in range(0, 20, 2):
        grid.put(0, 60.0 * minute + 5.0, 5.0)
        rows_with_a_value(grid, 60.0 * minute + PERIOD_S, 60.0 * (minute + 2))
    seen = rows_with_a_value(grid, 1200.0 + PERIOD_S, 3600.0)

    assert 60.0 * 18 + 360.0 == max(seen)


def test_a_time_that_is_set_holds_for_all() -> None:
    """Habits then say nothing."""
    grid = Grid(2, period_s=PERIOD_S, max_age_s=30.0, lateness_s=0.0)
    grid.rows(0.0)
    for minute in range(3):
        grid.put(0, 60.0 * minute + 1.0, 5.0)
        seen = rows_with_a_value(grid, 60.0 * minute + PERIOD_S, 60.0 * (minute + 1))

        assert [60.0 * minute + after for after in (10.0, 20.0, 30.0)] == seen


def test_the_time_that_a_device_says_it_is_away_is_no_habit() -> None:
    """It is a gap at once, until its next reading, and is held no longer for it."""
    grid = Grid(2, period_s=PERIOD_S, max_age_s=None, lateness_s=0.0)
    grid.rows(0.0)
    for minute in range(0, 20, 2):
        grid.put(0, 60.0 * minute + 5.0, 5.0)
        rows_with_a_value(grid, 60.0 * minute + PERIOD_S, 60.0 * (minute + 2))
    assert grid.silences is not None
    before = grid.silences.ages_s.copy()
    grid.put(0, 1205.0, None)
    gone = rows_with_a_value(grid, 1200.0 + PERIOD_S, 9000.0)
    absent = grid.absent.tolist()
    grid.put(0, 9005.0, 5.0)
    back = rows_with_a_value(grid, 9000.0 + PERIOD_S, 9100.0)

    assert ([], [True, False]) == (gone, absent)
    assert 10 == len(back)
    assert before[0] == grid.silences.ages_s[0]
