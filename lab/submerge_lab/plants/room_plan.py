"""The plan of the room: positions of its motes, and the influences on each of them. A hall of 40 x
31 m in six zones, windows along its south side (y = 0). 54 motes are on a jittered grid, nine by
six. It is drawn once, from a given generator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from submerge import Array

WIDTH, DEPTH = 40.0, 31.0
MOTES = 54
COLUMNS, ROWS = 9, 6
ZONES = 6
_ZONE_COLUMNS, _ZONE_ROWS = 3, 2


@dataclass(frozen=True, slots=True)
class RoomPlan:
    """Influences on each mote.

    positions : (motes, 2) m from the southwest corner
    zone : (motes,) the zone that it is in
    near : (motes, zones) 1 in a zone, falling with the distance from it
    window : (motes,) daylight from the open sky, 1 at the glass
    beam : (motes, 3) sun from the east, the south and the west, likewise
    """

    positions: Array
    zone: npt.NDArray[np.int64]
    near: Array
    window: Array
    beam: Array

    @classmethod
    def draw(cls, rng: np.random.Generator) -> RoomPlan:
        """Draw positions, and compute the influences."""
        column, row = np.meshgrid(np.arange(COLUMNS), np.arange(ROWS))
        grid = np.stack([column.ravel() + 0.5, row.ravel() + 0.5], axis=1)
        grid += rng.uniform(-0.32, 0.32, grid.shape)
        positions = grid * [WIDTH / COLUMNS, DEPTH / ROWS]
        x, y = positions.T
        wide, deep = WIDTH / _ZONE_COLUMNS, DEPTH / _ZONE_ROWS
        zone = (x // wide + _ZONE_COLUMNS * (y // deep)).astype(np.int64)
        left = wide * (np.arange(ZONES) % _ZONE_COLUMNS)
        front = deep * (np.arange(ZONES) // _ZONE_COLUMNS)
        # Distance of a mote from each zone's rectangle; 0 inside.
        off_x = np.maximum(0, np.maximum(left - x[:, None], x[:, None] - left - wide))
        off_y = np.maximum(0, np.maximum(front - y[:, None], y[:, None] - front - deep))
        near = np.exp(-np.hypot(off_x, off_y) / 3.0)
        window = np.exp(-y / 6.0)
        # The morning sun comes from the east and falls on the west of the hall.
        spots = np.array([10.0, 20.0, 30.0])
        beam = np.exp(-y / 4.0)[:, None] * np.exp(-0.5 * ((x[:, None] - spots) / 8.0) ** 2)
        return cls(positions, zone, near, window, beam)
