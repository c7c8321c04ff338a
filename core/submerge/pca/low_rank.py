"""LowRank: k directions and a block, in O(dim (k + b)) memory (SPCA, Algorithm 3).

As printed it loses orthogonality on rank-deficient rows (docs/mathematics.md, "A block").
"""

from __future__ import annotations

import numpy as np

from submerge._linalg import Array, Directions, Mix, Storage, leading, multiply
from submerge.pca.block import Blend, Digest, channel_energies
from submerge.pca.expectation import Guesses, Mask
from submerge.pca.ritz import decomposed


class LowRank:
    """The leading directions of a scatter too large to keep."""

    gaps: Mask | None = None  # none: see `mark`

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

    def write(self, rows: Storage, mean: Array, *, at: int) -> None:
        """Put rows (n, dim) into the room as its rows from `at` on."""
        start = len(self.sigma) + at
        np.subtract(rows, mean, out=self._stack[start : start + len(rows)], casting="same_kind")

    def mark(self, gaps: Guesses, *, at: int, came: bool) -> None:
        """Do nothing: guesses are learnt as they are."""

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
        # In the rows' own type: what a float32 row lost when it was stored is as much.
        drift = np.empty(stack.shape[1], stack.dtype)
        multiply(shares, stack[old:], out=drift)
        drift = drift.astype(np.float64, copy=False)
        scale = np.concatenate([blend.past**0.5 * self.sigma, roots])
        v = np.concatenate([np.zeros(old), unit])
        mix = Mix(scale, v, blend.pull)

        cancelled = blend.pull * (2 - blend.pull) * blend.mass * float(drift @ drift)
        energies = channel_energies(stack[old:], blend, drift)
        eigen = decomposed(stack, old, k, mix=mix, cancelled=cancelled)
        found = leading(stack, k, mix=mix, eigen=eigen, cancelled=cancelled, out=out)
        return Digest(found, drift, energies)

    def _reserve(self, k: int) -> None:
        """Make room for `k` directions and a block."""
        needed = k + self._block_size
        if needed > len(self._stack):
            larger = np.empty((needed, self._stack.shape[1]), self._stack.dtype)
            larger[: len(self.sigma)] = self.rows
            self._stack = larger
