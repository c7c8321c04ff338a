"""A generated closed-loop process: 52 channels, 40 plants of one kind, a row every 3 minutes.

The idea is that of the Tennessee Eastman problem, without its equations: 41 measurements, 19 of
them by slow analyzers, 11 valves, 11 control loops; operators who change the rate, the mix and the
temperature; feeds, waters, steam and catalyst that wander. All plants of a fleet are of one kind,
but no two are equal. docs/plants.md has the details.

1. The same arguments give the same rows, bit for bit, in whatever order they are read. It reads
   no clock, no file, no global randomness.
2. A fault changes only its own node, and nothing before it starts. What a controller reads or
   moves acts on the process, so after its end a fault fades as the process does.
3. Memory does not grow with what was read, except for a state (50 kB) for every day of the run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plants import loop_process as process
from plants.faults import SENSOR_KINDS, Injected, Where, check_faults, check_range, place_faults
from plants.loop_day import EACH, MINUTES, PERIOD_S, DayFaults, Fleet, Moment, run_day
from plants.loop_sensors import CHANNELS, COUNT, NAMES, SCALING
from plants.reversed import KIND as REVERSED
from plants.reversed import ReversedSensors, with_reversed
from submerge import Array, Schema

__all__ = ["KINDS", "Loop"]

ACTING = (*SENSOR_KINDS, "sticking", "feed", "cooling")
"""A valve that sticks; more inert in the mixed feed; a reactor cooler that fouls at once."""

KINDS = (*ACTING, REVERSED)

PAGE = MINUTES // EACH
"""Rows of a day, which is a page."""

WARM_DAYS = 1
LOST = 0.0002
"""Share of readings that are lost, one by one."""

_FLEET, _FAULTS, _NOISE, _WANDER, _LOST, _SPOILT, _REVERSED = range(7)


class Loop:
    """A fleet of closed-loop plants.

    seed : Seed of all that is drawn.
    nodes, days : How many plants, for how long.
    quiet_days : Drawn faults begin later.
    faults : By default `n_faults` are drawn, by default one at seven of ten plants, and one that
        only correlations show at another.

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
        self._fleet = Fleet.draw(self._rng(_FLEET), nodes, days + WARM_DAYS)
        if faults is None:
            where = Where(nodes, int(quiet_days * PAGE), self.n_rows, PERIOD_S)
            count = nodes * 7 // 10 if n_faults is None else n_faults
            faults = place_faults(self._rng(_FAULTS), ACTING, _draw, where, count=count)
            if n_faults is None:
                faults = with_reversed(self._rng(_REVERSED), faults, _draw, where)
        self.faults = check_faults(faults, kinds=KINDS, nodes=nodes, names=NAMES)
        self._reversed = ReversedSensors(self.faults, NAMES, PERIOD_S, self._read)
        self._begins = [Moment.first(nodes)]
        self._pages: dict[int, Array] = {}

    def rows(self, node: int, start: int, stop: int) -> Array:
        """Return rows `start` to `stop` of one node, (stop - start, 52), NaN where lost."""
        check_range(self, node, start, stop)
        return self._reversed.rows(node, start, stop)

    # -- inside ----------------------------------------------------------------

    def _read(self, node: int, start: int, stop: int) -> Array:
        """Return rows `start` to `stop` of one node with all faults that act on the process."""
        pages = range(start // PAGE, -(-stop // PAGE))
        parts = [
            self._page(page)[max(0, start - page * PAGE) : stop - page * PAGE, :, node]
            for page in pages
        ]
        return np.concatenate(parts) if parts else np.empty((0, len(CHANNELS)))

    def _rng(self, *place: int) -> np.random.Generator:
        """Return a generator for one purpose and day, independent of the others."""
        return np.random.default_rng([self.seed, *place])

    def _page(self, page: int) -> Array:
        """Return (PAGE, channels, nodes): a day of all plants; the newest two are kept."""
        if page not in self._pages:
            day = page + WARM_DAYS
            while len(self._begins) <= day:
                self._run_day(len(self._begins) - 1)
            rows = self._run_day(day)
            self._pages = {**dict(list(self._pages.items())[-1:]), page: rows}
        return self._pages[page]

    def _run_day(self, day: int) -> Array:
        """Run a day, warm-up days included, and keep the state at its end."""
        now, nodes = self._begins[day].copy(), self.nodes
        noise = self._rng(_NOISE, day).standard_normal((MINUTES, COUNT, nodes))
        steps = self._rng(_WANDER, day).standard_normal((MINUTES, len(process.KEEP), nodes))
        at = (day - WARM_DAYS) * PAGE + np.arange(MINUTES) / EACH
        faults = [
            each
            for each in self.faults
            if each.kind != REVERSED and each.start <= at[-1] and each.end > at[0]
        ]
        draws = [
            self._rng(_SPOILT, each.node, each.start, day).standard_normal(MINUTES)
            for each in faults
        ]
        rows = run_day(now, self._fleet, day, DayFaults(faults, at, draws, nodes), noise, steps)
        if len(self._begins) == day + 1:
            self._begins.append(now)
        rows[self._rng(_LOST, day).random(rows.shape) < LOST] = np.nan
        return rows


def _draw(rng: np.random.Generator, kind: str) -> tuple[tuple[str, ...], float, float]:
    """Draw channels, size and days of a fault (docs/plants.md)."""
    right: tuple[str, ...]
    sign, size, days = float(rng.choice([-1, 1])), rng.uniform(), rng.uniform(1.0, 2.0)
    if kind == "feed":
        right = ("reactor feed/B", "purge/B", "purge", "purge valve")
        return right, 0.04 + 0.02 * size, days
    if kind == REVERSED:
        return NAMES[_GAS[int(rng.integers(len(_GAS)))]], 0.0, days
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
        # The controller holds the reading, so the valve shows the fault.
        right += (process.VALVE_NAMES[process.HELD.index(sensor)],)
    if kind == "stuck":
        return right, 0.0, days
    size = {"bias": 4 + 4 * size, "drift": 3 + 3 * size, "noise": 4 + 2 * size}[kind]
    return right, size if kind == "noise" else sign * size, days


_GAS = (slice(22, 29), slice(29, 36))
"""The channels of the two gas analyzers, of the reactor's feed and of the purge."""

_TOLD = [i for i in range(COUNT) if i not in (11, 14)]
"""Without levels: a controller holds a wrong reading, and nothing else shows it for long."""

_MOVING = [i for i in _TOLD if i not in process.HELD and i not in (15, 19, 21)]
"""Without what is held at one value or is mostly noise, and may repeat by itself."""
