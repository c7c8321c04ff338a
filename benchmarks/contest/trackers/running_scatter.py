"""RunningScatter: four lines of NumPy, X'X of all rows so far. Exact, in O(dim^2)."""

from __future__ import annotations

import numpy as np

from contest.contender import Array


class RunningScatter:
    """The leading eigenvectors of the sum of y y', which is all that is held."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._scatter: Array | None = None

    def partial_fit(self, block: Array) -> None:
        """Add the rows' scatter."""
        added = block.T @ block
        self._scatter = added if self._scatter is None else self._scatter + added

    def basis(self) -> Array:
        """Return the directions."""
        if self._scatter is None:
            return np.empty((0, 0))
        return np.asarray(np.linalg.eigh(self._scatter)[1][:, ::-1][:, : self._rank])
