"""Departures: which channels are further from where they were than ever before, and until when."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from submerge._linalg import Array
from submerge.stats.departures import LEAST, MEMORY, TELLS, TOLD, Departures

ROW_S, HOUR = 10.0, int(MEMORY)


def followed(rows: Array, known: Departures | None = None, *, block: int = 6) -> list[Departures]:
    """Return it after each block of rows (n, channels)."""
    known, found = known or Departures.none(rows.shape[1]), []
    for first in range(0, len(rows), block):
        known = known.after(rows[first : first + block], ROW_S)
        found.append(known)
    return found


def noise(hours: float, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(20, 1, (int(hours * HOUR), 3))


def begun(found: list[Departures], channel: int) -> int:
    far = [False, *(bool(each.far[channel]) for each in found)]
    return sum(now and not before for before, now in pairwise(far))


@pytest.mark.parametrize("block", [1, 6, 30])
@pytest.mark.parametrize("size", [12.0, -12.0])
def test_what_breaks_again_is_found_until_it_was_told_three_times(block, size):
    """Twenty minutes of each hour; the others, which go on, are never away."""
    rows = noise(3 + TOLD + 2)
    for k in range(TOLD + 2):
        rows[(3 + k) * HOUR : (3 + k) * HOUR + 120, 1] += size
    found = followed(rows, block=block)
    assert [begun(found, j) for j in range(3)] == [0, TOLD, 0]


def test_days_that_wander_are_no_departures():
    """Neither is the night, though each hour of the first morning is higher than all before."""
    day = 10 * np.sin(2 * np.pi * np.arange(3 * 24 * HOUR) / (24 * HOUR))
    found = followed(noise(72, 1) + day[:, None])
    assert not any(each.far.any() for each in found)


def test_a_level_that_stays_is_normal_after_an_hour():
    """The next time it is none, and so is one that a person calls normal at once."""
    rows = noise(6, 2)
    rows[3 * HOUR :, 0] += 12
    found = followed(rows)
    away = [bool(each.far[0]) for each in found]
    first = away.index(True)
    assert 3 * HOUR <= 6 * first <= 3 * HOUR + 2 * TELLS
    assert HOUR - 2 * TELLS <= 6 * away.count(True) <= HOUR
    again = noise(1, 3) + np.array([12.0, 0, 0])
    assert not any(each.far.any() for each in followed(again, found[-1]))
    accepted = found[first].normal(np.array([True, False, False]))
    assert not any(each.far.any() for each in followed(again, accepted))


def test_what_comes_back_after_hours_is_where_it_is():
    rows = noise(8, 4)
    rows[3 * HOUR : 6 * HOUR, 0] = np.nan
    rows[6 * HOUR :, 0] += 12
    assert not any(each.far.any() for each in followed(rows))


def test_few_readings_say_nothing():
    """Also of a channel that came later than the others."""
    rows = noise(3, 5)
    rows[:HOUR, 0] = np.nan
    rows[HOUR + int(LEAST) - 1, 0] = 1e300
    rows[int(LEAST) - 1, 1] = -np.inf
    assert not any(each.out.any() for each in followed(rows[: HOUR + int(LEAST)], block=1))
