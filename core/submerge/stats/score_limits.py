"""Limits: what recent scores of a whole group stayed below, and how odd a row is by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.stats.block_maxima import By

MOST_ANOMALOUS = 1e9
"""How odd a row may be: more is no more."""

LEAST = float(np.finfo(np.float64).tiny)
"""What is smaller is no width to divide by."""


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Scores that a share of recent readings of the whole group stayed below.

    spe, t2 : the values at `shares`
    n : scores behind them
    linear : as `spe`, of the readings themselves; empty where that is what `spe` is
    """

    shares: tuple[float, ...]
    spe: tuple[float, ...]
    t2: tuple[float, ...]
    n: int
    linear: tuple[float, ...] = ()

    def above(self, scores: Array, by: By) -> Array:
        """Return the highest share of recent scores that each score is above: (n,), 0 for none.

        Below one half a share is the middle of what is usual, and no limit.

        scores : (n,), brought to what whole rows come to
        """
        values: tuple[float, ...] = getattr(self, by)
        highest = np.zeros(len(scores))
        for share, limit in sorted(zip(self.shares, values, strict=False)):
            if share > 0.5:
                highest[scores > limit] = share
        return highest

    def anomaly_score(
        self, spe: Array, linear: Array | None
    ) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return how odd each row is: 0 like the middle of recent ones, 1 at the 99 % limit.

        At most `ODDEST`.

        In a kernel group by the larger of two: each kind of SPE is blind to faults that the
        other sees. Measured from the middle, for the two differ in how far apart middle and
        limit are, and the one with the smaller gap would else drown the other.

        Parameters
        ----------
        spe : (n,)
        linear : (n,) or None
            As in `Scored`.

        Returns
        -------
        (n,), and (n,) of bool: true where the readings say more than their features
        """
        anomaly_score = self._above(spe, self.spe)
        if linear is None or not self.linear:
            return anomaly_score, np.zeros(len(spe), dtype=bool)
        other = self._above(linear, self.linear)
        return np.maximum(anomaly_score, other), other > anomaly_score

    def _above(self, spe: Array, values: tuple[float, ...]) -> Array:
        middle, limit = (
            values[min(range(len(values)), key=lambda i: abs(self.shares[i] - share))]
            for share in (0.5, 0.99)
        )
        # Where all scores were one, whatever is above it is as odd as can be.
        width = max(limit - middle, 1e-9 * limit, LEAST)
        with np.errstate(over="ignore"):
            return np.asarray(np.clip((spe - middle) / width, -MOST_ANOMALOUS, MOST_ANOMALOUS))
