"""RowTimes: the times of the rows that a sensor handed over, by their number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

KEPT = 1 << 14
"""Rows that may be between a sensor and their scores: a node is `AHEAD` rows behind at most, and at
the end as many as a last chunk has lines."""


class RowTimes:
    """Times of the newest `KEPT` rows. The sensor's thread adds, the node's looks up."""

    def __init__(self) -> None:
        self._times = np.zeros(KEPT, dtype=np.int64)
        self._rows = 0

    def add(self, times: Sequence[int]) -> None:
        """Take the times of the next rows, before these are handed over."""
        places = np.arange(self._rows, self._rows + len(times)) % KEPT
        self._times[places] = times
        self._rows += len(times)

    def of(self, row: int) -> int:
        """Return the time of a row, the first of which is 0."""
        return int(self._times[row % KEPT])
