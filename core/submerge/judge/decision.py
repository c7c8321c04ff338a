"""Decision: which rows of a block are alarmed, and which are learnt."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """Which rows of a block are alarmed, and which are not learnt: (n,) of bool."""

    alarmed: Mask
    withheld: Mask
    factors: Array | None = None  # (n,), of the others' distances to the mean as they are learnt

    @classmethod
    def learn(cls, n: int) -> Decision:
        """Return the decision to learn n rows as they are."""
        return cls(np.zeros(n, dtype=bool), np.zeros(n, dtype=bool))

    def withholding(self, rows: Mask | bool) -> Decision:
        """Return the same with some rows (n,) withheld; True means all."""
        return replace(self, withheld=self.withheld | rows)

    def joined(self, other: Decision) -> Decision:
        """Return the stricter of both."""
        factors = self.factors if other.factors is None else other.factors
        if self.factors is not None and other.factors is not None:
            factors = np.minimum(self.factors, other.factors)
        return Decision(self.alarmed | other.alarmed, self.withheld | other.withheld, factors)

    def clipped(self, rows: Array, mean: Array) -> Array:
        """Return rows (n, channels) with their distances to a mean multiplied by `factors`."""
        if self.factors is None:
            return rows
        return np.asarray(mean + self.factors[:, None] * (rows - mean))
