"""Moses: each block joins what is kept by a truncated SVD.

References
----------
Eftekhari, Hauser & Grammenos, MOSES: A Streaming Algorithm for Linear Dimensionality Reduction,
arXiv:1806.01304, Algorithm 1.
"""

from __future__ import annotations

import numpy as np

from contest.contender import Array


class Moses:
    """MOSES.

    block : Rows of a block; by default those of each call.
    """

    def __init__(self, rank: int, block: int | None = None) -> None:
        self._rank, self._block = rank, block
        self._kept: Array | None = None
        self._waiting: Array | None = None

    def partial_fit(self, block: Array) -> None:
        """Learn rows, block by block; a rest waits for the next call."""
        if self._waiting is not None:
            block = np.concatenate([self._waiting, block])
        size = self._block or len(block)
        whole = len(block) // size * size
        for first in range(0, whole, size):
            self._kept = self._joined(block[first : first + size])
        self._waiting = block[whole:].copy() if whole < len(block) else None

    def _joined(self, block: Array) -> Array:
        stack = block if self._kept is None else np.concatenate([self._kept, block])
        _, s, right = np.linalg.svd(stack, full_matrices=False)
        return np.asarray(s[: self._rank, None] * right[: self._rank])

    def basis(self) -> Array:
        """Return the directions; rows that wait are counted in."""
        kept = self._kept if self._waiting is None else self._joined(self._waiting)
        if kept is None:
            return np.empty((0, 0))
        return np.asarray(np.linalg.svd(kept, full_matrices=False)[2].T)
