"""Limits: quantiles of a group's recent scores, and the anomaly score of a row by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from submerge._linalg import Array
from submerge.stats.block_maxima import By

MOST_ANOMALOUS = 1e9
"""Anomaly scores are clipped to this size."""

LEAST = float(np.finfo(np.float64).tiny)
"""Least width to divide by."""


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Quantiles of the recent scores of a whole group.

    spe, t2 : the values below which `shares` of the scores lie
    n : number of scores
    linear : as `spe`, of the readings themselves; empty where `spe` is that already
    """

    shares: tuple[float, ...]
    spe: tuple[float, ...]
    t2: tuple[float, ...]
    n: int
    linear: tuple[float, ...] = ()

    def above(self, scores: Array, by: By) -> Array:
        """Return the highest share of recent scores that each score is above: (n,), 0 for none.

        Shares up to one half describe typical scores and are not limits.

        scores : (n,), corrected for gaps
        """
        values: tuple[float, ...] = getattr(self, by)
        highest = np.zeros(len(scores))
        for share, limit in sorted(zip(self.shares, values, strict=False)):
            if share > 0.5:
                highest[scores > limit] = share
        return highest

    def anomaly_score(self, spe: Array, linear: Array | None) -> Array:
        """Return how anomalous each row is: 0 at the median of recent rows, 1 at the 99 % limit.

        SPE is the squared prediction error. The score is at most `MOST_ANOMALOUS`.

        In a kernel group it is the larger of two: each kind of SPE is blind to faults that the
        other shows. Both start at the median, because the distance from median to limit differs,
        and the kind with the smaller one would otherwise hide the other.

        Parameters
        ----------
        spe : (n,)
        linear : (n,) or None
            As in `Scored`.
        """
        anomaly_score = self._above(spe, self.spe)
        if linear is None or not self.linear:
            return anomaly_score
        return np.maximum(anomaly_score, self._above(linear, self.linear))

    def _above(self, spe: Array, values: tuple[float, ...]) -> Array:
        middle, limit = (
            values[min(range(len(values)), key=lambda i: abs(self.shares[i] - share))]
            for share in (0.5, 0.99)
        )
        # Where all scores were equal, anything above them gets the highest score.
        width = max(limit - middle, 1e-9 * limit, LEAST)
        with np.errstate(over="ignore"):
            return np.asarray(np.clip((spe - middle) / width, -MOST_ANOMALOUS, MOST_ANOMALOUS))
