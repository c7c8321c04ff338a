"""Limits: quantiles of a group's recent scores, and the anomaly score of a row by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.stats.statistic import By

MOST_ANOMALOUS = 1e9
"""Anomaly scores are clipped to this size."""

LEAST = float(np.finfo(np.float64).tiny)
"""Least width to divide by."""


class LimitSteps(NamedTuple):
    """Limits in order: the share of recent scores below each, and its value, (m,) each."""

    shares: Array
    values: Array

    def above(self, scores: Array) -> Array:
        """Return the share of the highest limit that each score (n,) is above: (n,)."""
        return np.asarray(self.shares[self.values.searchsorted(scores) - 1])


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Quantiles of a whole group's `n` recent scores: values below which `shares` of them lie."""

    shares: tuple[float, ...]
    spe: tuple[float, ...]
    t2: tuple[float, ...]
    n: int
    linear: tuple[float, ...] = ()  # of the readings; empty where `spe` is
    distance: tuple[float, ...] = ()  # empty without factors

    def above(self, scores: Array, by: By) -> Array:
        """Return the highest share of recent scores that each (n,) is above, gaps corrected."""
        return self.steps(by).above(scores)

    def steps(self, by: By) -> LimitSteps:
        """Return the limits of one kind of score, to compare many scores with."""
        limits = sorted(zip(self.shares, self._of(by), strict=False))
        known = [(0.0, -np.inf), *(each for each in limits if each[0] > 0.5)]
        shares, values = np.array(known).T
        # Above a limit of a higher share is above those of lower ones.
        return LimitSteps(shares, np.minimum.accumulate(values[::-1])[::-1])

    def anomaly_score(self, scores: Mapping[By, Array]) -> Array:
        """Return how anomalous each row is: 0 at the median of recent rows, 1 at the 99 % limit."""
        each = [
            self._above(of, values) for kind, of in scores.items() if (values := self._of(kind))
        ]
        # The largest: features are blind to faults that readings show, and the other way round. All
        # start at the median, because the distance from median to limit differs.
        return np.asarray(np.max(each, axis=0))

    def _of(self, kind: By) -> tuple[float, ...]:
        values: tuple[float, ...] = getattr(self, kind)
        return values

    def _above(self, scores: Array, values: tuple[float, ...]) -> Array:
        middle, limit = (
            values[min(range(len(values)), key=lambda i: abs(self.shares[i] - share))]
            for share in (0.5, 0.99)
        )
        # Where all scores were equal, anything above them gets the highest score.
        width = max(limit - middle, 1e-9 * limit, LEAST)
        with np.errstate(over="ignore"):
            return np.asarray(np.clip((scores - middle) / width, -MOST_ANOMALOUS, MOST_ANOMALOUS))
