"""Periods: the time that a row stands for, from the distances of all rows of a history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
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

    The counts do not depend on how rows are cut into calls or parts.

    counts : Distances, seconds.
    rounded : Whether distances are rounded, as there were too many different ones.
    first, last : The first and the last time of each machine.
    """

    counts: Counter[float] = field(default_factory=Counter)
    rounded: bool = False
    first: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)

    def add(self, machine: str, times: Array) -> None:
        """Take the times of more rows of a machine, (n,)."""
        if not len(times):
            return
        before = self.last.get(machine)
        self.first.setdefault(machine, float(times[0]))
        self.last[machine] = float(times[-1])
        apart = np.diff(times) if before is None else np.diff(times, prepend=before)
        # Times are to the microsecond.
        values, counts = np.unique(np.round(apart, 6), return_counts=True)
        self._count(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def follow(self, later: Periods) -> None:
        """Take in the distances of rows that come after these."""
        self._count(later.counts, rounded=later.rounded)
        for machine, first in later.first.items():
            before = self.last.get(machine)
            if before is not None:
                self._count({float(np.round(first - before, 6)): 1})
            self.first.setdefault(machine, first)
        self.last |= later.last

    def _count(self, counts: Mapping[float, int], *, rounded: bool = False) -> None:
        for value, n in counts.items():
            self.counts[_three_digits(value) if self.rounded else value] += n
        if not self.rounded and (rounded or len(self.counts) > MOST):
            exact, self.counts, self.rounded = self.counts, Counter(), True
            for value, n in exact.items():
                self.counts[_three_digits(value)] += n

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


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")
