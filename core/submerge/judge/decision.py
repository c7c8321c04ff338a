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

    def beside(self, other: Decision, *, learns: bool) -> Decision:
        """Return the stricter of both; `learns`: what the other withholds is learnt in part."""
        factors = np.ones(len(self.alarmed)) if self.factors is None else self.factors
        if other.factors is not None:
            more = np.where(other.withheld, 1.0, other.factors) if learns else other.factors
            factors = np.minimum(factors, more)
        withheld = self.withheld if learns else self.withheld | other.withheld
        clips = self.factors is not None or other.factors is not None
        return Decision(self.alarmed | other.alarmed, withheld, factors if clips else None)

    def clipped(self, rows: Array, mean: Array) -> Array:
        """Return rows (n, channels) with their distances to a mean multiplied by `factors`."""
        if self.factors is None:
            return rows
        return np.asarray(mean + self.factors[:, None] * (rows - mean))
