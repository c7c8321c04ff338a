"""PowerMethod: one step of the power method for each block of rows, in O(dim rank) memory.

References
----------
Mitliagkas, Caramanis & Jain, Memory Limited, Streaming PCA, NIPS 2013, Algorithm 1.
"""

from __future__ import annotations

import numpy as np

from contest.contender import Array


class PowerMethod:
    """The block power method.

    block : Rows of one step; by default the larger of 50 and the rows' length, as the centre paper
        runs it. Longer blocks are fewer and better steps.
    seed : Of the first basis.

    Notes
    -----
    The paper takes one step for each whole block. Rows after the last whole block are counted only
    where no block is whole, so that there is an answer at all.
    """

    def __init__(self, rank: int, block: int | None = None, seed: int = 0) -> None:
        self._rank, self._block = rank, block
        self._rng = np.random.default_rng(seed)
        self._Q: Array | None = None
        self._sum: Array = np.empty(0)
        self._rows = 0
        self._stepped = False

    def partial_fit(self, block: Array) -> None:
        """Add rows to the running step; end it when it has enough."""
        dim = block.shape[1]
        if self._Q is None:
            self._Q = np.linalg.qr(self._rng.standard_normal((dim, self._rank)))[0]
            self._sum = np.zeros((dim, self._rank))
        size = self._block or max(50, dim)
        while len(block):
            part, block = block[: size - self._rows], block[size - self._rows :]
            self._sum += part.T @ (part @ self._Q)
            self._rows += len(part)
            if self._rows == size:
                self._Q = np.linalg.qr(self._sum)[0]
                self._sum[:], self._rows, self._stepped = 0.0, 0, True

    def basis(self) -> Array:
        """Return the basis after the last step."""
        if self._Q is None or self._stepped:
            return np.empty((0, 0)) if self._Q is None else self._Q
        return np.asarray(np.linalg.qr(self._sum)[0])
