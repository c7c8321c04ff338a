"""Causes of a room's readings: sun, weather, people, lights and heating.

All are drawn once for the whole run, from a given generator, and kept at one value every five
minutes (lights: as the times of switching). Slow effects follow their causes with a lag: a wall
warms up after the sun appears, and a room after people come. docs/room.md has the figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from submerge import Array
from submerge_lab.plants.room_plan import ZONES

HOUR = 3600.0
DAY = 24 * HOUR
STEP = 300.0
BEAMS = (9.0, 12.0, 15.0)
"""Hours at which the sun is in front of the east, middle and west of the windows."""


@dataclass(frozen=True, slots=True)
class Weather:
    """Causes at given times; all arrays have one row for each time.

    outdoors : (n,) °C above its mean, with the lag of the walls
    vapor : (n,) kPa, water in the air indoors
    heating : (n,) 0..1, the radiators with the lag of the room
    diffuse, beams : (n,) and (n, 3), light through the windows, 1 at a clear noon
    sky, glow : the same, as warmth
    lights : (n, zones) 0 or 1
    people : (n, zones) as warmth
    """

    outdoors: Array
    vapor: Array
    heating: Array
    diffuse: Array
    beams: Array
    sky: Array
    glow: Array
    lights: Array
    people: Array


class Almanac:
    """The causes over a whole run, from midnight before a Monday."""

    def __init__(self, rng: np.random.Generator, days: float) -> None:
        # One day more: fronts go on when the run ends.
        whole_days = int(np.ceil(days)) + 1
        self._t = np.arange(0.0, whole_days * DAY, STEP)
        hour = self._t / HOUR % 24
        front = _front(rng, self._t, every=12 * HOUR)
        cloud = 1 / (1 + np.exp(-1.5 * _front(rng, self._t, every=5 * HOUR)))
        height = np.maximum(0.0, np.sin(np.pi * (hour - 6) / 12))
        diffuse = (0.35 + 0.25 * cloud) * height
        beams = ((1 - cloud) * height)[:, None] * np.exp(
            -0.5 * ((hour[:, None] - np.array(BEAMS)) / 1.8) ** 2
        )
        outdoors = 5 * np.cos(2 * np.pi * (hour - 15) / 24) + 2.5 * front
        dew_point = 4 + 0.8 * front + 0.8 * _front(rng, self._t, every=24 * HOUR)
        weekday = self._t // DAY % 7 < 5
        heating = np.where(weekday & (hour >= 6) & (hour < 18), 1.0, 0.0)
        people, self._switched = _visits(rng, self._t, whole_days)
        self._diffuse, self._beams = diffuse, beams
        self._outdoors = _lagged(outdoors, 5 * HOUR)
        self._vapor = _lagged(saturation(dew_point) + 0.001 * people.sum(axis=1), 2 * HOUR)
        self._heating = _lagged(heating, 2 * HOUR)
        self._sky, self._glow = _lagged(diffuse, 1 * HOUR), _lagged(beams, 1 * HOUR)
        self._people = _lagged(people, 0.7 * HOUR)

    def at(self, t: Array) -> Weather:
        """Return the causes at times t (n,), in seconds."""
        return Weather(
            outdoors=self._read(self._outdoors, t),
            vapor=self._read(self._vapor, t),
            heating=self._read(self._heating, t),
            diffuse=self._read(self._diffuse, t),
            beams=self._read(self._beams, t),
            sky=self._read(self._sky, t),
            glow=self._read(self._glow, t),
            # The light is on after an odd number of switchings.
            lights=np.stack(
                [np.searchsorted(moments, t, side="right") % 2.0 for moments in self._switched],
                axis=1,
            ),
            people=self._read(self._people, t),
        )

    def _read(self, series: Array, t: Array) -> Array:
        """Return the series at times t, linear between its steps."""
        place = np.minimum(t / STEP, len(series) - 1.001)
        left = place.astype(np.int64)
        share = (place - left).reshape(-1, *(1,) * (series.ndim - 1))
        return np.asarray((1 - share) * series[left] + share * series[left + 1])


def saturation(celsius: Array) -> Array:
    """Return water vapor pressure over water in kPa (Magnus formula)."""
    return np.asarray(0.6112 * np.exp(17.62 * celsius / (243.12 + celsius)))


def _front(rng: np.random.Generator, t: Array, *, every: float) -> Array:
    """Return standard normal knots, one `every` so many seconds, joined by smooth curves."""
    knots = rng.standard_normal(int(t[-1] / every) + 2)
    place = t / every
    left = place.astype(np.int64)
    share = 0.5 - 0.5 * np.cos(np.pi * (place - left))
    return np.asarray((1 - share) * knots[left] + share * knots[left + 1])


def _lagged(cause: Array, lag: float) -> Array:
    """Return a cause delayed with a time constant `lag`."""
    keep = float(np.exp(-STEP / lag))
    felt = np.empty_like(cause)
    # It starts from the first day's mean, so that the start of the run does not show.
    now = cause[: int(DAY / STEP)].mean(axis=0)
    for i, value in enumerate(cause):
        now = keep * now + (1 - keep) * value
        felt[i] = now
    return felt


def _visits(rng: np.random.Generator, t: Array, days: int) -> tuple[Array, list[Array]]:
    """Return people in each zone, (n, zones), and the times at which its lights are switched."""
    people = np.zeros((len(t), ZONES))
    switched: list[list[float]] = [[] for _ in range(ZONES)]
    desks = rng.integers(4, 10, ZONES)
    for day in range(days):
        cleaning = day * DAY + rng.normal(20.5, 0.3) * HOUR
        for zone in range(ZONES):
            draw = rng.random(3)
            come = rng.normal(8.7, 0.4)
            leave = rng.normal(17.6, 0.6) + (2.0 if draw[0] < 0.15 else 0.0)
            present = desks[zone] * rng.uniform(0.6, 1.0)
            if day % 7 >= 5:
                if draw[1] > 0.2:
                    continue
                come, leave, present = come + 2, leave - 2 - 3 * draw[2], 1.0
            start, end = day * DAY + come * HOUR, day * DAY + min(leave, 20.0) * HOUR
            inside = (t >= start) & (t < end)
            # They arrive within forty minutes, and most of them leave at noon.
            arrived = np.minimum(1.0, (t[inside] - start) / (40 * 60))
            noon = np.abs(t[inside] / HOUR % 24 - 12.5) < 0.4
            people[inside, zone] = present * arrived * np.where(noon, 0.35, 1.0)
            switched[zone] += [start, end + 600 * draw[2]]
            if day % 7 < 5:
                swept = max(cleaning + zone * 900, end + 1200)
                switched[zone] += [swept, swept + 720]
    return people, [np.array(moments) for moments in switched]
