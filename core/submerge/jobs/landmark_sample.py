"""LandmarkSample: rows of a stream to choose landmarks from, in bounded memory.

Of a radial kernel it is uniform. A polynomial one is made by a few rows that are far out: half of
the memory is for rows by weight k(x, x), scaled by what this node has seen so far while the scale
is open. Keys are those of `kinds.kpca.chosen`, and follow the scale while their rows are held.
"""

from __future__ import annotations

import numpy as np

from submerge._linalg import Array
from submerge.errors import ShapeError, whole
from submerge.features import Kernel, Polynomial
from submerge.features.draws import logarithm, uniforms
from submerge.protocol.names import RandomSource

LARGEST = (1 << 64) - 1


class RowSample:
    """A uniform sample of `most` rows, at least 1, in 8 `most` `width` bytes."""

    def __init__(self, most: int, width: int, rng: RandomSource) -> None:
        whole("most", most, least=1)
        self.seen = 0
        self._rng = rng
        self._rows: Array = np.empty((most, width))
        self._priorities = np.full(most, LARGEST, dtype=np.uint64)

    def __len__(self) -> int:
        return min(self.seen, len(self._rows))

    @property
    def rows(self) -> Array:
        """A copy of its rows, (n, width)."""
        return self._rows[: len(self)].copy()

    def add(self, rows: Array) -> None:
        """Let rows (n, width) into the sample; O(n), and O(most) for each that is taken."""
        if rows.ndim != 2 or rows.shape[1] != self._rows.shape[1]:
            raise ShapeError("rows", expected=f"(n, {self._rows.shape[1]})", got=rows.shape)
        drawn = np.frombuffer(self._rng.bytes(8 * len(rows)), dtype="<u8")
        free = min(len(rows), len(self._rows) - len(self))
        place = slice(len(self), len(self) + free)
        self._rows[place], self._priorities[place] = rows[:free], drawn[:free]
        self.seen += len(rows)
        last = int(np.argmax(self._priorities))
        for i in free + np.flatnonzero(drawn[free:] < self._priorities[last]):
            if drawn[i] < self._priorities[last]:
                self._rows[last], self._priorities[last] = rows[i], drawn[i]
                last = int(np.argmax(self._priorities))


TINY = 1e-300
"""Least weight: a row at the mean is drawn last, and never by chance of rounding."""


class LandmarkSample:
    """Rows to choose landmarks from, `most`, at least 1, in 8 `most` (`width` + 1) bytes.

    raw : The fleet has still to settle how rows are scaled; gamma is that of the rows seen here.
    """

    def __init__(
        self, most: int, width: int, kernel: Kernel, rng: RandomSource, *, raw: bool = False
    ) -> None:
        whole("most", most, least=1)
        self._raw = raw
        self._kernel = kernel if isinstance(kernel, Polynomial) and most > 1 else None
        self._half = most // 2 if self._kernel is not None else 0
        self._uniform = RowSample(most - self._half, width, rng)
        self._rng = rng
        self._rows: Array = np.empty((0, width))
        self._drawn: Array = np.empty(0)  # log(-log(u)) of each
        self._n, self._mean, self._squares = 0, np.zeros(width), np.zeros(width)

    def __len__(self) -> int:
        """Return how many rows it holds, one that is held twice counted twice."""
        return len(self._uniform) + len(self._rows)

    @property
    def rows(self) -> Array:
        """A copy of its rows, (n, width), each once."""
        both = np.concatenate([self._uniform.rows, self._rows])
        return both if self._kernel is None else np.unique(both, axis=0)

    def add(self, rows: Array) -> None:
        """Let rows (n, width) into the sample; O((n + most) width)."""
        self._uniform.add(rows)
        if self._kernel is None or not len(rows):
            return
        self._measure(rows)
        words = np.frombuffer(self._rng.bytes(8 * len(rows)), dtype="<u8")
        drawn = np.concatenate([self._drawn, np.log(-logarithm(uniforms(words)))])
        rows = np.concatenate([self._rows, rows])
        kept = np.argsort(drawn - self._log_weights(rows, self._kernel), kind="stable")[
            : self._half
        ]
        self._rows, self._drawn = rows[kept], drawn[kept]

    def _measure(self, rows: Array) -> None:
        n, mean = len(rows), rows.mean(axis=0)
        together, off = self._n + n, mean - self._mean
        self._squares += np.square(rows - mean).sum(axis=0) + off**2 * (self._n * n / together)
        self._mean = self._mean + off * (n / together)
        self._n = together

    def _log_weights(self, rows: Array, kernel: Polynomial) -> Array:
        """Return log k(x, x) of rows (n, width), as they would be scaled: (n,)."""
        variances = self._squares / self._n
        if self._raw:
            rows = (rows - self._mean) / np.sqrt(np.where(variances > 0, variances, 1.0))
            variances = (variances > 0).astype(float)
        gamma = kernel.auto(float(variances.sum()) or 1.0) if kernel.gamma is None else kernel.gamma
        square = gamma * np.square(rows).sum(axis=1)
        return np.asarray(kernel.degree * np.log(square + kernel.coef0 + TINY))
