"""Readings times frequencies: as a matrix, or by fast Hadamard transforms; the same to rounding.

A matrix is faster where it is small, and only its cost falls with a sparse row's entries. Angles
are good to 1e-6: phases are reduced to a turn in float64, or small in float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from submerge._linalg import Array, Storage
from submerge.features import hadamard, sparse
from submerge.features.weights import Structured

DENSE_BYTES = 4 << 20  # largest matrix of orthogonal weights for dense rows
FAST_FROM = 2048  # channels from which dense rows always use signs
SPARSE_BYTES = 64 << 20  # largest matrix of orthogonal weights for sparse rows
MOST_BYTES = 256 << 20  # largest matrix of other kinds: they have no form with signs

TURN = 2 * math.pi

STEADY = 16.0  # turns up to which a phase may be computed in float32

COARSE = 2.0**48
"""Turns beyond which a phase is too coarse to mean anything; from 2^52 on all are whole."""

MODERATE = 1e30  # weights above this, or below one over it, are not for float32


def is_fast(size: int, channels: int, *, sparse_rows: bool) -> bool:
    """Return whether signs replace a matrix of orthogonal weights of `size` bytes."""
    if sparse_rows:
        return size > SPARSE_BYTES
    return size > DENSE_BYTES or channels >= FAST_FROM


class Dense(NamedTuple):
    """A matrix (channels, waves), in turns."""

    turns: Array
    phases: Array | None  # (waves,), in turns
    single: Storage | None  # in radians; None for sparse rows
    reach: float  # the most turns by readings of at most 1

    @classmethod
    def of(cls, W: Array, phases: Array | None, *, sparse_rows: bool) -> Dense:
        """Hold frequencies W (waves, channels)."""
        turns = np.ascontiguousarray(W.T) / TURN
        reach = float(np.abs(turns).sum(axis=0).max())
        # Then readings with small phases fit float32 too.
        moderate = not sparse_rows and 1 / MODERATE < reach < MODERATE
        single = np.ascontiguousarray(W.T, dtype=np.float32) if moderate else None
        return cls(turns, phases, single, reach)

    def angles(self, X: Any) -> Iterator[tuple[slice, Storage]]:
        """Yield <w, x> for some rows at a time, perhaps less whole turns: float32 (n, waves)."""
        # Computed in float32 if all are small.
        waves = self.turns.shape[1]
        # Short slices of sparse rows cost more than they save.
        parts = _parts(X.shape[0], 1 << (17 if sparse.is_sparse(X) else 13), waves)
        if self.single is not None and np.abs(X).max(initial=0.0) * self.reach <= STEADY:
            yield from self._small(X.astype(np.float32), self.single, parts)
            return
        for part in parts:
            Z = X[part] @ self.turns
            if self.phases is not None:
                Z += self.phases
            yield part, _reduced(Z)

    def back(self, C: Array) -> Array:
        """Return C W, (n, channels) from (n, waves)."""
        return np.asarray(C @ self.turns.T * TURN)

    def _small(
        self, X: Storage, W: Storage, parts: Iterator[slice]
    ) -> Iterator[tuple[slice, Storage]]:
        shift = None if self.phases is None else (TURN * self.phases).astype(np.float32)
        for part in parts:
            Z = X[part] @ W
            if shift is not None:
                Z += shift
            yield part, Z


class Fast(NamedTuple):
    """Signs and scales of orthogonal rows."""

    rows: Structured
    channels: int

    def angles(self, X: Any) -> Iterator[tuple[slice, Storage]]:
        """Yield angles, rows padded with zeros."""
        signs, scale = self.rows
        blocks, _, p = signs.shape
        for part in _parts(X.shape[0], 1 << 14, blocks * p):
            dense = X[part].toarray() if sparse.is_sparse(X) else X[part]
            rows = np.pad(dense, ((0, 0), (0, p - self.channels)))
            yield part, _reduced(hadamard.multiply(rows, signs, len(scale)) * (scale / TURN))

    def back(self, C: Array) -> Array:
        """Return C W."""
        signs, scale = self.rows
        return hadamard.multiply_back(C * scale, signs)[:, : self.channels]


def _reduced(turns: Array) -> Storage:
    """Return angles less whole turns: finite for all finite phases, however large."""
    coarse = np.abs(turns) > COARSE
    if coarse.any():
        # Less whole turns, all these would be zero, and a row of fill values would look like one
        # of zeros. Modulo another number they are arbitrary, as those of an outlying row must be.
        turns[coarse] = np.fmod(turns[coarse], TURN)
    turns -= np.rint(turns)
    angles = turns.astype(np.float32)
    angles *= np.float32(TURN)
    return angles


def _parts(n: int, numbers: int, width: int) -> Iterator[slice]:
    """Yield slices of `n` rows with about so many numbers at that width."""
    step = max(numbers // width, 1)
    yield from (slice(start, start + step) for start in range(0, n, step))
