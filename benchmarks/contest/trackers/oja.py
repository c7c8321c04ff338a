"""Oja: stochastic gradient steps towards the leading directions, a block at a time.

References
----------
Oja, Simplified Neuron Model as a Principal Component Analyzer, J. Math. Biology 1982; Huang,
Niles-Weed & Ward, Streaming k-PCA: Efficient Guarantees for Oja's Algorithm, COLT 2021 (blocks,
QR, steps that fall as 1/t).
"""

from __future__ import annotations

import numpy as np

from contest.contender import Array


class Oja:
    """Oja's method for several directions.

    step : The t-th step is `step / (t * mean squared length of a row)`, so that its size does not
        depend on the unit.
    block : Rows of a step.
    seed : Of the first basis.
    """

    def __init__(self, rank: int, step: float = 100.0, block: int = 50, seed: int = 0) -> None:
        self._rank, self._step, self._block = rank, step, block
        self._rng = np.random.default_rng(seed)
        self._Q: Array | None = None
        self._energy, self._rows, self._t = 0.0, 0, 0

    def partial_fit(self, block: Array) -> None:
        """Take a step for each part of `block` rows."""
        if self._Q is None:
            self._Q = np.linalg.qr(self._rng.standard_normal((block.shape[1], self._rank)))[0]
        for first in range(0, len(block), self._block):
            rows = block[first : first + self._block]
            self._energy += float(np.einsum("ij,ij->", rows, rows))
            self._rows += len(rows)
            self._t += 1
            if self._energy:
                size = self._step * self._rows / (self._t * self._energy * len(rows))
                self._Q = np.linalg.qr(self._Q + size * (rows.T @ (rows @ self._Q)))[0]

    def basis(self) -> Array:
        """Return the basis after the last step."""
        return np.empty((0, 0)) if self._Q is None else self._Q
