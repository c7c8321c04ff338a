"""Scatter: the whole (dim, dim) scatter, where that is smaller than a buffer.

For dim <= k + b, the common case of a sensor node, this is exact and faster, and its
dim^2 numbers are fewer than the temporaries that it avoids. It has the interface of
`LowRank`, so `SAPCA` treats both alike.
"""

from __future__ import annotations

import numpy as np

from submerge._linalg import EPS, Array, Directions, Storage
from submerge.pca.block import Blend, Digest


class Scatter:
    """The exact scatter about the mean; nothing is ever dropped from it."""

    def __init__(self, dim: int, block_size: int) -> None:
        self.total: Array = np.zeros((dim, dim))
        self.room: Storage = np.empty((block_size, dim))

    def fade(self, factor: float) -> None:
        """Weigh the past by `factor`."""
        self.total *= factor

    def directions(self, k: int) -> Directions:
        """Decompose the past alone."""
        return _directions(self.total, k)

    def look(self, blend: Blend, k: int) -> Digest:
        """Summarise past and block without changing either."""
        drift, moved = self._moved(blend)
        total = blend.past * self.total + moved.T @ moved
        return Digest(_directions(total, k), drift, float(np.vdot(moved, moved)))

    def absorb(self, blend: Blend, k: int) -> Digest:
        """Make past and block the new past; `k` = 0 skips the decomposition."""
        drift, moved = self._moved(blend)
        self.total *= blend.past
        self.total += moved.T @ moved
        rows, sigma, _, guarded = _directions(self.total, k)
        # Directions beyond k are still held, so none is dropped.
        return Digest(Directions(rows, sigma, 0.0, guarded), drift, float(np.vdot(moved, moved)))

    def _moved(self, blend: Blend) -> tuple[Array, Array]:
        """Return the drift and the block's rows, centered and weighed."""
        block = self.room[: len(blend.ages.roots)]
        drift = blend.ages.shares @ block
        moved = block - blend.pull * drift
        if blend.past != 1.0:
            moved *= blend.ages.roots[:, None]
        return drift, moved


def _directions(scatter: Array, k: int) -> Directions:
    dim = len(scatter)
    if k == 0:
        return Directions(np.empty((0, dim)), np.empty(0), 0.0, False)
    lam, vectors = np.linalg.eigh(scatter)
    lam, vectors = lam[::-1], vectors[:, ::-1]
    kept = min(k, int(np.count_nonzero(lam > dim * EPS * lam[0])))
    dropped = max(0.0, float(lam[kept])) if kept < dim else 0.0
    return Directions(
        np.ascontiguousarray(vectors[:, :kept].T), np.sqrt(lam[:kept]), dropped, False
    )
