"""A closed-loop process, generated: 52 channels, 40 plants of one kind, a row every 3 minutes.

In the spirit of the Tennessee Eastman problem, and none of its equations: 41 measurements, 19 of
them by analyzers that are slow, 11 valves, 11 loops that hold what they can; operators who change
the rate, the mix and the temperature; feeds, waters, steam and catalyst that wander. All plants
of a fleet are built alike and no two are alike. docs/plants.md says what and how much.

1. The same arguments give the same rows, bit for bit, whatever rows are read, and when. It reads
   no clock, no file, no global randomness.
2. A fault changes its own node and nothing before it starts. What a controller reads or moves
   goes on into the process: after its end a fault dies away as the process does.
3. Memory does not grow with what was read, but by a state (50 kB) for every day of the run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plants import loop_process as process
from plants.faults import SENSOR_KINDS, Injected, checked, placed, within
from plants.loop_day import EACH, MINUTES, PERIOD_S, Fleet, Moment, Wrong, live
from plants.loop_sensors import CHANNELS, COUNT, NAMES, SCALING
from submerge import Array, Schema

__all__ = ["KINDS", "Loop"]

KINDS = (*SENSOR_KINDS, "sticking", "feed", "cooling")
"""A valve that sticks; more inert in the mixed feed; a reactor cooler that fouls at once."""

PAGE = MINUTES // EACH
"""Rows a day; a page is one."""

WARM_DAYS = 1
LOST = 0.0002
"""Share of readings that get lost on their way, one by one."""

_FLEET, _FAULTS, _NOISE, _WANDER, _LOST, _SPOILT = range(6)


class Loop:
    """A fleet of closed-loop plants.

    Parameters
    ----------
    seed : int
        Draws everything.
    nodes, days : int
        How many plants, for how long.
    quiet_days : float
        No drawn fault begins before.
    faults : sequence of Injected, optional
        What goes wrong; left out, `n_faults` are drawn, by default one at seven of ten plants.

    Attributes
    ----------
    channels, schema, period_s, rank, n_rows, faults, lingers
        As of every `Plant`.

    Examples
    --------
    >>> plant = Loop(seed=1, nodes=2, days=1)
    >>> plant.rows(0, 0, 20).shape
    (20, 52)
    """

    name, kinds, channels = "loop", KINDS, CHANNELS
    period_s, rank = PERIOD_S, 10
    lingers = 240

    def __init__(
        self,
        *,
        seed: int = 0,
        nodes: int = 40,
        days: int = 30,
        quiet_days: float = 10.0,
        faults: Sequence[Injected] | None = None,
        n_faults: int | None = None,
    ) -> None:
        self.seed, self.nodes, self.n_rows = seed, nodes, days * PAGE
        self.schema = Schema(CHANNELS, SCALING, center="own")
        self._fleet = Fleet.drawn(self._rng(_FLEET), nodes, days + WARM_DAYS)
        if faults is None:
            faults = placed(
                self._rng(_FAULTS),
                KINDS,
                _drawn,
                nodes=nodes,
                count=nodes * 7 // 10 if n_faults is None else n_faults,
                first=int(quiet_days * PAGE),
                last=self.n_rows,
                period_s=PERIOD_S,
            )
        self.faults = checked(faults, kinds=KINDS, nodes=nodes, names=NAMES)
        self._begins = [Moment.first(nodes)]
        self._pages: dict[int, Array] = {}

    def rows(self, node: int, start: int, stop: int) -> Array:
        """Return rows `start` to `stop` of one node, (stop - start, 52), NaN where lost."""
        within(self, node, start, stop)
        pages = range(start // PAGE, -(-stop // PAGE))
        parts = [
            self._page(page)[max(0, start - page * PAGE) : stop - page * PAGE, :, node]
            for page in pages
        ]
        return np.concatenate(parts) if parts else np.empty((0, len(CHANNELS)))

    # -- inside ----------------------------------------------------------------

    def _rng(self, *place: int) -> np.random.Generator:
        """A generator of its own for every purpose and day: none shifts another."""
        return np.random.default_rng([self.seed, *place])

    def _page(self, page: int) -> Array:
        """(PAGE, channels, nodes): a day of all plants; the newest two are kept."""
        if page not in self._pages:
            day = page + WARM_DAYS
            while len(self._begins) <= day:
                self._live(len(self._begins) - 1)
            rows = self._live(day)
            self._pages = {**dict(list(self._pages.items())[-1:]), page: rows}
        return self._pages[page]

    def _live(self, day: int) -> Array:
        """Live through a day, those to warm up included, and keep how the next one begins."""
        now, nodes = self._begins[day].copy(), self.nodes
        noise = self._rng(_NOISE, day).standard_normal((MINUTES, COUNT, nodes))
        steps = self._rng(_WANDER, day).standard_normal((MINUTES, len(process.KEEP), nodes))
        at = (day - WARM_DAYS) * PAGE + np.arange(MINUTES) / EACH
        faults = [each for each in self.faults if each.start <= at[-1] and each.end > at[0]]
        draws = [
            self._rng(_SPOILT, each.node, each.start, day).standard_normal(MINUTES)
            for each in faults
        ]
        rows = live(now, self._fleet, day, Wrong(faults, at, draws, nodes), noise, steps)
        if len(self._begins) == day + 1:
            self._begins.append(now)
        rows[self._rng(_LOST, day).random(rows.shape) < LOST] = np.nan
        return rows


def _drawn(rng: np.random.Generator, kind: str) -> tuple[tuple[str, ...], float, float]:
    """Draw which channels, how large and for how many days: see docs/plants.md."""
    right: tuple[str, ...]
    sign, size, days = float(rng.choice([-1, 1])), rng.uniform(), rng.uniform(1.0, 2.0)
    if kind == "feed":
        right = ("reactor feed B", "purge B", "purge", "purge valve")
        return right, 0.04 + 0.02 * size, days
    if kind == "cooling":
        right = ("reactor cooling valve", "reactor cooling outlet", "reactor temperature")
        return right, 0.15 + 0.10 * size, days
    if kind == "sticking":
        valve = int(rng.choice([0, 1, 2, 3, 4, 5, 8, 9, 10]))
        right = process.VALVE_NAMES[valve], NAMES[process.HELD[valve]]
        return right, 0.18 + 0.10 * size, days
    sensor = int(rng.choice(_MOVING if kind == "stuck" else _TOLD))
    right = (NAMES[sensor],)
    if sensor in process.HELD:
        # Held where it reads right, it is its valve that shows where it is.
        right += (process.VALVE_NAMES[process.HELD.index(sensor)],)
    if kind == "stuck":
        return right, 0.0, days
    size = {"bias": 4 + 4 * size, "drift": 3 + 3 * size, "noise": 4 + 2 * size}[kind]
    return right, size if kind == "noise" else sign * size, days


_TOLD = [i for i in range(COUNT) if i not in (11, 14)]
"""A level that reads wrong is held where it reads right, and nothing else shows it for long."""

_MOVING = [i for i in _TOLD if i not in process.HELD and i not in (15, 19, 21)]
"""What is held at one value, or is mostly noise, may well repeat itself."""
