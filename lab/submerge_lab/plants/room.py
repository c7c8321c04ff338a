"""A generated room of sensors: 54 motes, 216 channels, a snapshot every 31 s.

It models the Intel Berkeley lab (docs/room.md): sun, weather, people, lights and heating move four
quantities on every mote; batteries run down; readings are lost on the air; and some motes have
faults, which are on record.

It promises:

1. The same arguments give the same readings, bit for bit, in whatever chunks and order they are
   read. It reads no clock, no file, no global randomness.
2. A fault changes only its own channels within its own span: a room with `faults=()` is the same
   room without faults.
3. Memory does not grow with what was read: a page of two thousand snapshots, and a few numbers for
   every five minutes of the run.

It is not Berkeley's data, and contains no value of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from submerge import Array, Channel, UsageError
from submerge_lab.plants.ordered import product
from submerge_lab.plants.room_faults import QUANTITIES, SNAPSHOT_S, Fault, draw_faults, spoil
from submerge_lab.plants.room_plan import MOTES, RoomPlan
from submerge_lab.plants.room_weather import Almanac, saturation

__all__ = ["DAY", "MOTES", "QUANTITIES", "SNAPSHOT_S", "UNITS", "Fault", "Room"]

UNITS = ("°C", "%", "lux", "V")
DAY = 24 * 3600 / SNAPSHOT_S
"""Snapshots a day; not a whole number."""

RESOLUTION = (0.01, 0.05, 0.5, 0.001)
LOWEST = (-40.0, -4.0, 0.0, 0.0)
HIGHEST = (122.15, 100.0, 1847.36, 3.3)
"""The resolution and the limits of a mote's readings."""

PAGE = 2048
KNOT = 32
"""Snapshots between the knots of the air's movement at a mote: a quarter hour."""

_PLAN, _SENSORS, _WEATHER, _FAULTS, _NOISE, _STIR, _LOSS, _SPOILT = range(8)


class Room:
    """The generated sensor room.

    seed : Another seed is another building in other weather.
    days : Length of the run, from midnight before a Monday.
    quiet_days : Drawn faults begin later.
    n_faults : How many to draw, each on a mote of its own.

    Examples
    --------
    >>> from submerge_lab.plants.room import Room
    >>> room = Room(seed=1, days=1)
    >>> sum(len(readings) for readings in room.stream(500)) == room.n_snapshots == 2787
    True
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        days: float = 7.0,
        quiet_days: float = 2.0,
        faults: Sequence[Fault] | None = None,
        n_faults: int = 6,
    ) -> None:
        if seed < 0:
            raise UsageError(f"seed must be at least 0, got {seed}")
        if not 0 < days <= 366:
            raise UsageError(f"days must be above 0 and at most 366, got {days:g}")
        if not 0 <= n_faults <= MOTES:
            raise UsageError(f"n_faults must be from 0 to {MOTES}, got {n_faults}")
        self.seed = seed
        self.n_snapshots = max(1, int(days * DAY))
        self.channels = tuple(
            Channel(f"mote{mote:02d}.{quantity}", unit)
            for mote in range(1, MOTES + 1)
            for quantity, unit in zip(QUANTITIES, UNITS, strict=True)
        )
        self.plan = RoomPlan.draw(self._rng(_PLAN))
        self._almanac = Almanac(self._rng(_WEATHER), days)
        self._hang(self._rng(_SENSORS))
        first = int(quiet_days * DAY)
        if faults is None:
            if first >= self.n_snapshots:
                n_faults = 0
            rng = self._rng(_FAULTS)
            faults = draw_faults(rng, count=n_faults, first=first, last=self.n_snapshots)
        self.faults = tuple(sorted(faults, key=lambda fault: fault.start))
        self._page: tuple[int, tuple[Array, Array]] | None = None

    def stream(self, chunk: int) -> Iterator[Array]:
        """Yield all readings in order, (chunk, 216) at a time, NaN where a mote was silent."""
        if chunk < 1:
            raise UsageError(f"a chunk must be at least one snapshot, got {chunk}")
        for start in range(0, self.n_snapshots, chunk):
            yield self.readings(start, min(start + chunk, self.n_snapshots))

    def readings(self, start: int, stop: int) -> Array:
        """Return snapshots `start` to `stop`, (stop - start, 216), NaN where silent."""
        return self._between(start, stop, 0)

    def sound(self, start: int, stop: int) -> Array:
        """Return what motes without faults and losses would have read, (stop - start, 216)."""
        return self._between(start, stop, 1)

    # -- private ---------------------------------------------------------------

    def _between(self, start: int, stop: int, which: int) -> Array:
        if not 0 <= start <= stop <= self.n_snapshots:
            raise UsageError(
                f"snapshots must lie in 0 to {self.n_snapshots}, got {start} to {stop}"
            )
        pages = range(start // PAGE, -(-stop // PAGE))
        parts = [
            self._read(page)[which][max(0, start - page * PAGE) : stop - page * PAGE]
            for page in pages
        ]
        return np.concatenate(parts) if parts else np.empty((0, len(self.channels)))

    def _rng(self, *place: int) -> np.random.Generator:
        """Return a generator for one purpose and page, independent of the others."""
        return np.random.default_rng([self.seed, *place])

    def _hang(self, rng: np.random.Generator) -> None:
        """Draw the differences between motes: surroundings and sensor errors."""
        self._outdoors = 0.08 + 0.25 * self.plan.window * rng.uniform(0.7, 1.3, MOTES)
        self._heating = rng.uniform(0.7, 1.3, MOTES)
        self._dark = rng.uniform(0.7, 1.3, MOTES)  # shade
        self._warmth = rng.uniform(0.6, 1.4, MOTES)  # of people at a mote
        self._battery = rng.normal(2.72, 0.03, MOTES)
        self._decay = rng.uniform(0.006, 0.014, MOTES)  # V a day
        self._offset = rng.standard_normal((MOTES, 4)) * [0.4, 1.5, 2.0, 0.0]
        self._gain = 1 + rng.standard_normal((MOTES, 4)) * [0.01, 0.03, 0.05, 0.0]
        far = np.hypot(*(self.plan.positions - [20.0, 15.5]).T) / 25
        self._loss = 0.01 + 0.05 * far**2

    def _read(self, page: int) -> tuple[Array, Array]:
        """Return a page with faults and losses, and without; as a mote shows it."""
        if self._page is not None and self._page[0] == page:
            return self._page[1]
        readings = self._sound(page)
        sound, first = _as_read(readings), page * PAGE
        for fault in self.faults:
            rng = self._rng(_SPOILT, fault.mote, fault.start)
            spoil(readings, fault, first=first, sound_at=self._sound_at, rng=rng)
        readings = _as_read(readings)
        readings[self._silent(page)] = np.nan
        self._page = page, (readings.reshape(PAGE, -1), sound.reshape(PAGE, -1))
        return self._page[1]

    def _sound_at(self, snapshot: int) -> Array:
        """Return (motes, 4): one snapshot without faults."""
        return np.asarray(self._sound(snapshot // PAGE)[snapshot % PAGE])

    def _sound(self, page: int) -> Array:
        """Return (page, motes, 4): readings without faults or losses."""
        t = SNAPSHOT_S * np.arange(page * PAGE, (page + 1) * PAGE, dtype=np.float64)
        now, plan = self._almanac.at(t), self.plan
        noise = self._rng(_NOISE, page).standard_normal((PAGE, MOTES, 4))
        stir = self._stir(page)
        celsius = (
            20.0
            + np.outer(now.outdoors, self._outdoors)
            + np.outer(now.heating, 1.8 * self._heating)
            + np.outer(now.sky, 3.0 * plan.window)
            + product(now.glow, 7.0 * plan.beam.T)
            + product(now.people, (0.20 * self._warmth[:, None] * plan.near).T)
            + 0.10 * stir[:, :, 0]
        )
        relative = 100 * now.vapor[:, None] / saturation(celsius) + 0.25 * stir[:, :, 1]
        lux = self._dark * (
            np.outer(now.diffuse, 700 * plan.window)
            + product(now.beams, 1100 * plan.beam.T)
            + product(now.lights, 330 * plan.near.T)
        )
        lux *= 1 + 0.03 * stir[:, :, 2] + 0.01 * noise[:, :, 2]
        volts = self._battery - np.outer(t / 86400, self._decay) + 0.003 * (celsius - 20)
        sound = np.stack([celsius, relative, lux, volts], axis=2)
        sound *= self._gain
        sound += self._offset
        return np.asarray(sound + noise * [0.03, 0.15, 1.0, 0.003])

    def _stir(self, page: int) -> Array:
        """Return (page, motes, 3): draughts and passers-by, standard normal at each knot."""
        ours = self._rng(_STIR, page).standard_normal((PAGE // KNOT, MOTES, 3))
        next_page = self._rng(_STIR, page + 1).standard_normal((1, MOTES, 3))
        knots = np.concatenate([ours, next_page])
        share = (np.arange(KNOT) / KNOT)[:, None, None]
        between = (1 - share) * knots[:-1, None] + share * knots[1:, None]
        return np.asarray(between.reshape(PAGE, MOTES, 3))

    def _silent(self, page: int) -> npt.NDArray[np.bool_]:
        """Return (page, motes): snapshots lost on the air, one by one and in spells of an hour."""
        rng = self._rng(_LOSS, page)
        silent: npt.NDArray[np.bool_] = rng.random((PAGE, MOTES)) < self._loss
        spells = rng.poisson(0.25, MOTES)
        begin, length = rng.integers(0, PAGE, (MOTES, 8)), rng.exponential(3600, (MOTES, 8))
        for mote, count in enumerate(spells):
            for start, seconds in zip(begin[mote], length[mote], strict=True):
                if count > 0:
                    silent[start : start + int(seconds / SNAPSHOT_S) + 1, mote] = True
                    count -= 1
        return silent


def _as_read(exact: Array) -> Array:
    """Return readings (n, motes, 4) within a mote's range, at its resolution."""
    return np.asarray(np.round(np.clip(exact, LOWEST, HIGHEST) / RESOLUTION) * RESOLUTION)
