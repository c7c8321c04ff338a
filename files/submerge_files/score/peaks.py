"""A series of any length as few points, each the highest of a run of scores.

The highest, not the mean: a picture of scores is to show what a mean would smooth away.
"""

from __future__ import annotations

import numpy as np

from submerge import Array

MOST_POINTS = 2048
"""About as many as a picture has columns."""


class HighestPoints:
    """The highest of each run of `every` scores, a power of two that grows with the series."""

    def __init__(self) -> None:
        self.every, self._n = 1, 0
        self._highest = np.full(MOST_POINTS, np.nan)

    def add(self, scores: Array) -> None:
        """Add scores (n,), NaN for rows without one."""
        while self._n + len(scores) > self.every * MOST_POINTS:
            halved = np.fmax(self._highest[::2], self._highest[1::2])
            self._highest = np.concatenate([halved, np.full(MOST_POINTS // 2, np.nan)])
            self.every *= 2
        places = (self._n + np.arange(len(scores))) // self.every
        np.fmax.at(self._highest, places, scores)
        self._n += len(scores)

    @property
    def points(self) -> tuple[Array, Array]:
        """Rows (from 1) at which runs begin, and the highest score of each run that has any."""
        present = np.flatnonzero(~np.isnan(self._highest))
        return np.asarray(present * self.every + 1, dtype=np.float64), self._highest[present]
