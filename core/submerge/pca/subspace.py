"""Subspace: a node's whole memory of its data.

`weight`, `mean`, `energy` and `channel_energies` are exact, to rounding, however it was computed.
The others never overstate: with C the exact scatter,

    basis diag(sigma)^2 basis.T <= C          (as positive semi-definite matrices)
    sigma_i^2 <= lambda_i(C) <= sigma_i^2 + spectral_bound
    trace(C) - sum(sigma^2) = frobenius_bound
    diag(basis diag(sigma)^2 basis.T) <= channel_energies = diag(C)

so the value itself says how much it may be missing (docs/mathematics.md, "State").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from submerge._linalg import Array, Storage, leading, signs, unmasked
from submerge.errors import SchemaMismatch, ShapeError, UsageError, ValuesError, whole
from submerge.schema import Schema

LARGEST = 1e140  # largest reading: sums of larger squares may overflow float64
LARGEST_SINGLE = 1e37  # largest reading for float32: above, its distance to the mean may overflow

MOST_SUMMED = {np.dtype(kind): float(np.finfo(kind).max) for kind in (np.float64, np.float32)}
"""Largest sum of squares in the types that BLAS sums."""


@dataclass(frozen=True, slots=True, eq=False)
class Subspace:
    """A low-rank summary of data that are no longer kept.

    Attributes
    ----------
    schema : str
        The schema's fingerprint; subspaces with different ones never merge.
    basis : (dim, k)
        Orthonormal columns, most important first; the entry of largest size in
        each is positive.
    sigma : (k,)
        Singular values of the centered data, descending, positive.
    mean : (dim,)
    weight : float
        Effective number of samples.
    energy : float
        Total squared distance to the mean, kept and discarded.
    spectral_bound : float
        Most that may be missing from any eigenvalue of the scatter.
    channel_energies : (dim,), optional
        The energy of each dimension, the diagonal of the exact scatter: they sum to `energy`.
        None where a part came from a node of an earlier version, which does not send them.
    spares : int
        How many of the last directions merge, and score no rows. An engine's subspace has some;
        what was merged, or came from a file or a node, has none.
    """

    schema: str
    basis: Storage
    sigma: Array
    mean: Array
    weight: float
    energy: float
    spectral_bound: float
    channel_energies: Array | None = None
    spares: int = 0

    @classmethod
    def empty(cls, schema: Schema) -> Subspace:
        """Return the summary of no data: the identity of `merge`."""
        dim = schema.dim
        nothing = np.empty((dim, 0)), np.empty(0), np.zeros(dim), 0.0, 0.0, 0.0
        return cls(schema.fingerprint, *nothing, channel_energies=np.zeros(dim))

    @classmethod
    def of(cls, block: Array, schema: Schema, *, rank: int) -> Subspace:
        """Summarise a block (n, channels) of readings in one go.

        O(n^2 dim); use `SAPCA` for a stream.
        """
        check_rank(rank)
        X = schema.lift(np.atleast_2d(unmasked(block)))
        check_values(X)
        if not len(X):
            return cls.empty(schema)
        mean = np.zeros(X.shape[1]) if schema.center == "none" else _mean(X)
        X = X - mean
        found = leading(X, rank)
        return oriented(
            found.rows,
            found.sigma,
            schema=schema.fingerprint,
            mean=mean,
            weight=float(len(X)),
            energy=float(np.vdot(X, X)),
            spectral_bound=found.dropped,
            channel_energies=np.einsum("ij,ij->j", X, X),
        )

    @property
    def dim(self) -> int:
        """Length of the vectors."""
        return len(self.mean)

    @property
    def rank(self) -> int:
        """Number of directions held, k."""
        return len(self.sigma)

    @property
    def shown(self) -> Subspace:
        """The directions that score rows: without the spare ones."""
        return self.truncated(self.rank - self.spares) if self.spares else self

    @property
    def parts(self) -> tuple[Subspace, ...]:
        """The subspace itself. A kernel group's summary has two parts."""
        return (self,)

    @property
    def pieces(self) -> tuple[Subspace, ...]:
        """As `parts`, as they are held: nothing is decomposed."""
        return (self,)

    @property
    def frobenius_bound(self) -> float:
        """Energy that this rank misses: energy - sum(sigma^2).

        It bounds ||Y - U U' Y||_F^2 for the data Y behind the subspace.
        """
        return max(0.0, self.energy - float(self.sigma @ self.sigma))

    @property
    def explained_variance(self) -> Array:
        """Variance along each direction, sigma^2 / weight: (k,)."""
        return np.asarray(self.sigma**2 / self.weight if self.weight > 0 else self.sigma**2)

    def truncated(self, rank: int) -> Subspace:
        """Return the leading `rank` directions; the rest is added to the bounds."""
        check_rank(rank)
        if rank >= self.rank:
            return self
        return replace(
            self,
            basis=self.basis[:, :rank],
            sigma=self.sigma[:rank],
            spectral_bound=self.spectral_bound + float(self.sigma[rank] ** 2),
            spares=max(0, self.spares - (self.rank - rank)),
        )

    def faded(self, factor: float) -> Subspace:
        """Return this subspace with all its data counted `factor` times.

        Below 1 it forgets; above 1 is the paper's enhancing factor.
        """
        check_factor(factor, self.weight, self.energy)
        energies = self.channel_energies
        return replace(
            self,
            sigma=self.sigma * factor**0.5,
            weight=self.weight * factor,
            energy=self.energy * factor,
            spectral_bound=self.spectral_bound * factor,
            channel_energies=None if energies is None else energies * factor,
        )


def oriented(
    rows: Storage,
    sigma: Array,
    *,
    schema: str,
    mean: Array,
    weight: float,
    energy: float,
    spectral_bound: float,
    channel_energies: Array | None = None,
    spares: int = 0,
) -> Subspace:
    """Build a subspace from orthonormal `rows` (k, dim), which it takes over, with signs set."""
    rows *= signs(rows)[:, None].astype(rows.dtype)
    # Values are shared, by merges and trees too, so they are read-only.
    for array in (rows, sigma, mean, channel_energies):
        if array is not None:
            array.flags.writeable = False
    known = weight, energy, spectral_bound, channel_energies
    return Subspace(schema, rows.T, sigma, mean, *known, spares)


def check_factor(factor: float, weight: float, energy: float) -> None:
    """Refuse to fade by a factor that leaves weight or energy neither positive nor finite."""
    if not 0 < factor < np.inf or not max(weight, energy) * factor < LARGEST**2:
        raise UsageError(
            "a fading factor must be positive and leave weight and energy finite,"
            f" got {factor} for {weight:g} and {energy:g}"
        )


def check_rank(rank: int) -> None:
    """Refuse a rank below one."""
    whole("rank", rank, least=1)


class _OfSchema(Protocol):
    """What a summary of rows has."""

    @property
    def schema(self) -> str: ...
    @property
    def mean(self) -> Array: ...


def check_same_schema(first: _OfSchema, other: _OfSchema) -> None:
    """Refuse subspaces of different schemas."""
    if first.schema != other.schema:
        raise SchemaMismatch(expected=first.schema, got=other.schema)
    if len(first.mean) != len(other.mean):
        raise ShapeError("mean", expected=f"({len(first.mean)},)", got=other.mean.shape)


def check_values(X: Array, largest: float = LARGEST) -> None:
    """Refuse rows that hold NaN, infinity, or numbers too large to square and sum."""
    # One BLAS pass accepts good rows; only otherwise do we search for the bad value. In float32,
    # numbers with a finite sum of squares are far below any limit.
    most = MOST_SUMMED.get(X.dtype)
    if most and X.flags.c_contiguous and float(np.vdot(X, X)) < min(largest * largest, most):
        return
    # The limit is a float64, whatever dtype the rows have.
    bad = ~(np.abs(X) < np.float64(largest))
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise ValuesError(
            f"expected finite readings below {largest:g}, got {X[row, column]:g}"
            f" in row {row}, column {column}",
            row=row,
            column=column,
        )


def _mean(X: Array) -> Array:
    """Return the mean, taken about the first row so that a large offset costs no digits."""
    return np.asarray(X[0] + (X - X[0]).mean(axis=0))


def with_even_energies(subspace: Subspace) -> Subspace:
    """Return a subspace with energies of channels; itself where they are known."""
    s = subspace
    if s.channel_energies is not None:
        return s
    # What directions do not hold is spread evenly, as its noise is without energies of channels.
    held = np.square(s.basis, dtype=np.float64) @ s.sigma**2
    rest = max(s.energy - float(held.sum()), 0.0)
    return replace(s, channel_energies=held + rest / s.dim)
