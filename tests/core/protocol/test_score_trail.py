"""ScoreTrail: a byte a minute, the highest of each, and never a minute that no calendar has."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.protocol.names import LAST_SECOND
from submerge.protocol.score_trail import (
    LAST_MINUTE,
    LEAST,
    MINUTE_S,
    MINUTES,
    MOST,
    NO_TRAIL,
    NOTHING,
    ONE,
    STEPS,
    UNLIMITED,
    ScoreTrail,
    level_of,
    share_of,
)

EPOCH = 1_700_000_000.0
LEVELS = st.integers(UNLIMITED, MOST)
WAITS = st.floats(0, 150) | st.floats(0, 4000)
CLOCKS = (
    st.floats(0, 3e4)
    | st.floats(EPOCH - 4000, EPOCH + 4000)
    | st.floats(-1e9, 1e300)
    | st.just(float(LAST_SECOND))
)


def after(rows: list[tuple[float, int]], trail: ScoreTrail = NO_TRAIL) -> ScoreTrail:
    """Return a trail after rows of these moments and levels."""
    for wall, level in rows:
        trail = trail.add(wall, level)
    return trail


@given(st.lists(st.tuples(WAITS, LEVELS), min_size=1, max_size=80))
def test_each_minute_has_the_highest_level_of_its_rows(rows):
    """And `NOTHING` without a row, as far back as the trail goes: of a clock that only rises."""
    wall, highest, begun = EPOCH, dict[int, int](), 0
    trail = NO_TRAIL
    for wait, level in rows:
        wall += wait
        minute = int(wall // MINUTE_S)
        begun = minute if not highest or minute - max(highest) >= MINUTES else begun
        highest[minute] = max(level, highest.get(minute, NOTHING))
        trail = trail.add(wall, level)
    last = max(highest)

    first = max(begun, last + 1 - MINUTES)
    assert [highest.get(each, NOTHING) for each in range(first, last + 1)] == list(trail.levels)
    assert (first, last) == (trail.first, trail.last)


@given(st.lists(st.tuples(CLOCKS, LEVELS), max_size=40))
def test_whatever_the_clock_says_each_trail_can_be_sent(rows):
    """It has 32 levels at most, from 1970 to the last minute of 9999."""
    trail = after(rows)

    assert len(trail.levels) <= MINUTES
    assert trail == NO_TRAIL or 0 <= trail.first <= trail.last <= LAST_MINUTE


@given(st.lists(st.tuples(WAITS, LEVELS), min_size=1, max_size=40), st.data())
def test_a_clock_that_goes_back_a_little_rewrites_no_minute(rows, data):
    """The row counts in the last minute."""
    walls = [EPOCH + sum(wait for wait, _ in rows[: i + 1]) for i in range(len(rows))]
    trail = after([(wall, level) for wall, (_, level) in zip(walls, rows, strict=True)])
    back = data.draw(st.integers(0, MINUTES - 1))
    level = data.draw(LEVELS)

    again = trail.add((trail.last - back) * MINUTE_S, level)
    assert trail.last == again.last
    assert trail.levels[:-1] + bytes([max(trail.levels[-1], level)]) == again.levels


@pytest.mark.parametrize("by", [-MINUTES, MINUTES, -(10**6), 10**6])
def test_a_clock_that_jumps_begins_another_trail(by):
    """Nothing says which minutes lay between."""
    trail = after([(EPOCH, 20), (EPOCH + 60, 30)])
    minute = trail.last + by

    assert ScoreTrail(minute, bytes([40])) == trail.add(minute * MINUTE_S, 40)


@pytest.mark.parametrize("wall", [-1.0, -1e300, LAST_SECOND + 1.0, 1e300, math.inf, math.nan])
def test_a_moment_that_no_calendar_has_adds_nothing(wall):
    """Others would refuse the report for it."""
    assert NO_TRAIL == NO_TRAIL.add(wall, MOST)
    assert ScoreTrail(7, b"\2") == ScoreTrail(7, b"\2").add(wall, MOST)


@given(st.floats(2.0**-7.8, 2.0**7.8))
def test_a_level_tells_a_share_within_a_half_step(share):
    """A sixteenth of an octave is a step: 2.2 percent either way."""
    told = share_of(level_of(share))

    assert told is not None
    assert abs(math.log2(told / share)) <= 0.5 / STEPS + 1e-12


@given(st.floats(0, 1e300), st.floats(0, 1e300))
def test_levels_rise_with_shares(a, b):
    """From the least to the highest, and the limit itself is `ONE`."""
    low, high = sorted((a, b))

    assert LEAST <= level_of(low) <= level_of(high) <= MOST
    assert (ONE, 1.0) == (level_of(1.0), share_of(ONE))
    assert (LEAST, MOST) == (level_of(0.0), level_of(math.inf))


def test_no_limit_is_no_share():
    """Nor is a minute without a row."""
    assert UNLIMITED == level_of(None)
    assert (None, None) == (share_of(UNLIMITED), share_of(NOTHING))
