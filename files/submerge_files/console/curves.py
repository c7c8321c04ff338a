"""Curves: what a picture shows of any number of rows: each point is the highest of a run."""

from __future__ import annotations

import numpy as np

from submerge import Array
from submerge.history.detection import JudgedRows

MOST_POINTS = 2048  # about as many as a picture has columns


class Highest:
    """The highest of each run of `every` rows, a power of two that grows with the series."""

    def __init__(self, width: int) -> None:
        self.every, self.rows = 1, 0
        self._highest = np.full((MOST_POINTS, width), np.nan)

    def add(self, values: Array) -> None:
        """Add values (n, width), NaN for what is not known."""
        while self.rows + len(values) > self.every * MOST_POINTS:
            halved = np.fmax(self._highest[::2], self._highest[1::2])
            self._highest = np.concatenate([halved, np.full_like(halved, np.nan)])
            self.every *= 2
        places = (self.rows + np.arange(len(values))) // self.every
        np.fmax.at(self._highest, places, values)
        self.rows += len(values)

    @property
    def runs(self) -> Array:
        """(m, width), of all runs so far."""
        return self._highest[: -(-self.rows // self.every)]

    def points(self, column: int) -> tuple[Array, Array]:
        """Rows (from 1) at which runs begin, and the highest of each run that has any value."""
        values = self.runs[:, column]
        present = np.flatnonzero(~np.isnan(values))
        return np.asarray(present * self.every + 1, dtype=np.float64), values[present]


class Curves:
    """How close rows came to an alarm, and the errors of channels.

    times : (m,), when points begin: seconds since 1970, or row numbers.
    """

    def __init__(self) -> None:
        self._highest = Highest(0)
        self.times: Array = np.empty(0)

    def add(self, judged: JudgedRows) -> None:
        """Take rows that were judged, those that have scores."""
        scores, n = judged.scores, len(judged.block)
        over = np.zeros(n)
        for each in judged.over.values():
            over = np.maximum(over, each)
        spread = np.ones(scores.errors.shape[1]) if scores.expected is None else scores.expected
        errors = np.abs(scores.errors) / np.sqrt(np.maximum(spread, 1e-300))
        if not self._highest.rows:
            self._highest = Highest(1 + errors.shape[1])
        first, before = self._highest.rows, self.each
        self._highest.add(np.column_stack([over, errors]))
        rows = first + np.arange(n)
        begins = rows % self.each == 0
        times = rows if judged.times is None else judged.times
        self.times = np.concatenate([self.times[:: self.each // before], times[begins]])

    @property
    def each(self) -> int:
        """How many rows a point is of."""
        return self._highest.every

    @property
    def over(self) -> Array:
        """(m,), the highest statistic over its limit."""
        return self._highest.runs[:, 0]

    @property
    def errors(self) -> Array:
        """(m, channels), the largest error of each channel over its typical one."""
        return self._highest.runs[:, 1:]
