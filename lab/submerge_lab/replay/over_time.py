"""ErrorOverTime: what the subspace of each moment misses of all rows so far.

The error after t rows is ||Y - Y U U'||_F^2 / t with the subspace U of that moment, as the paper
draws it (Figure 1). It comes from a running sum of y y', and not from the rows: a block costs
O(b dim^2), whatever came before it, and memory is dim^2 numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from submerge import Array, Subspace

MOST_COLUMNS = 4096
"""The sum of y y' has 128 MiB then."""


@dataclass(frozen=True)
class OverTime:
    """At the end of each block: rows so far, the error over them per row, and the rank."""

    rows: list[int] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)


class ErrorOverTime:
    """The running sums, and the errors that were noted.

    forgetting_factor : As the engine's: each row multiplies the weight of the rows before it, so
        that "per row" is per unit of weight.
    center : Whether the engine centers. Rows are then measured from the first one: a large mean
        costs no digits.
    """

    def __init__(self, dim: int, *, forgetting_factor: float = 1.0, center: bool = False) -> None:
        self.noted = OverTime()
        self._fade, self._center = forgetting_factor, center
        self._origin = np.zeros(dim)
        self._scatter, self._sum = np.zeros((dim, dim)), np.zeros(dim)
        self._weight, self._rows = 0.0, 0

    def add(self, block: Array) -> None:
        """Count rows (b, dim), after all that came before them."""
        if self._center and not self._rows:
            self._origin = block[0].astype(np.float64)
        n, off = len(block), block - self._origin
        weights = self._fade ** np.arange(n - 1, -1, -1.0)
        past = self._fade**n
        self._scatter = past * self._scatter + (off * weights[:, None]).T @ off
        self._sum = past * self._sum + weights @ off
        self._weight = past * self._weight + float(weights.sum())
        self._rows += n

    def note(self, shown: Subspace) -> None:
        """Write down the error and the rank of the subspace of this moment."""
        self.noted.rows.append(self._rows)
        self.noted.errors.append(self.error(shown.basis, shown.mean))
        self.noted.ranks.append(shown.rank)

    def error(self, basis: Array, mean: Array | float = 0.0) -> float:
        """Return ||Y - Y U U'||_F^2 of all rows Y about a mean (dim,), over their weight.

        basis : U (dim, rank), orthonormal
        """
        off = mean - self._origin
        square = self._scatter + self._weight * np.outer(off, off)
        square -= np.outer(self._sum, off) + np.outer(off, self._sum)
        seen = float(np.sum(basis * (square @ basis)))
        # A difference of two sums: where nothing is missed, rounding may leave less than nothing.
        return max(0.0, float(np.trace(square)) - seen) / self._weight
