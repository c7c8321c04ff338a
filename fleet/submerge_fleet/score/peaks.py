"""Peaks: a series of any length as few points, each the highest of as many scores as it takes.

What a mean would smooth away is what a picture of scores is looked at for.
"""

from __future__ import annotations

import numpy as np

from submerge import Array

MOST_POINTS = 2048
"""About as many as a picture has columns."""


class HighestPoints:
    """The highest of every so many scores; the fewer, the longer the series.

    Attributes
    ----------
    every : int
        Rows that a point stands for: a power of two.
    """

    def __init__(self) -> None:
        self.every, self._n = 1, 0
        self._highest = np.full(MOST_POINTS, np.nan)

    def add(self, scores: Array) -> None:
        """Take in scores (n,), NaN for rows that have none."""
        while self._n + len(scores) > self.every * MOST_POINTS:
            halved = np.fmax(self._highest[::2], self._highest[1::2])
            self._highest = np.concatenate([halved, np.full(MOST_POINTS // 2, np.nan)])
            self.every *= 2
        places = (self._n + np.arange(len(scores))) // self.every
        np.fmax.at(self._highest, places, scores)
        self._n += len(scores)

    @property
    def points(self) -> tuple[Array, Array]:
        """Rows (from 1), and the highest score from each on; where there is any."""
        present = np.flatnonzero(~np.isnan(self._highest))
        return np.asarray(present * self.every + 1, dtype=np.float64), self._highest[present]
