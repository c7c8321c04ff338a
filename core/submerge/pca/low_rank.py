"""LowRank: k directions and a block, in O(dim (k + b)) memory (SPCA, Algorithm 3).

One buffer holds the orthonormal rows kept so far and, below them, the block of new
rows. Absorbing a block replaces the rows on top and copies nothing else.

The paper's Algorithm 3 projects the block once and takes a QR of the residual. On
rank-deficient data, a sensor that starts late, or large means in float32, that
loses orthogonality altogether (||U'U - I|| reaches 1). The kernel in `_linalg`
does not, and is faster.
"""

from __future__ import annotations

import numpy as np

from submerge._linalg import (
    CANCELLED,
    Array,
    Directions,
    Mix,
    Storage,
    inner,
    leading,
    multiply,
    slices,
)
from submerge.pca.block import Blend, Digest


class LowRank:
    """The leading directions of a scatter too large to keep."""

    def __init__(self, dim: int, k: int, block_size: int, dtype: np.dtype) -> None:
        self.sigma: Array = np.empty(0)
        self._block_size = block_size
        self._stack: Storage = np.empty((k + block_size, dim), dtype)

    @property
    def rows(self) -> Storage:
        """The orthonormal rows (k, dim): a view that the next block overwrites."""
        return self._stack[: len(self.sigma)]

    @property
    def room(self) -> Storage:
        """Space (block_size, dim) for the next block, measured from the mean."""
        start = len(self.sigma)
        return self._stack[start : start + self._block_size]

    def restore(self, rows: Storage, sigma: Array) -> None:
        """Replace the memory by saved directions."""
        self._reserve(len(sigma))
        self._stack[: len(sigma)] = rows
        self.sigma = sigma

    def fade(self, factor: float) -> None:
        """Weigh the past by `factor`."""
        self.sigma = self.sigma * factor**0.5

    def directions(self, k: int) -> Directions:
        """Return a copy of all directions kept: at least `k`, if the data have so many."""
        return Directions(self.rows.copy(), self.sigma.copy(), 0.0, False)

    def look(self, blend: Blend, k: int) -> Digest:
        """Summarise past and block without changing either."""
        return self._digest(blend, k, out=None)

    def absorb(self, blend: Blend, k: int) -> Digest:
        """Make past and block the new past."""
        digest = self._digest(blend, k, out=self._stack)
        self.sigma = digest.found.sigma
        self._reserve(k)
        return digest

    def _digest(self, blend: Blend, k: int, out: Storage | None) -> Digest:
        old, (_, roots, shares, unit, _) = len(self.sigma), blend.ages
        stack = self._stack[: old + len(roots)]
        drift = np.empty(stack.shape[1])
        multiply(shares, stack[old:], out=drift)
        scale = np.concatenate([blend.past**0.5 * self.sigma, roots])
        v = np.concatenate([np.zeros(old), unit])
        mix = Mix(scale, v, blend.pull)

        gram = mix.of_gram(inner(stack))
        energy = float(gram.diagonal()[old:].sum())
        cancelled = blend.pull * (2 - blend.pull) * blend.mass * float(drift @ drift)
        if cancelled > CANCELLED * energy:
            block = Mix(roots, unit, blend.pull)
            energy = sum(float(np.vdot(part, part)) for part in slices(stack[old:], block))
        found = leading(stack, k, mix=mix, gram=gram, cancelled=cancelled, out=out)
        return Digest(found, drift, energy)

    def _reserve(self, k: int) -> None:
        """Make room for `k` directions and a block."""
        needed = k + self._block_size
        if needed > len(self._stack):
            larger = np.empty((needed, self._stack.shape[1]), self._stack.dtype)
            larger[: len(self.sigma)] = self.rows
            self._stack = larger
