"""Periods: the time that a row stands for, from the distances of all rows of a history."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from submerge._linalg import Array

MOST = 4096
"""Different distances that are counted; more are rounded to three digits."""

OUTAGE = 100.0
"""Times the median from which a distance is an outage, and says nothing of a row."""


@dataclass
class Periods:
    """Counts the distances of rows that follow one another.

    Attributes
    ----------
    counts : Counter of float
        Distances, seconds.
    """

    counts: Counter[float] = field(default_factory=Counter)
    _last: dict[str, float] = field(default_factory=dict)

    def add(self, machine: str, times: Array) -> None:
        """Take the times of more rows of a machine, (n,)."""
        if not len(times):
            return
        before = self._last.get(machine)
        self._last[machine] = float(times[-1])
        apart = np.diff(times) if before is None else np.diff(times, prepend=before)
        # Times are to the microsecond.
        values, counts = np.unique(np.round(apart, 6), return_counts=True)
        for value, n in zip(values.tolist(), counts.tolist(), strict=True):
            self.counts[value] += n
        if len(self.counts) > MOST:
            rounded: Counter[float] = Counter()
            for value, n in self.counts.items():
                rounded[float(f"{value:.3g}")] += n
            self.counts = rounded

    @property
    def typical(self) -> float:
        """The median distance; the mean one where a clock is too coarse to tell rows apart.

        0 if no two rows are apart.
        """
        if not self.counts:
            return 0.0
        values = np.array(sorted(self.counts))
        counts = np.array([self.counts[value] for value in values.tolist()])
        median = float(values[np.searchsorted(counts.cumsum(), counts.sum() / 2)])
        if values[0] > 0:
            return median
        positive = values[values > 0]
        if not len(positive):
            return 0.0
        usual = values <= OUTAGE * max(median, float(positive[0]))
        return float(values[usual] @ counts[usual]) / float(counts[usual].sum())
