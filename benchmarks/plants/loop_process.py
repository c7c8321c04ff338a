"""The process of `loop`: reactor, separator, stripper, eleven control loops, minute by minute.

Two reactions make P and Q of three feeds, a third one waste: A + D -> P, A + E -> Q, D -> F; B is
inert. Products gather in the reactor's liquid, evaporate into gas that a compressor drives round,
condense in the separator and are freed of what is volatile in the stripper. All quantities are
the model's own (kmol, minutes, degrees); docs/plants.md has the equations in words.

A plant's state is one column of numbers: all plants of a fleet are stepped together, and a copy
of the array is all it takes to go on from any moment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from submerge import Array

A, B, D, E, F, P, Q = range(7)
SPECIES = ("A", "B", "D", "E", "F", "P", "Q")

GAS, REACTOR, SEPARATOR, STRIPPER = (slice(7 * i, 7 * i + 7) for i in range(4))
HEAT = slice(28, 33)
"""Reactor, its cooling water, separator, its cooling water, stripper: °C."""
VALVES = slice(33, 44)
INTEGRAL = slice(44, 55)
WANDER = slice(55, 65)
STATES = 65

FEEDS = ("feed A", "feed D", "feed E", "feed mix")
VALVE_NAMES = (
    *(f"{feed} valve" for feed in FEEDS),
    "recycle valve",
    "purge valve",
    "separator valve",
    "stripper valve",
    "steam valve",
    "reactor cooling valve",
    "condenser valve",
)
HELD = (0, 1, 2, 3, 4, 6, 11, 14, 17, 8, 10)
"""For each valve the measurement that its controller holds."""

OPEN = np.array([0.45, 0.5, 0.5, 0.5, 0.5, 0.4, 0.45, 0.45, 0.47, 0.45, 0.4])[:, None]
GAIN = np.array([0.3, 0.3, 0.3, 0.3, -0.8, -3.0, -0.010, -0.010, 0.015, -0.04, -0.02])[:, None]
RESET = np.array([2.0, 2.0, 2.0, 2.0, 4.0, 60.0, 90.0, 90.0, 25.0, 25.0, 20.0])[:, None]
"""Of PI controllers: valve position for a unit of error, and minutes."""

MOVES = 1 - np.exp(-1 / np.array([1.0, 1, 1, 1, 1, 1.5, 1, 1, 1.5, 1.5, 1.5]))[:, None]
"""Share of the way to its set position that a valve moves in a minute."""

_KEEP_H = np.array([1.0, 1, 1, 1, 8, 6, 12, 3, 30, 10])
KEEP = np.exp(-1 / (60 * _KEEP_H))[:, None]
SWING = np.array([0.01, 0.01, 0.01, 0.01, 0.006, 0.8, 0.8, 0.015, 0.015, 1.5])[:, None]
"""Correlation times and sizes of what wanders: four feeds' pressures, the inert share of the mix,
both cooling waters, steam, the catalyst, the air."""

_VOLATILE = np.array([0.5, 0.5, 0.35, 0.25, 0.05, 0.002, 0.001])[:, None]
_CONDENSES = np.array([0.0005, 0.0002, 0.010, 0.012, 0.10, 0.28, 0.33])[:, None]
_EVAPORATES = np.array([0.0, 0, 0, 0, 0.035, 0.0272, 0.024])[:, None]

CONTINUOUS, ANALYZED = 22, 19


@dataclass(frozen=True, slots=True)
class Build:
    """Differences between plants: (n,) each, 1 for the nominal plant.

    rates : (3, n), of the reactions
    reactor_cooling, condenser_cooling, feeds, compressor : efficiency of each
    """

    rates: Array
    reactor_cooling: Array
    condenser_cooling: Array
    feeds: Array
    compressor: Array

    @classmethod
    def draw(cls, rng: np.random.Generator, nodes: int) -> Build:
        """Draw plants that are a few percent apart."""
        rates = 1 + 0.05 * rng.uniform(-1, 1, (3, nodes))
        others = 1 + 0.06 * rng.uniform(-1, 1, (3, nodes))
        feeds = 1 + 0.05 * rng.uniform(-1, 1, (4, nodes))
        return cls(rates, others[0], others[1], feeds, others[2])


def at_rest(nodes: int) -> Array:
    """Return a state (STATES, nodes) that is near the operating point."""
    x = np.zeros((STATES, nodes))
    x[GAS] = np.array([48.0, 29, 19, 17, 0.5, 3.6, 1.9])[:, None]
    x[REACTOR] = np.array([0.0, 0, 0, 0, 1.0, 37, 25])[:, None]
    x[SEPARATOR] = np.array([0.6, 0.2, 4.5, 5, 0.8, 25, 15])[:, None]
    x[STRIPPER] = np.array([0.05, 0, 0.5, 0.8, 0.6, 24, 14])[:, None]
    x[HEAT] = np.array([120.0, 70, 60, 38, 80])[:, None]
    x[VALVES] = OPEN
    return x


def advance(x: Array, build: Build, fouling: Array, inert: Array, clock: float) -> Array:
    """Advance states x (STATES, n) by a minute, in place; return the true measurements.

    fouling : (n,), share of the reactor's cooling that is lost
    inert : (n,), added to the share of B in the mixed feed
    clock : hours, for the air and the water that it warms

    Returns
    -------
    (CONTINUOUS + ANALYZED, n), without noise, in the order of `loop_sensors.MEASURED`.
    """
    gas, liquid, condensed, stripped = x[GAS], x[REACTOR], x[SEPARATOR], x[STRIPPER]
    reactor, water, separator, cold, stripper = x[HEAT]
    valves, wander = x[VALVES], x[WANDER]
    day = np.cos(2 * np.pi * (clock - 15) / 24)
    hot_in = 20 + wander[5] + day
    cold_in = 20 + wander[6] + day

    moles, filled = gas.sum(axis=0), liquid.sum(axis=0)
    y = gas / moles
    pressure = moles / 120 * (reactor + 273) / 393 / (1.1 - 0.1 * filled / 63)
    part = y * pressure
    warm = np.exp(0.015 * (reactor - 120)) * (1 + wander[8])
    r1 = 15.6 * build.rates[0] * warm * part[A] * part[D]
    r2 = 10.7 * build.rates[1] * warm * part[A] * part[E]
    r3 = 0.19 * build.rates[2] * warm * part[D]

    feed = np.array([[1.0], [2.2], [1.36], [3.0]]) * valves[:4] * build.feeds
    feed *= (1 + wander[:4]) * (1.1 - 0.1 * pressure)
    share_b = 0.08 + wander[4] + inert
    recycle = 8 * build.compressor * pressure * (1.3 - 0.6 * valves[4])
    speed = recycle / 8
    evaporating = _EVAPORATES * liquid * (np.exp(0.03 * (reactor - 120)) * speed)
    condensing = _CONDENSES * gas * (np.exp(-0.03 * (separator - 60)) * speed)
    purge = 1.25 * valves[5] * pressure
    held = condensed.sum(axis=0), stripped.sum(axis=0)
    under = 4.4 * valves[6] * (0.5 + held[0] / 100)
    product = 3.6 * valves[7] * (0.5 + held[1] / 80)
    over = under * condensed / held[0]
    steam = valves[8] * (1 + wander[7])
    rising = _VOLATILE * stripped * (steam / 0.47 * np.exp(0.02 * (stripper - 80)))
    out = stripped / held[1]

    entering = np.zeros_like(gas)
    entering[A] = feed[0] + feed[3] * (0.98 - share_b)
    entering[B] = feed[3] * share_b
    entering[D] = feed[1] + 0.02 * feed[3]
    entering[E] = feed[2]
    fed = feed.sum(axis=0)
    mixed = (entering + recycle * y) / (fed + recycle)

    change = entering + evaporating + rising - condensing - purge * y
    change[A] -= r1 + r2
    change[D] -= r1 + r3
    change[E] -= r2
    gas += change
    liquid -= evaporating
    liquid[P] += r1
    liquid[Q] += r2
    liquid[F] += r3
    condensed += condensing - over
    stripped += over - rising - product * out

    drawn = 0.6 * build.reactor_cooling * (1 - fouling) * (reactor - water)
    shed = 3.27 * build.condenser_cooling * (separator - cold)
    flowing = 1.33 * valves[9], 10 * valves[10]
    heat = 20.3 * (r1 + 1.1 * r2 + 0.5 * r3)
    x[HEAT] += np.stack(
        [
            (heat - drawn - 0.02 * recycle * (reactor - 110) - 0.02 * (reactor - 120)) / 60,
            (drawn - flowing[0] * (water - hot_in)) / 8,
            (0.15 * recycle * (reactor - separator) - shed) / 25,
            (shed - flowing[1] * (cold - cold_in)) / 20,
            (
                62.7 * steam
                - 0.6 * under * (stripper - separator)
                - 0.1 * (stripper - 25 - wander[9])
            )
            / 30,
        ]
    )
    np.maximum(x[:28], 1e-6, out=x[:28])
    return np.concatenate(
        [
            np.stack(
                [
                    *(60 * feed),
                    60 * recycle,
                    60 * (fed + recycle),
                    2700 * pressure,
                    75 * filled / 63,
                    reactor,
                    60 * purge,
                    separator,
                    held[0],
                    2650 * pressure - 60 * speed,
                    60 * under,
                    1.25 * held[1],
                    2900 + 300 * (pressure - 1) + 60 * (steam - 0.47) + 2 * rising.sum(axis=0),
                    60 * product,
                    stripper,
                    230 * steam,
                    340 * speed * (1 + 0.3 * (1.1 - pressure)),
                    water,
                    cold,
                ]
            ),
            100 * mixed,
            100 * y,
            100 * out[[D, E, F, P, Q]],
        ]
    )
