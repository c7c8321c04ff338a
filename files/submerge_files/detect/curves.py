"""Curves: what a picture shows of any number of rows, in bounded memory. Rows are put into buckets
of equal numbers. A bucket has the highest score over its limit, and for each channel its largest
error over its typical one. When there are more than `MOST` buckets, neighbours are merged.
"""

from __future__ import annotations

import numpy as np

from submerge import Array
from submerge.history.detection import JudgedRows

MOST = 1200
"""Buckets that are held; a picture is not much wider."""


class Curves:
    """The highest values of buckets of rows."""

    def __init__(self) -> None:
        self.each = 1
        self._buckets: list[tuple[float, float, Array]] = []
        self._waiting: list[tuple[float, float, Array]] = []
        self._rows = 0

    def add(self, judged: JudgedRows) -> None:
        """Take rows that were judged."""
        scores, n = judged.scores, len(judged.block)
        over = np.zeros(n)
        for each in judged.over.values():
            over = np.maximum(over, each)
        spread = np.ones(scores.errors.shape[1]) if scores.expected is None else scores.expected
        errors = np.abs(scores.errors) / np.sqrt(np.maximum(spread, 1e-300))
        first = self._rows
        times = np.arange(first, first + n) if judged.times is None else judged.times
        self._rows += n
        for i in range(n):
            self._waiting.append((float(times[i]), float(over[i]), errors[i]))
            if len(self._waiting) == self.each:
                self._close()

    @property
    def times(self) -> Array:
        """(m,), when buckets begin: seconds since 1970, or row numbers."""
        return np.array([time for time, _, _ in self._all])

    @property
    def over(self) -> Array:
        """(m,), the highest score over its limit."""
        return np.array([over for _, over, _ in self._all])

    @property
    def errors(self) -> Array:
        """(m, channels), the largest error of each channel over its typical one."""
        return np.array([errors for _, _, errors in self._all])

    @property
    def _all(self) -> list[tuple[float, float, Array]]:
        return [*self._buckets, *([_merged(self._waiting)] if self._waiting else [])]

    def _close(self) -> None:
        self._buckets.append(_merged(self._waiting))
        self._waiting.clear()
        if len(self._buckets) > MOST:
            pairs = [self._buckets[i : i + 2] for i in range(0, len(self._buckets), 2)]
            self._buckets = [_merged(pair) for pair in pairs]
            self.each *= 2


def _merged(buckets: list[tuple[float, float, Array]]) -> tuple[float, float, Array]:
    errors = np.maximum.reduce([errors for _, _, errors in buckets])
    return buckets[0][0], max(over for _, over, _ in buckets), errors
