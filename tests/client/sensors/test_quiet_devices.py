"""A week of devices that speak seldom, through the real monitor: what is held is not stuck.

Twelve devices as behind Zigbee2MQTT, on a grid of ten seconds: thermometers that speak once in one
to ten minutes, or each half degree; light meters; a battery; a plug that is on now and then; a fast
one. Each is out of reach for up to an hour and a half, six times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

from submerge import Schema
from submerge.client.incarnation import ClientIncarnation
from submerge.client.ingest import Ingest
from submerge.protocol.machine import Now
from submerge.protocol.messages import Counts, Incarnation, Model
from submerge.protocol.settings import AlarmSettings, ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty
from submerge_client.sensors.gather import Gathered
from submerge_client.sensors.grid import Grid

pytestmark = pytest.mark.slow

DAY_S, PERIOD_S, ROWS = 86_400.0, 10.0, 60
RANK = 4


class Spoken(NamedTuple):
    """A reading of a device."""

    time: float
    device: int
    value: float


class House:
    """Devices in three rooms, whose temperatures follow the day and wander."""

    def __init__(self, seed: int, days: float) -> None:
        self.rng, self.end_s = np.random.default_rng(seed), days * DAY_S
        self.at = np.arange(0, self.end_s + 1200, 600.0)
        walks = np.cumsum(self.rng.normal(0, 0.05, (3, len(self.at))), axis=1)
        day = np.ones(145) / 145
        self.wander = [walk - np.convolve(walk, day, "same") for walk in walks]

    def temperature(self, time: float, device: int) -> float:
        daily = 3 * np.sin(2 * np.pi * time / DAY_S + 0.2 * device)
        return float(20 + daily + np.interp(time, self.at, self.wander[device % 3]))

    def readings(self) -> list[Spoken]:
        devices = [self.thermometer(i) for i in range(6)]
        devices += [self.half_degrees(i) for i in (6, 7)] + [self.light(i) for i in (8, 9)]
        devices += [self.battery(10), self.plug(11), self.thermometer(12, every_s=PERIOD_S)]
        heard = list[Spoken]()
        for device in devices:
            away = [
                (s, s + self.rng.uniform(600, 5400)) for s in self.rng.uniform(0, self.end_s, 6)
            ]
            heard += [
                spoken
                for spoken in device
                if spoken.time < self.end_s and not any(a <= spoken.time < b for a, b in away)
            ]
        return sorted(heard)

    def thermometer(self, i: int, every_s: float = 0.0) -> Iterator[Spoken]:
        every_s, time = every_s or self.rng.uniform(60, 600), self.rng.uniform(0, 60)
        while time < self.end_s:
            yield Spoken(time, i, round(self.temperature(time, i) + self.rng.normal(0, 0.05), 2))
            time += every_s * self.rng.uniform(0.7, 1.3)

    def half_degrees(self, i: int) -> Iterator[Spoken]:
        last = 0.0
        for time in np.arange(self.rng.uniform(0, 60), self.end_s, 60.0):
            value = round(2 * self.temperature(time, i)) / 2
            if value != last:
                yield Spoken(time, i, value)
            last = value

    def light(self, i: int) -> Iterator[Spoken]:
        last = -1.0
        for time in np.arange(self.rng.uniform(0, 60), self.end_s, self.rng.uniform(60, 600)):
            sun = 500 * np.sin(2 * np.pi * time / DAY_S) + self.rng.normal(0, 10)
            value = max(0.0, round(sun))
            if value != last:
                yield Spoken(time, i, value)
            last = value

    def battery(self, i: int) -> Iterator[Spoken]:
        for time in np.arange(7.0, self.end_s, 3600.0):
            yield Spoken(time, i, 100.0 - time // (20 * 3600))

    def plug(self, i: int) -> Iterator[Spoken]:
        time = 0.0
        while time < self.end_s:
            on_s = self.rng.uniform(600, 5400)
            for at in np.arange(time, time + on_s, 60.0):
                yield Spoken(at, i, round(100 + self.rng.normal(0, 3), 1))
            yield Spoken(time + on_s, i, 0.0)
            time += on_s + self.rng.uniform(3600, 6 * 3600)


def rows_of(readings: list[Spoken], channels: int, end_s: float) -> Gathered:
    """The rows that the sensor makes of them, and what is held in them."""
    grid = Grid(channels, period_s=PERIOD_S, max_age_s=None, lateness_s=0.0)
    grid.rows(0.0)
    rows, held, coming = [], [], iter([*readings, Spoken(np.inf, 0, 0.0)])
    spoken = next(coming)
    for now in np.arange(60.0, end_s, 60.0):
        while spoken.time <= now:
            grid.put(spoken.device, spoken.time, spoken.value)
            spoken = next(coming)
        rows.append(grid.rows(now))
        held.append(grid.held)
    return Gathered(np.concatenate(rows), np.concatenate(held))


def causes_of_alarms(gathered: Gathered) -> set[str]:
    """The alarms of a client that reads them, with a model of their first day.

    Its limits are out of reach, so that no score is an alarm.
    """
    rows, held = gathered
    channels = rows.shape[1]
    day = rows[: int(DAY_S / PERIOD_S)]
    rows = (rows - np.nanmean(day, axis=0)) / np.nanstd(rows, axis=0)
    summaries, schema = Subspaces(RANK), Schema(channels, center="own")
    learner, full = summaries.learner(schema), rows[: len(day)]
    full = full[~np.isnan(full).any(axis=1)]
    learner.learn(full, full)
    never = QuantileSketch.of(np.full(9000, 1e9), FINE)
    model = Model(
        *("g", 1, schema.canonical, schema.fingerprint, learner.summary(), None),
        *(Counts(len(full)), 40, (0.0, 0.0, 0.0)),
        created=0.0,
        expires=1e12,
        maxima=BlockMaxima(never, never, empty(FINE), 500),
    )
    settings = ClientSettings(
        *("n", "g", "root"), alarms=AlarmSettings(period_s=PERIOD_S), fills_gaps=True
    )
    intake = Ingest(summaries, np.random.default_rng(1), settings)
    intake.load(None)
    current = ClientIncarnation(
        *(Incarnation(1, 1), schema, summaries, Now(0.0, 1.7e9)), learns=True, raw=False, lost=0
    )
    causes = set[str]()
    for first in range(0, len(rows), ROWS):
        steady = PERIOD_S * (first + ROWS)
        part, now = slice(first, first + ROWS), Now(steady, 1.7e9 + steady)
        intake.read(rows[part], current, model, now, None if held is None else held[part])
        assert intake.monitor is not None
        causes |= {alarm.cause for alarm in intake.monitor.alarms}
    return causes


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_a_week_of_quiet_devices_has_no_stuck_channel(seed) -> None:
    """Values are held for minutes and hours, and most rows are complete."""
    house = House(seed, days=7)
    gathered = rows_of(house.readings(), 13, house.end_s)

    assert causes_of_alarms(gathered) <= {"silent"}
    assert 0.03 > np.isnan(gathered.rows[:, :8]).mean()


def test_it_is_the_sensor_that_says_what_is_held() -> None:
    """From the rows alone the same week has a stuck channel: a plug out of reach."""
    house = House(0, days=7)
    gathered = rows_of(house.readings(), 13, house.end_s)

    assert {"stuck"} == causes_of_alarms(gathered._replace(held=None)) - {"silent"}


@pytest.mark.parametrize("device", [12, pytest.param(1, marks=pytest.mark.soak)])
def test_a_thermometer_that_repeats_itself_is_stuck_all_the_same(device) -> None:
    """The fast one, or one of minutes, sends one number, once the client knows it."""
    house = House(0, days=5)
    readings = [
        spoken._replace(value=20.25)
        if spoken.device == device and spoken.time > 3 * DAY_S
        else spoken
        for spoken in house.readings()
    ]

    causes = causes_of_alarms(rows_of(readings, 13, house.end_s))
    assert {"stuck"} == causes - {"silent"}


def test_a_device_that_dies_is_a_gap_and_silent() -> None:
    """The lights, which say nothing all night, are not silent."""
    house = House(0, days=2)
    readings = [s for s in house.readings() if s.device != 3 or s.time < DAY_S]
    last_s = max(spoken.time for spoken in readings if spoken.device == 3)
    gathered = rows_of(readings, 13, house.end_s)
    known = np.flatnonzero(~np.isnan(gathered.rows[:, 3]))

    assert PERIOD_S * known[-1] < last_s + 3 * 5400 < PERIOD_S * len(gathered.rows)
    assert {"silent"} == causes_of_alarms(gathered)
