"""DutyCycles: which channels have two states, how long they stay in each, and when that is long."""

from __future__ import annotations

import numpy as np
import pytest

from submerge._linalg import Array
from submerge.stats.duty import DutyCycles

DAY, ROW_S = 1440, 60.0
OFTEN = 1 / (7 * 86_400.0)


def fridge(rng: np.random.Generator, days: float, *, on: float = 10.0, off: float = 0.1) -> Array:
    """Rows of a minute of a compressor that runs for a quarter of an hour of each 43 minutes."""
    runs = list[Array]()
    while sum(map(len, runs)) < days * DAY:
        runs.append(off + rng.normal(0, 0.02, int(rng.uniform(25, 32))))
        runs.append(on + rng.normal(0, 0.2, int(rng.uniform(13, 19))))
    return np.concatenate(runs)[:, None]


def learnt(rows: Array, *, block: int = 30, cycles: DutyCycles | None = None) -> DutyCycles:
    cycles = cycles or DutyCycles.none(rows.shape[1])
    for first in range(0, len(rows), block):
        cycles = cycles.after(rows[first : first + block], ROW_S, OFTEN)
    return cycles


def found_after(
    cycles: DutyCycles, level: float, rng: np.random.Generator, hours: int = 12
) -> float:
    """Return the hours after which it is too long that a channel stays; NaN if it never is."""
    for passed in range(hours * 12):
        rows = level + rng.normal(0, 0.02 + 0.02 * level, (5, 1))
        cycles = cycles.after(rows, ROW_S, OFTEN)
        if cycles.too_long(OFTEN).any():
            return passed / 12
    return float("nan")


@pytest.mark.parametrize("level", [10.0, 0.1])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_fridge_that_never_stops_or_starts(seed, level):
    """It is found within three of its cycles, after three days of which none was too long."""
    rng = np.random.default_rng(seed)
    cycles = DutyCycles.none(1)
    for rows in np.array_split(fridge(rng, 4), 300):
        cycles = cycles.after(rows, ROW_S, OFTEN)
        assert not cycles.too_long(OFTEN).any()

    assert found_after(cycles, level, rng) < 2.2


def test_a_peak_at_each_start_and_gaps_change_nothing():
    """Seven times the power for a row, and a third of the rows missing."""
    rng = np.random.default_rng(2)
    rows = fridge(rng, 4)
    starts = np.flatnonzero(np.diff(rows[:, 0]) > 5) + 1
    rows[starts] = 70.0
    rows[rng.random(len(rows)) < 0.3] = np.nan

    assert found_after(learnt(rows), 10.0, rng) < 2.2


@pytest.mark.parametrize("odd", [20.0, 60.0, -40.0])
@pytest.mark.parametrize("readings", [1, 4])
def test_odd_first_readings_do_not_blind_it(odd, readings):
    """A sensor says 85 degrees before its first sample, a motor draws six times its current."""
    rng = np.random.default_rng(7)
    rows = fridge(rng, 5)
    rows[:readings] = odd
    cycles = learnt(rows)

    assert min(cycles.runs_low[0], cycles.runs_high[0]) >= 24
    stays = learnt(np.full((900, 1), 10.0), cycles=cycles)
    assert stays.too_long(OFTEN)[0]


@pytest.mark.parametrize("again", [1, 2])
def test_what_is_broken_again_is_found_again(again):
    """A run that was too long counts as little more than the longest."""
    rng = np.random.default_rng(3)
    cycles = learnt(fridge(rng, 4))
    for _ in range(again):
        cycles = learnt(np.full((240, 1), 10.0), cycles=cycles)
        cycles = learnt(fridge(rng, 0.3), cycles=cycles)
        assert not cycles.too_long(OFTEN).any()

    assert found_after(cycles, 10.0, rng) < 2.2


def test_a_run_that_a_person_calls_normal():
    """As long a one is no event any more, and one of twice that is."""
    rng = np.random.default_rng(4)
    cycles = learnt(np.full((200, 1), 10.0), cycles=learnt(fridge(rng, 4)))
    assert cycles.too_long(OFTEN).all()
    cycles = cycles.normal(np.array([True]))
    assert not cycles.too_long(OFTEN).any()
    cycles = learnt(fridge(rng, 0.3), cycles=cycles)

    assert 5.0 < found_after(cycles, 10.0, rng)


def by_hours(hours: list[float], level: float = 10.0) -> Array:
    """Return rows of a channel that is off, on, off, ... for so many hours."""
    return np.concatenate(
        [np.full(int(each * 60), level * (n % 2)) for n, each in enumerate(hours)]
    )[:, None]


@pytest.mark.parametrize("seed", range(3))
def test_a_lamp_and_a_setpoint_are_none(seed):
    """A lamp for two days away, and a night's setpoint for a weekend."""
    rng = np.random.default_rng(seed)
    lamp = [x for _ in range(40) for x in (rng.lognormal(0.5, 1.2), rng.lognormal(-1, 1.2))]
    setpoint = [x for _ in range(30) for x in (8 + rng.normal(0, 0.3), 16 + rng.normal(0, 0.3))]

    assert np.isnan(found_after(learnt(by_hours(lamp), block=60), 0.0, rng, hours=20))
    assert np.isnan(found_after(learnt(by_hours(setpoint), block=60), 0.0, rng, hours=40))


@pytest.mark.parametrize("kind", ["noise", "sine", "ramp", "steps"])
def test_what_has_no_two_states(kind):
    """Noise, a wave of an hour, a ramp, and five steps."""
    rng = np.random.default_rng(5)
    at = np.arange(4 * DAY)
    rows = {
        "noise": rng.normal(0, 2.0, len(at)),
        "sine": 5 * np.sin(2 * np.pi * at / 60),
        "ramp": 10 * (at % 60) / 60,
        "steps": 5.0 * rng.integers(0, 5, len(at) // 10 + 1).repeat(10)[: len(at)],
    }[kind]

    assert 0 == learnt(rows[:, None]).known_s


def test_however_rows_are_cut_runs_are_the_same():
    """Blocks of a row, of seven, and of an hour."""
    rows = fridge(np.random.default_rng(6), 1.8)
    each = [learnt(rows, block=block) for block in (1, 7, 60)]

    assert 1 == len({(float(c.run_s[0]), float(c.state[0])) for c in each})
    for cycles in each[1:]:
        assert np.allclose(each[0].longest_high, cycles.longest_high, atol=1e-6)
        assert np.allclose(each[0].typical_low, cycles.typical_low, atol=0.1)


def test_hostile_numbers():
    """Infinities, the largest doubles and columns of gaps cost nothing but themselves."""
    rows = np.array([[np.inf, np.nan, 1e308], [-np.inf, np.nan, -1e308]] * 20)
    cycles = learnt(rows)

    assert all(np.isfinite(each[[0, 2]]).all() for each in cycles[:3])
    assert not cycles.too_long(OFTEN).any()


def test_a_plug_has_power_and_current():
    """Both stay on, and are one event; a third channel that changes as usual is none of it."""
    rng = np.random.default_rng(7)
    power = fridge(rng, 4)
    other = np.roll(power, 20)
    cycles = learnt(np.hstack([power, 0.9 * power + 0.3, other]))
    stays = np.hstack([np.full((90, 1), 10.0), np.full((90, 1), 9.3), fridge(rng, 1)[:90]])
    cycles = learnt(stays, cycles=cycles)

    assert [True, True, False] == cycles.together(np.array([True, False, False])).tolist()


def test_what_stays_for_more_than_a_day_is_used_otherwise():
    """It is too long until then, and later runs of the same length are none that are told."""
    rng = np.random.default_rng(11)
    cycles, told_h = learnt(fridge(rng, 4)), []
    for _ in range(3):
        hours = 0.0
        for _ in range(36):
            cycles = learnt(np.full((60, 1), 10.0), block=60, cycles=cycles)
            hours += float(cycles.too_long(OFTEN)[0])
        told_h.append(hours)
        cycles = learnt(fridge(rng, 0.2), cycles=cycles)

    assert 20 < told_h[0] <= 24
    assert told_h[1:] == [0, 0]
