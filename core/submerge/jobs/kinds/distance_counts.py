"""Counts of squared distances on a grid, and limits that shares of rows do not exceed.

The grid is the same everywhere, an eighth of an octave a step, so counts of several participants
add up exactly, and no distance of a single row travels with more than its step. A limit is the
upper end of a step: at most 4.5 % above the distance that a sort of all rows would give.
"""

from __future__ import annotations

import numpy as np

from submerge._linalg import Array
from submerge.errors import PeerError
from submerge.jobs.arrays import Arrays

STEPS_PER_OCTAVE, OCTAVES = 8, 40
EDGES = 2.0 ** (np.arange(-OCTAVES * STEPS_PER_OCTAVE, OCTAVES * STEPS_PER_OCTAVE) / 8.0)
"""Upper ends of the steps, of squared distances; what is larger is in one step more."""

LEVELS = (0.95, 0.99, 0.999)
"""Shares of rows that limits are of."""


def distance_counts(squares: Array) -> Array:
    """Return how many squared distances (n,) each step holds, (len(EDGES) + 1,)."""
    steps = np.searchsorted(EDGES, squares, side="left")
    return np.bincount(steps, minlength=len(EDGES) + 1).astype(np.float64)


def distance_limits(counts: Array) -> Arrays:
    """Return levels and, for each, the distance that this share of rows does not exceed.

    A level is there if its limit leaves a row or more beyond: 0.99 needs 100 rows.
    """
    below, rows = np.cumsum(counts), float(counts.sum())
    levels = [level for level in LEVELS if rows * (1.0 - level) >= 1.0 - 1e-9]
    steps = [int(np.searchsorted(below, level * rows - 1e-9 * rows)) for level in levels]
    edges = np.sqrt(EDGES[np.minimum(np.array(steps, dtype=int), len(EDGES) - 1)])
    return {"distance_levels": np.array(levels), "distance_limits": edges}


def check_distance_counts(counts: Array, rows: float) -> None:
    """Refuse counts that are not of so many rows.

    Raises
    ------
    PeerError
    """
    if (counts < 0).any() or (counts != np.rint(counts)).any() or counts.sum() != rows:
        raise PeerError("distances are counted in whole numbers, each row once", kind="range")
