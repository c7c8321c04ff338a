"""The grid: readings in their own time become rows, by the rules in its docstring.

Times are multiples of a quarter, so that every sum and product of them is exact.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge_client.sensors import grid as module
from submerge_client.sensors.grid import Grid

CHANNELS = 2
MISSING = ("hold", "mean", "drop")
nan = math.nan


class Twin:
    """Slow twin: remembers every reading, and looks at all of them for each value."""

    def __init__(self, period_s: float, max_age_s: float, lateness_s: float, missing: str) -> None:
        self.period, self.max_age, self.lateness = period_s, max_age_s, lateness_s
        self.missing = missing
        self.given: int | None = None
        self.readings: dict[tuple[int, float], float] = {}

    def put(self, channel: int, time: float, value: float | None) -> None:
        if self.given is None or math.ceil(time / self.period) > self.given:
            self.readings[channel, time] = nan if value is None else value

    def rows(self, now: float) -> np.ndarray:
        last = math.ceil((now + self.lateness) / self.period) + 1
        early = [key for key in self.readings if math.ceil(key[1] / self.period) > last]
        for key in early:
            del self.readings[key]
        due = math.floor((now - self.lateness) / self.period)
        rows = []
        if self.given is not None:
            for point in range(max(self.given + 1, due - 255), due + 1):
                row = [self.value(channel, point * self.period) for channel in range(CHANNELS)]
                gaps = sum(map(math.isnan, row))
                if gaps == 0 or (gaps < CHANNELS and self.missing != "drop"):
                    rows.append(row)
        self.given = due if self.given is None else max(due, self.given)
        return np.array(rows).reshape(-1, CHANNELS)

    def value(self, channel: int, at: float) -> float:
        past = {t: v for (c, t), v in self.readings.items() if c == channel and t <= at}
        recent = [v for t, v in past.items() if t > at - self.period and not math.isnan(v)]
        if self.missing == "mean" and recent:
            return sum(recent) / len(recent)
        if past and max(past) >= at - self.max_age:
            return past[max(past)]
        return nan


quarters = st.integers(-4, 80).map(lambda n: n / 4)
values = st.integers(-8, 8).map(float)
readings = st.tuples(st.integers(0, CHANNELS - 1), quarters, values)
choices = st.fixed_dictionaries(
    {
        "period_s": st.sampled_from([0.25, 0.5, 1.0, 2.0]),
        "max_age_s": st.sampled_from([0.0, 0.5, 1.75, 6.0]),
        "lateness_s": st.sampled_from([0.0, 0.25, 1.0, 3.0]),
        "missing": st.sampled_from(MISSING),
    }
)


gone = st.tuples(st.integers(0, CHANNELS - 1), quarters, st.none())


@given(chosen=choices, script=st.lists(readings | gone | quarters, max_size=40))
@example(
    chosen={"period_s": 0.25, "max_age_s": 6.0, "lateness_s": 0.0, "missing": "hold"},
    script=[0.0, (0, 0.25, 1.0), (1, 19.0, 2.0), 0.25, (1, 0.5, 3.0), 80.0, 500.0],
)
@example(
    chosen={"period_s": 1.0, "max_age_s": 6.0, "lateness_s": 0.0, "missing": "mean"},
    script=[0.0, (0, 0.25, 1.0), (0, 0.5, 2.0), (0, 0.75, None), 1.0, 2.0],
)
def test_the_grid_agrees_with_its_twin(chosen, script) -> None:
    """Late, early, repeated, ended and missing readings, in any order: the rows are the same."""
    grid, twin = Grid(CHANNELS, **chosen), Twin(**chosen)
    now = -math.inf
    for step in script:
        if isinstance(step, tuple):
            grid.put(*step)
            twin.put(*step)
        else:
            now = max(now, step)
            np.testing.assert_array_equal(twin.rows(now), grid.rows(now))


@settings(max_examples=20)
@given(
    chosen=choices,
    log=st.lists(
        st.tuples(st.integers(0, CHANNELS - 1), st.integers(-4, 16).map(lambda n: n / 4), values),
        max_size=25,
        unique_by=lambda reading: reading[:2],
    ),
    delays=st.tuples(*2 * [st.tuples(st.integers(0, 12), st.randoms(use_true_random=False))]),
)
def test_the_order_of_arrival_within_lateness_does_not_matter(chosen, log, delays) -> None:
    """Delayed differently and shuffled, the same readings give the same rows, bit for bit."""

    def rows_of(most: int, random) -> np.ndarray:
        grid, out = Grid(CHANNELS, **chosen), []
        arrivals = defaultdict(list)
        for channel, time, value in log:
            delay = random.randint(0, min(most, int(4 * chosen["lateness_s"]))) / 4
            # Thirds: a sum of them depends on its order, unless it is rounded once.
            arrivals[max(time + delay, -1.0)].append((channel, time, value / 3))
        grid.rows(-10.0)
        for tick in range(-4, 54):
            batch = arrivals[tick / 4]
            random.shuffle(batch)
            for reading in batch:
                grid.put(*reading)
            out.append(grid.rows(tick / 4))
        assert grid.counts["late"] == grid.counts["early"] == 0
        return np.concatenate(out)

    np.testing.assert_array_equal(rows_of(*delays[0]), rows_of(*delays[1]))


@given(
    chosen=choices,
    script=st.lists(
        readings | gone | quarters | st.tuples(st.just(0), st.floats(), st.floats()), max_size=40
    ),
    most=st.integers(1, 5),
)
def test_every_reading_and_every_point_is_counted_once(chosen, script, most) -> None:
    """Whatever comes, and wherever the clock is set, nothing is lost without a trace."""
    grid = Grid(CHANNELS, most=most, **chosen)
    put = given_out = 0
    for step in script:
        if isinstance(step, tuple):
            grid.put(*step)
            put += 1
        else:
            given_out += len(grid.rows(step))
        assert 0 <= grid.waiting <= most
    counts = grid.counts
    fates = ("taken", "late", "early", "repeated", "crowded", "unusable")

    assert put == grid.waiting + sum(counts[fate] for fate in fates)
    assert given_out == counts["rows"]
    assert grid.waiting == sum(len(r) for point in grid._waiting.values() for r in point.values())


def grid_of(missing: str = "hold", **changes: float) -> Grid:
    """A grid of two channels, a row a second, begun at 0."""
    chosen = {"period_s": 1.0, "max_age_s": 3.0, "lateness_s": 0.5} | changes
    grid = Grid(CHANNELS, missing=missing, **chosen)
    grid.rows(0.5)
    return grid


def test_a_point_waits_for_its_readings() -> None:
    """Nothing is given out before lateness_s has gone by, and nothing twice."""
    grid = grid_of()
    grid.put(0, 0.75, 5.0)

    assert grid.rows(1.25).shape == (0, 2)
    np.testing.assert_array_equal([[5, nan]], grid.rows(1.5))
    assert grid.rows(1.75).shape == (0, 2)


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("hold", [[3, 7], [3, 8], [3, 8], [3, 8]]),
        ("mean", [[2, 7], [3, 8], [3, 8], [3, 8]]),
        ("drop", [[3, 7], [3, 8], [3, 8], [3, 8]]),
    ],
)
def test_what_a_value_at_a_point_is(missing, expected) -> None:
    """Held: the newest. Mean: of those since the point before. Both until max_age_s."""
    grid = grid_of(missing)
    for reading in [(0, 0.5, 1), (0, 0.75, 2), (0, 1.0, 3), (1, 1.0, 7), (1, 1.25, 8)]:
        grid.put(*reading)

    np.testing.assert_array_equal(expected, grid.rows(4.5))


def test_a_reading_of_an_earlier_point_is_held() -> None:
    """A gap is not, nor is a reading that came for the point; as many as there are rows."""
    grid = grid_of("hold")
    for reading in [(0, 0.5, 1), (0, 3.0, 2), (1, 1.25, 8)]:
        grid.put(*reading)
    rows = grid.rows(4.5)

    np.testing.assert_array_equal([[1, nan], [1, 8], [2, 8], [2, 8]], rows)
    assert [[0, 0], [1, 0], [0, 1], [1, 1]] == grid.held.astype(int).tolist()
    assert (0, 2) == (len(grid.rows(4.5)), grid.held.shape[1])
    assert 0 == len(grid.held)


def test_a_channel_that_is_too_old_is_a_gap() -> None:
    """One silent channel: a gap, or with "drop" no row, which is counted; both: no row."""
    for missing, expected in {"hold": [[nan, 8], [nan, 8]], "drop": []}.items():
        grid = grid_of(missing)
        grid.put(0, 1.0, 3)
        grid.put(1, 3.0, 8)
        grid.rows(4.5)

        np.testing.assert_array_equal(np.array(expected).reshape(-1, 2), grid.rows(9.5))
        assert grid.counts["incomplete"] == (0 if missing == "hold" else 4)
        assert grid.counts["empty"] == 3


def test_the_past_before_the_beginning_is_remembered() -> None:
    """A value that was put before the first look holds, though its own point is not given."""
    grid = Grid(CHANNELS, period_s=1.0, max_age_s=3.0, lateness_s=0.5)
    grid.put(0, 8.0, 4.0)

    assert len(grid.rows(10.0)) == 0
    np.testing.assert_array_equal([[4, nan]], grid.rows(10.5))


def test_late_and_early_readings_are_dropped() -> None:
    """Late: its point has been given out. Early: far ahead of now."""
    grid = grid_of()
    grid.rows(5.5)
    grid.put(0, 5.0, 1.0)
    grid.put(0, 500.0, 1.0)

    assert len(grid.rows(6.5)) == 0
    assert grid.counts["late"] == 1
    assert grid.counts["early"] == 1
    assert grid.waiting == 0


def test_a_leap_of_the_clock_makes_no_flood() -> None:
    """Ten hours ahead: at most 256 rows, the rest counted; what was read is not forgotten."""
    grid = grid_of(max_age_s=1e6)
    grid.put(0, 1.0, 5.0)
    grid.put(1, 2.0, 6.0)

    rows = grid.rows(36_000.5)

    assert module.MOST_ROWS == len(rows)
    np.testing.assert_array_equal([5, 6], rows[0])
    assert 36_000 - module.MOST_ROWS == grid.counts["skipped"]


def test_a_clock_set_back_begins_the_grid_anew() -> None:
    """Rows go on at once; what was read in the future that is none is forgotten."""
    grid = grid_of()
    for time in (1000.0, 1001.0):
        grid.rows(time)
        grid.put(0, time, 5.0)
    grid.rows(1001.5)

    assert len(grid.rows(10.0)) == 0
    grid.put(1, 10.0, 7.0)

    np.testing.assert_array_equal([[nan, 7]], grid.rows(10.5))
    assert grid.counts["turned_back"] == 1


def test_a_small_step_back_only_waits() -> None:
    """A clock that is set right by less than a period does not begin the grid again."""
    grid = grid_of()
    grid.rows(5.5)

    assert len(grid.rows(4.75)) == 0
    assert grid.counts["turned_back"] == 0


def test_of_two_readings_at_the_same_time_the_later_to_arrive_counts() -> None:
    """A mean does not count a message twice that a broker delivers twice."""
    grid = grid_of("mean")
    for value in (1.0, 9.0, 9.0):
        grid.put(0, 0.25, value)
    grid.put(0, 0.5, 1.0)

    np.testing.assert_array_equal([[5, nan]], grid.rows(1.5))
    assert grid.counts["repeated"] == 2


def test_what_is_no_number_is_unusable() -> None:
    """NaN, infinity and times beyond all calendars are counted, and harm nothing."""
    grid = grid_of("mean")
    for time, value in [(1, nan), (1, math.inf), (1, 1e300), (nan, 1), (-math.inf, 1), (1e300, 1)]:
        grid.put(0, time, value)
    grid.put(0, 1.0, 1e139)
    grid.put(0, 0.5, 1e139)

    np.testing.assert_array_equal([[1e139, nan]], grid.rows(1.5))
    assert grid.counts["unusable"] == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"period_s": 0}, "period_s must be at least 0.001 seconds, got 0"),
        ({"period_s": nan}, "period_s must be at least 0.001 seconds, got nan"),
        ({"max_age_s": -1}, "max_age_s must be a time in seconds, at least 0, got -1"),
        ({"lateness_s": math.inf}, "lateness_s must be a time in seconds, at least 0, got inf"),
        ({"missing": "keep"}, 'missing must be "hold", "mean" or "drop", got \'keep\''),
    ],
)
def test_settings_that_cannot_be_are_refused(change, message) -> None:
    """In one line, with the value that came."""
    chosen = {"period_s": 1.0, "max_age_s": 3.0, "lateness_s": 0.5, "missing": "hold"}
    with pytest.raises(UsageError) as caught:
        Grid(CHANNELS, **chosen | change)

    assert message == str(caught.value)
