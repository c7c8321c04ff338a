"""Generated engines that wear: 21 sensors, 3 settings, 40 engines, a row every 10 minutes.

The idea is that of NASA's C-MAPSS runs, without their numbers. An engine is flown in one of six
regimes at a time, which move every sensor far more than anything else. Within a regime power, air
and bleed move the sensors together. No two engines are alike. Wear hardly shows at first, and
accelerates until the engine is overhauled. docs/plants.md has the details.

1. The same arguments give the same rows, bit for bit, in whatever order they are read. It reads
   no clock, no file, no global randomness.
2. A fault changes only its own channels at its own engine within its own span.
3. Memory does not grow with what was read; 40 bytes for each row of the run are kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plants.engine_kind import CHANNELS, NAMES, SCALING, SETTINGS, WEAR
from plants.faults import (
    SENSOR_KINDS,
    Injected,
    Where,
    check_faults,
    check_range,
    offsets_of,
    place_faults,
)
from plants.reversed import KIND as REVERSED
from plants.reversed import ReversedSensors, with_reversed
from submerge import Array, Schema
from submerge_lab.plants.ordered import product

__all__ = ["KINDS", "Engines"]

PERIOD_S = 600.0
PAGE = 1024
STEEPNESS = 4.0
"""Of wear: (e^(4 t) - 1) / (e^4 - 1), t from 0 to 1 between its start and the overhaul."""

REGIMES = np.array(
    [
        [-1.0, -1.0, 1.0],
        [-0.5, -0.6, 1.0],
        [0.0, 0.05, -1.0],
        [0.25, 0.1, 1.0],
        [0.75, 1.2, 1.0],
        [1.1, 1.2, 0.4],
    ]
)
"""Settings of the regimes: the engine on the ground, climbing, cruising."""

STAYS = 2 / 3
"""Probability that the next row is of the same regime."""

CAUSES_H = np.array([0.5, 12.0, 24.0, 2.0])
"""Correlation times of power, the air's temperature and pressure, and bleed."""

NOISE = 0.3
LOST = 0.0002

ACTING = (*SENSOR_KINDS, *WEAR)
KINDS = (*ACTING, REVERSED)

_KIND, _MADE, _FLOWN, _FAULTS, _NOISE, _LOST, _SPOILT, _REVERSED = range(8)


class Engines:
    """A fleet of engines of one kind.

    seed : Seed of all that is drawn.
    nodes, days : How many engines, for how long.
    quiet_days : Drawn faults begin later.
    faults : By default `n_faults` are drawn, by default one at six of ten engines, and one that
        only correlations show at another.

    channels, schema, period_s, rank, n_rows, faults, lingers
        As of every `Plant`.

    Examples
    --------
    >>> plant = Engines(seed=1, nodes=2, days=1)
    >>> plant.rows(0, 0, 20).shape
    (20, 24)
    """

    name, kinds, channels = "engines", KINDS, CHANNELS
    period_s, rank = PERIOD_S, 9
    lingers = 0

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
        self.seed, self.nodes = seed, nodes
        self.n_rows = round(days * 86400 / PERIOD_S)
        self.schema = Schema(CHANNELS, SCALING, center="own")
        rng, dim, causes = self._rng(_KIND), len(CHANNELS), len(CAUSES_H)
        # Effects of regimes and causes on sensors of this kind of engine, in scales.
        self._slope = rng.normal(0, 12, (SETTINGS, dim))
        self._bend = rng.normal(0, 4, (SETTINGS, dim))
        self._answer = rng.normal(0, 0.6, (causes, dim))
        self._answer_there = rng.normal(0, 0.06, (len(REGIMES), causes, dim))
        for effect in (self._slope, self._bend):
            effect[:, :SETTINGS] = 0
        self._slope[:, :SETTINGS] = np.diag([36.0, 15.0, 13.0])
        self._answer[:, :SETTINGS] = self._answer_there[:, :, :SETTINGS] = 0
        self._made = self._rng(_MADE).normal(0, 2, (nodes, dim))
        self._regime, self._causes = self._fly(self._rng(_FLOWN))
        if faults is None:
            where = Where(nodes, int(quiet_days * 86400 / PERIOD_S), self.n_rows, PERIOD_S)
            count = nodes * 6 // 10 if n_faults is None else n_faults
            faults = place_faults(self._rng(_FAULTS), ACTING, _draw, where, count=count)
            if n_faults is None:
                faults = with_reversed(self._rng(_REVERSED), faults, _draw, where)
        self.faults = check_faults(faults, kinds=KINDS, nodes=nodes, names=NAMES)
        self._reversed = ReversedSensors(self.faults, NAMES, PERIOD_S, self._read)
        self._pages: dict[int, tuple[int, Array]] = {}

    def rows(self, node: int, start: int, stop: int) -> Array:
        """Return rows `start` to `stop` of one engine, (stop - start, 24), NaN where lost."""
        check_range(self, node, start, stop)
        return self._reversed.rows(node, start, stop)

    # -- inside ----------------------------------------------------------------

    def _read(self, node: int, start: int, stop: int) -> Array:
        """Return rows `start` to `stop` of one engine with all its faults but reversed sensors."""
        pages = range(start // PAGE, -(-stop // PAGE))
        parts = [
            self._page(node, page)[max(0, start - page * PAGE) : stop - page * PAGE]
            for page in pages
        ]
        return np.concatenate(parts) if parts else np.empty((0, len(CHANNELS)))

    def _rng(self, *place: int) -> np.random.Generator:
        """Return a generator for one purpose, engine and page, independent of the others."""
        return np.random.default_rng([self.seed, *place])

    def _fly(self, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], Array]:
        """Draw each engine's regime (nodes, n) and causes (n, causes, nodes)."""
        n = -(-self.n_rows // PAGE) * PAGE
        latest = np.where(rng.random((self.nodes, n)) < STAYS, 0, np.arange(n))
        drawn = rng.integers(len(REGIMES), size=(self.nodes, n))
        regime = np.take_along_axis(drawn, np.maximum.accumulate(latest, axis=1), axis=1)
        keep = np.exp(-PERIOD_S / 3600 / CAUSES_H)[:, None]
        causes = rng.standard_normal((n, len(CAUSES_H), self.nodes))
        for before, now in itertools.pairwise(causes):
            now *= np.sqrt(1 - keep**2)
            now += keep * before
        return regime, causes

    def _page(self, node: int, page: int) -> Array:
        """Return (PAGE, channels): rows of an engine with faults; its newest page is kept."""
        if self._pages.get(node, (-1,))[0] == page:
            return self._pages[node][1]
        rows, first = self._sound(node, page), page * PAGE
        at = np.arange(first, first + PAGE, dtype=np.float64)
        for fault in self.faults:
            here = fault.node == node and fault.start < first + PAGE and fault.end > first
            if here and fault.kind != REVERSED:
                self._spoil(rows, fault, at, self._rng(_SPOILT, node, fault.start, page))
        rows = rows * SCALING.scale + SCALING.offset
        rows[self._rng(_LOST, node, page).random(rows.shape) < LOST] = np.nan
        self._pages[node] = page, rows
        return rows

    def _sound(self, node: int, page: int) -> Array:
        """Return (PAGE, channels): rows of the engine without faults, in scales."""
        here = slice(page * PAGE, page * PAGE + PAGE)
        regime, causes = self._regime[node, here], self._causes[here, :, node]
        settings = REGIMES[regime]
        rows = product(settings, self._slope) + product(settings**2, self._bend)
        rows += product(causes, self._answer)
        rows += np.einsum("nc,ncd->nd", causes, self._answer_there[regime])
        noise = self._rng(_NOISE, node, page).standard_normal(rows.shape)
        return np.asarray(rows + self._made[node] + NOISE * noise)

    def _spoil(self, rows: Array, fault: Injected, at: Array, rng: np.random.Generator) -> None:
        """Apply a fault to rows, in place."""
        inside = (at >= fault.start) & (at < fault.end)
        column = NAMES.index(fault.channels[0])
        if fault.kind in WEAR:
            share = np.expm1(STEEPNESS * (at - fault.start) / (fault.end - fault.start))
            share = np.where(inside, fault.size * share / np.expm1(STEEPNESS), 0.0)
            for name, part in WEAR[fault.kind].items():
                rows[:, NAMES.index(name)] += part * share
        elif fault.kind == "stuck":
            page, line = divmod(fault.start, PAGE)
            rows[inside, column] = self._sound(fault.node, page)[line, column]
        else:
            rows[:, column] += offsets_of(fault, at, PERIOD_S, rng.standard_normal(PAGE))


def _draw(rng: np.random.Generator, kind: str) -> tuple[tuple[str, ...], float, float]:
    """Draw channels, size and days of a fault (docs/plants.md)."""
    sign, size, days = float(rng.choice([-1, 1])), rng.uniform(), rng.uniform(1.5, 3.0)
    if kind in WEAR:
        most = sorted(WEAR[kind], key=lambda name: -abs(WEAR[kind][name]))
        right = tuple(name for name in most if abs(WEAR[kind][name]) >= 0.6)
        return right, 6 + 4 * size, 6.0 + 3.0 * rng.uniform()
    right = (str(rng.choice(NAMES[SETTINGS:])),)
    if kind in ("stuck", REVERSED):
        return right, 0.0, days
    size = {"bias": 4 + 4 * size, "drift": 3 + 3 * size, "noise": 3 + 2 * size}[kind]
    return right, size if kind == "noise" else sign * size, days
