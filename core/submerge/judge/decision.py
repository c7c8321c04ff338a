"""Decision: what detection says of the rows of one block, and so what is learnt of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What becomes of the rows of a block.

    Attributes
    ----------
    alarmed : (n,) of bool
        Rows of an alarm.
    withheld : (n,) of bool
        Rows that are not learnt.
    factors : (n,) or None
        What the others are multiplied by, as they lie off the mean, before they are learnt; None
        if all are learnt as they are.
    """

    alarmed: Mask
    withheld: Mask
    factors: Array | None = None

    @classmethod
    def learn(cls, n: int) -> Decision:
        """Return the decision to learn n rows as they are."""
        return cls(np.zeros(n, dtype=bool), np.zeros(n, dtype=bool))

    def withholding_all(self) -> Decision:
        """Return the same with every row withheld."""
        return replace(self, withheld=np.ones(len(self.withheld), dtype=bool))

    def clipped(self, rows: Array, mean: Array) -> Array:
        """Return rows (n, channels) drawn in towards a mean, as far as they are to be."""
        if self.factors is None:
            return rows
        return np.asarray(mean + self.factors[:, None] * (rows - mean))
