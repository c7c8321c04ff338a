"""A day of all plants of `loop`, minute by minute: sensors, controllers, process.

Sensors read the process, each with its own error. Analyzers show every six minutes (products:
every fifteen) the sample that they took the time before. Controllers act on readings, right or
wrong. Faults act where they do in a plant: at the sensor, at the valve, in the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plants import loop_process as process
from plants.faults import SENSOR_KINDS, Injected, offsets_of
from plants.loop_sensors import ANALYZERS, COUNT, NAMES, NOISE, PAPER, SCALE
from submerge import Array

MINUTES, EACH = 1440, 3
"""Minutes of a day; from row to row."""

PERIOD_S = 60.0 * EACH
KNOT = 480
"""Minutes between changes of set points by operators."""

RAMP = 60
"""Minutes that such a change takes."""

SPAN = np.array([27.0, 66, 40.8, 90, 480, 2700, 1, 1, 1, 1, 1])[:, None]
"""Divisors of controllers' errors: the nominal flows and pressure."""

AIMS = PAPER[list(process.HELD)]
_HELD = list(process.HELD)
_PRODUCTS = slice(14, 19)


@dataclass(slots=True)
class Moment:
    """All that the next minute depends on; columns are plants.

    x : (STATES, n)
    shown, taken : (analyzers, n), values shown now and next
    stuck : (measurements, n), readings that stuck sensors repeat
    """

    x: Array
    shown: Array
    taken: Array
    stuck: Array

    @classmethod
    def first(cls, nodes: int) -> Moment:
        """Return a state near the operating point."""
        shown = np.repeat(PAPER[ANALYZERS], nodes, axis=1)
        return cls(process.at_rest(nodes), shown, shown.copy(), np.zeros((COUNT, nodes)))

    def copy(self) -> Moment:
        """Return a copy."""
        return Moment(self.x.copy(), self.shown.copy(), self.taken.copy(), self.stuck.copy())


@dataclass(frozen=True, slots=True)
class Fleet:
    """What does not change in a run: plants, sensors' errors, set points.

    gain, off : (measurements, n)
    set_points : (knots, 3, n), rate and mix as shares, and degrees
    """

    build: process.Build
    gain: Array
    off: Array
    set_points: Array

    @classmethod
    def draw(cls, rng: np.random.Generator, nodes: int, days: int) -> Fleet:
        """Draw plants of one kind, no two equal, and their set points."""
        build = process.Build.draw(rng, nodes)
        gain = 1 + 0.01 * rng.standard_normal((COUNT, nodes))
        off = 0.5 * SCALE * rng.standard_normal((COUNT, nodes))
        knots = days * MINUTES // KNOT + 1
        wanted = rng.uniform(-1, 1, (knots, 3, nodes)) * [[0.1], [0.06], [1.0]]
        changed = rng.random((knots, 3, nodes)) < [[0.5], [0.5], [0.2]]
        changed[0] = True
        latest = np.maximum.accumulate(np.where(changed, np.arange(knots)[:, None, None], 0))
        return cls(build, gain, off, np.take_along_axis(wanted, latest, axis=0))

    def aims(self, minute: int) -> Array:
        """Return every controller's set point (11, n)."""
        knot, past = divmod(minute, KNOT)
        before, after = self.set_points[max(0, knot - 1)], self.set_points[knot]
        rate, mix, degrees = before + (after - before) * min(1.0, past / RAMP)
        aims = np.repeat(AIMS, self.off.shape[1], axis=1)
        aims[:4] *= 0.98 + rate
        aims[1] *= 1 + mix
        aims[2] *= 1 - mix
        aims[9] += degrees
        return aims


class DayFaults:
    """The faults of a day, minute by minute.

    at : The day's minutes, in rows of the run.
    """

    def __init__(
        self, faults: Sequence[Injected], at: Array, noise: Sequence[Array], nodes: int
    ) -> None:
        self._at, self._nodes = at, nodes
        self._acting = [each for each in faults if each.kind not in SENSOR_KINDS]
        self._sensors = [
            (
                fault,
                (NAMES.index(fault.channels[0]), fault.node),
                offsets_of(fault, at, PERIOD_S, draws),
            )
            for fault, draws in zip(faults, noise, strict=True)
            if fault.kind in SENSOR_KINDS
        ]

    def spoil(self, readings: Array, stuck: Array, minute: int) -> None:
        """Apply sensor faults to readings (measurements, n), in place."""
        at = self._at[minute]
        for fault, place, extra in self._sensors:
            if fault.kind != "stuck":
                readings[place] += extra[minute] * SCALE[place[0], 0]
            elif at < fault.start or at >= fault.end:
                stuck[place] = readings[place]
            else:
                readings[place] = stuck[place]

    def act(self, minute: int) -> tuple[Array, Array, Array]:
        """Return lost cooling (n,), added inert (n,), and how far valves stick (11, n)."""
        fouling, inert = np.zeros(self._nodes), np.zeros(self._nodes)
        band = np.zeros((len(process.VALVE_NAMES), self._nodes))
        for fault in self._acting:
            if not fault.start <= self._at[minute] < fault.end:
                continue
            if fault.kind == "cooling":
                fouling[fault.node] = fault.size
            elif fault.kind == "feed":
                inert[fault.node] = fault.size
            else:
                band[process.VALVE_NAMES.index(fault.channels[0]), fault.node] = fault.size
        return fouling, inert, band


def run_day(
    now: Moment, fleet: Fleet, day: int, wrong: DayFaults, noise: Array, steps: Array
) -> Array:
    """Run a day, and leave in `now` the state at its end.

    noise : Standard normal.

    Returns
    -------
    (rows, channels, n)
    """
    rows = np.empty((MINUTES // EACH, len(NAMES), noise.shape[2]))
    noise *= NOISE
    steps *= process.SWING * np.sqrt(1 - process.KEEP**2)
    x = now.x
    for minute in range(MINUTES):
        x[process.WANDER] *= process.KEEP
        x[process.WANDER] += steps[minute]
        fouling, inert, band = wrong.act(minute)
        there = process.advance(x, fleet.build, fouling, inert, day * 24 + minute / 60)
        there += noise[minute]
        _analyze(now, there, minute)
        readings = fleet.gain * (there - PAPER) + PAPER + fleet.off
        wrong.spoil(readings, now.stuck, minute)
        valves = _control(x, readings, fleet.aims(day * MINUTES + minute), band)
        if minute % EACH == EACH - 1:
            rows[minute // EACH, :COUNT], rows[minute // EACH, COUNT:] = readings, valves
    return rows


def _analyze(now: Moment, there: Array, minute: int) -> None:
    """Replace true values by those that analyzers show."""
    due = [minute % 6 == 0] * 14 + [minute % 15 == 0] * 5
    if any(due):
        now.shown[due] = now.taken[due]
        now.taken[due] = there[ANALYZERS][due]
    there[ANALYZERS] = now.shown


def _control(x: Array, readings: Array, aims: Array, band: Array) -> Array:
    """Return the eleven controllers' outputs (11, n), and move valves that do not stick."""
    error = (aims - readings[_HELD]) / SPAN
    wanted = process.OPEN + process.GAIN * (error + x[process.INTEGRAL])
    valves = np.clip(wanted, 0.0, 1.0)
    # Anti-windup: a controller at its limit does not integrate further.
    x[process.INTEGRAL] += np.where(wanted == valves, error / process.RESET, 0.0)
    way = valves - x[process.VALVES]
    x[process.VALVES] += np.where(np.abs(way) > band, way * process.MOVES, 0.0)
    return np.asarray(valves)
