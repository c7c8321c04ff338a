"""One protocol for generated fleets with known faults (docs/plants.md).

There are a closed-loop process (`loop`), engines that wear (`engine`), and rooms of motes
(`room`).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Protocol

from plants.faults import Injected
from submerge import Array, Channel, Schema, UsageError

__all__ = ["PLANTS", "Injected", "Plant", "plant"]

PLANTS = {
    "loop": ("loop", "Loop"),
    "engines": ("engine", "Engines"),
    "room": ("room", "RoomNodes"),
}


class Plant(Protocol):
    """A fleet of nodes with the same channels.

    kinds : Of faults.
    period_s : From row to row.
    schema : Each node has its own mean, and scales are given: with `replace(schema, scaling=None)`
        the fleet learns them.
    rank : Directions that are worth keeping.
    nodes, n_rows : Each node has as many rows.
    faults : The true faults, by start.
    lingers : Rows after a fault's end in which it may still show.
    """

    name: str
    kinds: tuple[str, ...]
    channels: tuple[Channel, ...]
    period_s: float
    schema: Schema
    rank: int
    nodes: int
    n_rows: int
    faults: tuple[Injected, ...]
    lingers: int

    def rows(self, node: int, start: int, stop: int) -> Array:
        """Return rows `start` to `stop` of a node, (stop - start, channels), NaN where missing."""


def plant(
    name: str,
    *,
    seed: int = 0,
    nodes: int = 40,
    days: int = 30,
    quiet_days: float = 10.0,
    faults: Sequence[Injected] | None = None,
) -> Plant:
    """Return a plant by its name; by default `faults` are drawn."""
    if name not in PLANTS:
        raise UsageError(f"a plant is one of {', '.join(PLANTS)}, got {name!r}")
    module, cls = PLANTS[name]
    made: Any = getattr(importlib.import_module(f"plants.{module}"), cls)
    fleet: Plant = made(seed=seed, nodes=nodes, days=days, quiet_days=quiet_days, faults=faults)
    return fleet
