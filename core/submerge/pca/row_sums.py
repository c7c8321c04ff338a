"""RowSums: sums of rows as whole numbers, for groups whose models carry noise (docs/privacy.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import UsageError
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter, upper

# A row is shortened to the schema's `clip`, and cut to whole steps of it. So sums are the same in
# whatever order they are added, and one row in place of another changes them by `SENSITIVITY` at
# most, whatever the others are.

Ints = npt.NDArray[np.int64]

STEPS = 1024  # of a clip: a row's length in steps is at most so many

ON, BESIDE = 5, 7
"""Weights of a square on the diagonal and beside it, where each stands for two: (7 / 5)^2 <= 2."""

# How far one row z in place of another moves `numbers`, in Euclidean length. For rows of length 1
# with the cosine -s that is 4 + 2 s - 2 s^2 for [z, zz'], squared, at most 4.5, at s = 1 / 2; and
# it grows with their lengths.
SENSITIVITY = ON * 4.5**0.5 * STEPS**2


@dataclass(frozen=True, eq=False)
class RowSums:
    """The sums of rows z in whole steps, and of their squares."""

    schema: str
    step: float
    count: int
    total: Ints  # sum of z, (dim,)
    squares: Ints  # upper triangle of the sum of zz', row by row, (dim (dim + 1) / 2,)

    @classmethod
    def none(cls, schema: str, dim: int, clip: float) -> RowSums:
        """Return the sums of no rows."""
        of_none = np.zeros(dim, np.int64), np.zeros(dim * (dim + 1) // 2, np.int64)
        return cls(schema, clip / STEPS, 0, *of_none)

    def like(self, other: RowSums) -> bool:
        """Return whether both are of one schema, in the same steps."""
        theirs = other.schema, other.step, other.total.shape, other.squares.shape
        return theirs == (self.schema, self.step, self.total.shape, self.squares.shape)

    def __add__(self, other: RowSums) -> RowSums:
        if not self.like(other):
            raise UsageError("sums of rows in other steps, or of another schema, do not add up")
        count, total = self.count + other.count, self.total + other.total
        return RowSums(self.schema, self.step, count, total, self.squares + other.squares)

    def with_rows(self, rows: Array) -> RowSums:
        """Return the sums with scaled rows (n, dim), finite."""
        z = in_steps(rows, self.step)
        # Exact: whole numbers of at most 2^20 times the rows, which float64 holds up to 2^53.
        products = (z.T @ z).ravel()[upper(z.shape[1])]
        new = len(z), z.sum(axis=0).astype(np.int64), products.astype(np.int64)
        return self + RowSums(self.schema, self.step, *new)

    @property
    def dim(self) -> int:
        """Length of the vectors."""
        return len(self.total)

    @property
    def weight(self) -> float:
        """Number of rows."""
        return float(self.count)

    @property
    def numbers(self) -> Ints:
        """Everything that noise is added to, (dim + dim (dim + 1) / 2,)."""
        return np.concatenate([ON * STEPS * self.total, _weights(self.dim) * self.squares])

    @property
    def possible(self) -> bool:
        """Whether so many rows can have such sums."""
        most = STEPS * self.count
        squares = self.squares[_diagonal(self.dim)].tolist()
        bounded = max(map(abs, self.total.tolist())) <= most and min(squares) >= 0
        largest: int = max(sum(squares), *map(abs, self.squares.tolist()))
        return bounded and largest <= STEPS * most

    @cached_property
    def whole(self) -> WholeScatter:
        """The scatter about the mean, in the units of scaled rows."""
        return self.with_noise(np.zeros(len(self.total) + len(self.squares), np.int64))

    def with_noise(self, noise: Ints) -> WholeScatter:
        """Return the scatter by `numbers` with noise; what noise made negative of it is 0."""
        d, values = self.dim, (self.numbers + noise).astype(np.float64)
        mean = values[:d] / (ON * STEPS * max(self.count, 1)) * self.step
        scatter = np.zeros((d, d))
        scatter.ravel()[upper(d)] = values[d:] / _weights(d) * self.step**2
        scatter += np.triu(scatter, 1).T
        scatter -= self.count * np.outer(mean, mean)
        lam, vectors = np.linalg.eigh(scatter)
        scatter = (vectors * np.maximum(lam, 0.0)) @ vectors.T
        energies = np.maximum(np.diag(scatter), 0.0)
        rest = mean, self.weight, float(energies.sum()), 0.0, energies
        return WholeScatter(self.schema, (scatter + scatter.T) / 2, *rest)

    @property
    def parts(self) -> tuple[Subspace, ...]:
        """All directions, found when they are asked for."""
        return self.whole.parts

    @property
    def pieces(self) -> tuple[WholeScatter, ...]:
        """Its scatter, about the mean."""
        return (self.whole,)

    @property
    def packed(self) -> bytes:
        """Everything but the schema, little-endian."""
        numbers = np.concatenate([[self.count], self.total, self.squares]).astype("<i8")
        return struct.pack("<d", self.step) + bytes(numbers.data)


def in_steps(rows: Array, step: float) -> Array:
    """Return rows (n, dim) in whole steps, none longer than `STEPS`."""
    z = rows / step
    z *= (STEPS / np.maximum(np.linalg.norm(z, axis=1), STEPS))[:, None]
    near = np.rint(z)
    # Whole numbers are longer than that by more than rounding, or not at all.
    is_long = np.linalg.norm(near, axis=1) > STEPS
    return np.asarray(np.where(is_long[:, None], np.trunc(z), near))


def _diagonal(dim: int) -> Ints:
    """Return the places of the diagonal in a packed triangle."""
    rows = np.arange(dim)
    return np.asarray(rows * dim - rows * (rows - 1) // 2, dtype=np.int64)


def _weights(dim: int) -> Ints:
    weights = np.full(dim * (dim + 1) // 2, BESIDE, dtype=np.int64)
    weights[_diagonal(dim)] = ON
    return weights
