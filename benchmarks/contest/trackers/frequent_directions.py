"""FrequentDirections: a sketch of `size` rows that is shrunk whenever its buffer is full.

Its shrinking bounds the error of the covariance, and biases every direction towards zero.

References
----------
Liberty, Simple and Deterministic Matrix Sketching, KDD 2013; Ghashami, Liberty, Phillips &
Woodruff, Frequent Directions, SIAM J. Comput. 2016 (the buffer of twice the size). Luo, Chen,
Zhang, Li & Zhang, Robust Frequent Directions with Application in Online Learning, JMLR 2019.
"""

from __future__ import annotations

import numpy as np

from contest.contender import Array


class FrequentDirections:
    """Frequent Directions.

    rank : Most directions to show.
    size : Rows of the sketch, l; the buffer has 2 l. By default the rank, as the centre paper runs
        it: shrinking by the l-th value then leaves rank - 1 directions.

    alpha : What robust Frequent Directions adds to the diagonal: half of all that was shrunk away.
        It moves no direction, so that both variants have this one basis.
    """

    def __init__(self, rank: int, size: int | None = None) -> None:
        self._rank, self._size = rank, rank if size is None else size
        self._buffer: Array = np.empty((0, 0))
        self._rows = 0
        self.alpha = 0.0

    def partial_fit(self, block: Array) -> None:
        """Append rows, and shrink as often as the buffer is full."""
        if not self._buffer.size:
            self._buffer = np.zeros((2 * self._size, block.shape[1]))
        while len(block):
            room = len(self._buffer) - self._rows
            part, block = block[:room], block[room:]
            self._buffer[self._rows : self._rows + len(part)] = part
            self._rows += len(part)
            if self._rows == len(self._buffer):
                self._shrink()

    def _shrink(self) -> None:
        _, s, right = np.linalg.svd(self._buffer, full_matrices=False)
        least = s[self._size - 1] ** 2 if len(s) >= self._size else 0.0
        self.alpha += least / 2
        kept = np.sqrt(np.maximum(s**2 - least, 0.0))[: self._size]
        self._buffer[:] = 0.0
        self._buffer[: len(kept)] = kept[:, None] * right[: len(kept)]
        self._rows = int(np.count_nonzero(kept))

    def basis(self) -> Array:
        """Return the leading directions of the sketch, after it is shrunk to its size."""
        if self._rows > self._size:
            self._shrink()
        _, s, right = np.linalg.svd(self._buffer[: self._rows], full_matrices=False)
        return np.asarray(right[: min(self._rank, int((s > 0).sum()))].T)
