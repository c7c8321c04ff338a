"""NewestValues: the newest row in which each channel had a value."""

from __future__ import annotations

import numpy as np

from submerge import Array


class NewestValues:
    """The newest row in which each channel had a value.

    at : (width,) of int. The numbers of these rows, from 1; 0 where there was none. Replaced as a
        whole, so any thread may read it.
    """

    def __init__(self, width: int) -> None:
        self.at = np.zeros(width, dtype=np.int64)

    def take(self, rows: Array, so_far: int) -> None:
        """Take rows, the last of which has the number `so_far`; NaN is no value."""
        present = ~np.isnan(rows[::-1])
        self.at = np.where(present.any(axis=0), so_far - present.argmax(axis=0), self.at)
