"""The generated room as a plant: nine nodes in a building, six motes each, faults of every kind.

A node reads what a node of `submerge lab crowd` reads (`crowd/motes.py`): a line of motes from the
windows to the back wall. The readings are those of `Room`, every other snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from plants.faults import Injected, Where, check_faults, check_range, place_faults
from plants.reversed import KIND as REVERSED
from plants.reversed import ReversedSensors, with_reversed
from submerge import Array, Schema
from submerge_lab.crowd import motes
from submerge_lab.crowd.motes import NODES, RANK, SCALING
from submerge_lab.plants.room import DAY, PAGE, Room
from submerge_lab.plants.room_faults import KINDS as ACTING
from submerge_lab.plants.room_faults import QUANTITIES, SIZES, SNAPSHOT_S, Fault
from submerge_lab.plants.room_plan import ROWS

__all__ = ["KINDS", "RoomNodes"]

KINDS = (*ACTING, REVERSED)

EVERY = 2
"""A node reads one of so many snapshots."""

CHANNELS = tuple(replace(each, name=each.name.replace(".", "/")) for each in motes.CHANNELS)
"""A mote is a device."""

NAMES = tuple(channel.name for channel in CHANNELS)
SCALES = dict(zip(QUANTITIES, SCALING.scale, strict=False))

_FAULTS, _REVERSED = 100, 101
"""Streams that `Room` does not use with the same seed."""


class RoomNodes:
    """Nodes in generated buildings.

    seed : Seed of all that is drawn.
    nodes, days : How many nodes, nine to a building; for how long.
    quiet_days : Drawn faults begin later.
    faults : By default `n_faults` are drawn, by default one at half of the nodes, and one that
        only correlations show at some others.
    half_life_days : float, optional
        Time after which a reading counts half: batteries run down, and there are no seasons.

    channels, schema, period_s, rank, n_rows, faults, lingers
        As of every `Plant`.

    Examples
    --------
    >>> plant = RoomNodes(seed=1, nodes=2, days=1)
    >>> plant.rows(0, 0, 20).shape
    (20, 24)
    """

    name, kinds, channels = "room", KINDS, CHANNELS
    period_s, rank = EVERY * SNAPSHOT_S, RANK
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
        half_life_days: float | None = 4.0,
    ) -> None:
        self.seed, self.nodes, self.n_rows = seed, nodes, int(days * DAY) // EVERY
        half_life = None if half_life_days is None else 86400 * half_life_days
        self.schema = Schema(CHANNELS, SCALING, center="own", half_life=half_life)
        if faults is None:
            where = Where(nodes, int(quiet_days * DAY / EVERY), self.n_rows, self.period_s)
            count = nodes // 2 if n_faults is None else n_faults
            rng, other = (np.random.default_rng([seed, part]) for part in (_FAULTS, _REVERSED))
            faults = place_faults(rng, ACTING, _draw, where, count=count)
            if n_faults is None:
                faults = with_reversed(other, faults, _draw, where)
        self.faults = check_faults(faults, kinds=KINDS, nodes=nodes, names=NAMES)
        self._reversed = ReversedSensors(self.faults, NAMES, self.period_s, self._read)
        self._buildings = [
            Room(
                # Seeds of buildings, which differ for all fleets of up to 1000 buildings.
                seed=1000 * seed + number,
                days=days,
                faults=[
                    _mote(each)
                    for each in self.faults
                    if each.kind != REVERSED and each.node // NODES == number
                ],
            )
            for number in range(-(-nodes // NODES))
        ]
        self._pages: dict[int, dict[int, Array]] = {}

    def rows(self, node: int, start: int, stop: int) -> Array:
        """Return rows `start` to `stop` of one node, (stop - start, 24), NaN where silent."""
        check_range(self, node, start, stop)
        return self._reversed.rows(node, start, stop)

    def _read(self, node: int, start: int, stop: int) -> Array:
        """Return rows `start` to `stop` of one node with all its faults but reversed sensors."""
        building, place = divmod(node, NODES)
        motes = place + NODES * np.arange(ROWS)
        columns = (4 * motes[:, None] + np.arange(4)).ravel()
        lines = PAGE // EVERY
        parts = [
            self._page(building, page)[max(0, start - page * lines) : stop - page * lines, columns]
            for page in range(start // lines, -(-stop // lines))
        ]
        return np.concatenate(parts) if parts else np.empty((0, len(CHANNELS)))

    def _page(self, building: int, page: int) -> Array:
        """Return (lines, 216): every other snapshot of a page; a building's newest two are kept."""
        pages = self._pages.setdefault(building, {})
        if page not in pages:
            room = self._buildings[building]
            end = min((page + 1) * PAGE, room.n_snapshots)
            newest = dict(list(pages.items())[-1:])
            pages = self._pages[building] = {
                **newest,
                page: room.readings(page * PAGE, end)[::EVERY].copy(),
            }
        return pages[page]


def _mote(fault: Injected) -> Fault:
    """Return a node's fault as a fault of a mote in its building."""
    row, quantity = fault.channels[0].split("/")
    mote = NODES * (int(row[1:]) - 1) + fault.node % NODES + 1
    kind: Any = fault.kind
    size = fault.size * SCALES[quantity]
    return Fault(mote, quantity, kind, EVERY * fault.start, EVERY * fault.end, size)


def _draw(rng: np.random.Generator, kind: str) -> tuple[tuple[str, ...], float, float]:
    """Draw channels, size and days of a fault, as `Room` does."""
    if kind == REVERSED:
        mote = int(rng.integers(ROWS)) + 1
        return (f"m{mote}/temperature", f"m{mote}/humidity"), 0.0, rng.uniform(1.0, 2.0)
    mote_kind: Any = kind  # a plant's kinds are plain strings
    sizes = SIZES[mote_kind]
    row, quantity = int(rng.integers(ROWS)) + 1, str(rng.choice(list(sizes)))
    size = rng.uniform(*sizes[quantity]) / SCALES[quantity]
    sign = -1.0 if quantity == "voltage" else float(rng.choice([-1, 1]))
    signed = kind in ("drift", "offset")
    names = (quantity, "humidity", "voltage") if kind == "dying" else (quantity,)
    channels = tuple(f"m{row}/{name}" for name in names)
    return channels, sign * size if signed else size, rng.uniform(1.0, 2.0)
