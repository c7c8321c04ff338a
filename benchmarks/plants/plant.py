"""Plants: generated fleets whose faults are known, one protocol for all of them.

Three are shipped: a closed-loop process (`plant_loop`), engines that wear (`plant_engine`), and
rooms full of motes (`plant_room`). docs/plants.md describes them.
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
    """A fleet of nodes that read alike, for a time.

    Attributes
    ----------
    name : str
    kinds : tuple of str
        Of faults.
    channels : tuple of Channel
    period_s : float
        From row to row.
    schema : Schema
        Each node has its own mean, and sizes are given: `replace(schema, scaling=None)` leaves
        them to the fleet.
    rank : int
        Directions that are worth keeping.
    nodes, n_rows : int
        Rows are as many at each node.
    faults : tuple of Injected
        The truth, by start.
    lingers : int
        Rows after a fault's end in which it may still show.
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
    """Return a plant by its name; `faults` left out, they are drawn."""
    if name not in PLANTS:
        raise UsageError(f"a plant is one of {', '.join(PLANTS)}, got {name!r}")
    module, cls = PLANTS[name]
    made: Any = getattr(importlib.import_module(f"plants.{module}"), cls)
    fleet: Plant = made(seed=seed, nodes=nodes, days=days, quiet_days=quiet_days, faults=faults)
    return fleet
