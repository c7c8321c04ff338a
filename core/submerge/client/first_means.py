"""FirstMeans: what fills gaps while the fleet's scaling is open.

Devices speak at their own times, and one that is away for an hour must not keep all others from
being measured. Its gaps are filled with its mean so far, as known ones are filled with the model's
mean before there is a model. A channel that has never come has none: its rows wait for it.
"""

from __future__ import annotations

import numpy as np

from submerge._linalg import Array
from submerge.pca.subspace import LARGEST


class FirstMeans:
    """The means of channels, in their units."""

    def __init__(self, width: int) -> None:
        self._sums, self._counts = np.zeros(width), np.zeros(width)

    def see(self, rows: Array) -> None:
        """Take rows (n, channels); NaN is a gap, and numbers that no engine takes are none."""
        known = np.abs(rows) < LARGEST
        self._sums += np.where(known, rows, 0.0).sum(axis=0)
        self._counts += known.sum(axis=0)

    def filled(self, rows: Array) -> Array:
        """Return rows (n, channels) with the mean in each gap whose channel has one."""
        with np.errstate(invalid="ignore"):
            means = self._sums / self._counts
        return np.asarray(np.where(np.isnan(rows), means, rows))
