"""A day of all plants of `plant_loop`, minute by minute: what sensors say, and what that moves.

Sensors read the process, each with its own error; analyzers say every six minutes (products:
every fifteen) what they took the time before; controllers act on what they are told, right or
wrong. Faults come in where they do in a plant: at the sensor, at the valve, in the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plants import loop_process as process
from plants.faults import SENSOR_KINDS, Injected, added
from plants.loop_sensors import ANALYZERS, COUNT, NAMES, NOISE, PAPER, SCALE
from submerge import Array

MINUTES, EACH = 1440, 3
"""Of a day; and from row to row."""

PERIOD_S = 60.0 * EACH
KNOT = 480
"""Minutes: operators look at their set points three times a day."""

RAMP = 60
"""Minutes that a change of theirs takes."""

SPAN = np.array([27.0, 66, 40.8, 90, 480, 2700, 1, 1, 1, 1, 1])[:, None]
"""What a controller's error is divided by: flows and the pressure, by what they are on paper."""

AIMS = PAPER[list(process.HELD)]
_HELD = list(process.HELD)
_PRODUCTS = slice(14, 19)


@dataclass(slots=True)
class Moment:
    """All that the next minute depends on; columns are plants.

    x : (STATES, n)
    shown, taken : (analyzers, n), what they say now and next
    stuck : (measurements, n), what a sensor that is stuck repeats
    """

    x: Array
    shown: Array
    taken: Array
    stuck: Array

    @classmethod
    def first(cls, nodes: int) -> Moment:
        """Return one that is near the operating point."""
        shown = np.repeat(PAPER[ANALYZERS], nodes, axis=1)
        return cls(process.at_rest(nodes), shown, shown.copy(), np.zeros((COUNT, nodes)))

    def copy(self) -> Moment:
        """Return one to go on from that leaves this one as it is."""
        return Moment(self.x.copy(), self.shown.copy(), self.taken.copy(), self.stuck.copy())


@dataclass(frozen=True, slots=True)
class Fleet:
    """What does not change: how plants are built, sensors' errors, and what operators want.

    gain, off : (measurements, n)
    orders : (knots, 3, n), rate and mix as shares, and degrees
    """

    build: process.Build
    gain: Array
    off: Array
    orders: Array

    @classmethod
    def drawn(cls, rng: np.random.Generator, nodes: int, days: int) -> Fleet:
        """Draw plants of one kind, no two alike, and what is asked of them."""
        build = process.Build.drawn(rng, nodes)
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
        before, after = self.orders[max(0, knot - 1)], self.orders[knot]
        rate, mix, degrees = before + (after - before) * min(1.0, past / RAMP)
        aims = np.repeat(AIMS, self.off.shape[1], axis=1)
        aims[:4] *= 0.98 + rate
        aims[1] *= 1 + mix
        aims[2] *= 1 - mix
        aims[9] += degrees
        return aims


class Wrong:
    """The faults of a day, ready to be asked minute by minute.

    Parameters
    ----------
    faults : sequence of Injected
    at : (MINUTES,)
        The day's minutes, in rows of the run.
    noise : per fault, (MINUTES,), standard normal
    nodes : int
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
                added(fault, at, PERIOD_S, draws),
            )
            for fault, draws in zip(faults, noise, strict=True)
            if fault.kind in SENSOR_KINDS
        ]

    def spoils(self, reported: Array, stuck: Array, minute: int) -> None:
        """Do to measurements (measurements, n), in place, what is wrong with their sensors."""
        at = self._at[minute]
        for fault, place, extra in self._sensors:
            if fault.kind != "stuck":
                reported[place] += extra[minute] * SCALE[place[0], 0]
            elif at < fault.start or at >= fault.end:
                stuck[place] = reported[place]
            else:
                reported[place] = stuck[place]

    def acts(self, minute: int) -> tuple[Array, Array, Array]:
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


def live(now: Moment, fleet: Fleet, day: int, wrong: Wrong, noise: Array, steps: Array) -> Array:
    """Live through a day, and leave in `now` how the next one begins.

    Parameters
    ----------
    noise : (MINUTES, measurements, n), steps : (MINUTES, what wanders, n)
        Standard normal.

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
        fouling, inert, band = wrong.acts(minute)
        there = process.advance(x, fleet.build, fouling, inert, day * 24 + minute / 60)
        there += noise[minute]
        _analyze(now, there, minute)
        reported = fleet.gain * (there - PAPER) + PAPER + fleet.off
        wrong.spoils(reported, now.stuck, minute)
        valves = _control(x, reported, fleet.aims(day * MINUTES + minute), band)
        if minute % EACH == EACH - 1:
            rows[minute // EACH, :COUNT], rows[minute // EACH, COUNT:] = reported, valves
    return rows


def _analyze(now: Moment, there: Array, minute: int) -> None:
    """Put what analyzers say in the place of what is there."""
    due = [minute % 6 == 0] * 14 + [minute % 15 == 0] * 5
    if any(due):
        now.shown[due] = now.taken[due]
        now.taken[due] = there[ANALYZERS][due]
    there[ANALYZERS] = now.shown


def _control(x: Array, reported: Array, aims: Array, band: Array) -> Array:
    """Return what eleven controllers tell their valves (11, n), and move those that obey."""
    error = (aims - reported[_HELD]) / SPAN
    wanted = process.OPEN + process.GAIN * (error + x[process.INTEGRAL])
    valves = np.clip(wanted, 0.0, 1.0)
    # Against its stop a controller does not go on summing up what it cannot mend.
    x[process.INTEGRAL] += np.where(wanted == valves, error / process.RESET, 0.0)
    way = valves - x[process.VALVES]
    x[process.VALVES] += np.where(np.abs(way) > band, way * process.MOVES, 0.0)
    return np.asarray(valves)
