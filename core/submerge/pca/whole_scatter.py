"""WholeScatter: the summary of a narrow group, whose scatter takes no more than its directions.

What the triangle's rounding on its way changes is added to `spectral_bound` (docs/mathematics.md,
"State"): with C the exact scatter and S the one held, |lambda_i(C) - lambda_i(S)| is at most that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from submerge._linalg import EPS, Array, Storage
from submerge.pca.subspace import Subspace, check_factor, oriented

FAINT = 1e-290  # an energy below it is zero to the triangle: quotients by it would have few digits


def is_narrow(dim: int, k: int) -> bool:
    """Return whether a group of `dim` dimensions reports all of its scatter."""
    return dim + 1 <= 4 * k


@dataclass(frozen=True, eq=False)
class WholeScatter:
    """The scatter of data that are no longer kept; its other fields are as in `Subspace`."""

    schema: str
    # (dim, dim) in float64, or the triangle (dim (dim + 1) / 2,) as it travels, in float32: a
    # thousand children take a quarter of the memory. Read `scatter` or `factor`.
    held: Storage
    mean: Array
    weight: float
    energy: float
    spectral_bound: float
    channel_energies: Array | None = None

    @classmethod
    def of(cls, subspace: Subspace) -> WholeScatter:
        """Return the scatter that a subspace's directions have."""
        s = subspace
        scatter = scatter_of(s)
        scatter.flags.writeable = False
        rest = s.mean, s.weight, s.energy, s.spectral_bound, s.channel_energies
        return cls(s.schema, scatter, *rest)

    @classmethod
    def of_rows(
        cls, rows: Array, schema: str, weights: Array | None = None, *, center: bool = True
    ) -> WholeScatter:
        """Return the scatter of rows (n, dim), at least one, about their mean, or about zero."""
        weights = np.ones(len(rows)) if weights is None else weights
        n = float(weights.sum())
        mean = np.zeros(rows.shape[1])
        if center:
            mean = rows[0] + weights @ (rows - rows[0]) / n
        centered = rows - mean
        if (weights != 1).any():
            centered *= np.sqrt(weights)[:, None]
        scatter = centered.T @ centered
        energies = np.diag(scatter).copy()
        for array in (scatter, energies):
            array.flags.writeable = False
        return cls(schema, scatter, mean, n, float(energies.sum()), 0.0, energies)

    @property
    def dim(self) -> int:
        """Length of the vectors."""
        return len(self.mean)

    @property
    def scatter(self) -> Array:
        """The scatter about the mean, (dim, dim); computed at each call where it is packed."""
        if self.held.ndim == 2:
            return np.asarray(self.held)
        R = self.factor
        return np.asarray(R.T @ R)

    @property
    def factor(self) -> Array:
        """An upper triangle R (dim, dim) with R'R = scatter."""
        if self.held.ndim == 1:
            return np.asarray(_unpacked(self.held, self.dim) * self.energy**0.5)
        return _factor(self.held)

    @cached_property
    def parts(self) -> tuple[Subspace, ...]:
        """All directions, found when they are asked for."""
        return (self.directions(self.dim),)

    @property
    def pieces(self) -> tuple[WholeScatter, ...]:
        """As `parts`, as they are held: nothing is decomposed."""
        return (self,)

    def directions(self, k: int) -> Subspace:
        """Return the leading `k` directions; the rest is added to the bound."""
        lam, vectors = np.linalg.eigh(self.scatter)
        lam, vectors = lam[::-1], vectors[:, ::-1]
        kept = min(k, int(np.count_nonzero(lam > self.dim * EPS * lam[0])))
        dropped = max(0.0, float(lam[kept])) if kept < self.dim else 0.0
        return oriented(
            np.ascontiguousarray(vectors[:, :kept].T),
            np.sqrt(lam[:kept]),
            schema=self.schema,
            mean=self.mean,
            weight=self.weight,
            energy=self.energy,
            spectral_bound=self.spectral_bound + dropped,
            channel_energies=self.channel_energies,
        )

    def faded(self, factor: float) -> WholeScatter:
        """Return this scatter with all its data counted `factor` times."""
        check_factor(factor, self.weight, self.energy)
        energies = self.channel_energies
        return replace(
            self,
            # A triangle is of the scatter over its energy, which fading leaves as it is.
            held=self.held * factor if self.held.ndim == 2 else self.held,
            weight=self.weight * factor,
            energy=self.energy * factor,
            spectral_bound=self.spectral_bound * factor,
            channel_energies=None if energies is None else energies * factor,
        )

    def scaled(self, offset: Array, scale: Array) -> WholeScatter:
        """Return the scatter of rows (x - offset) / scale, exact by each channel's own size."""
        # One after the other: the product of two scales may overflow.
        scatter = self.scatter / scale / scale[:, None]
        energies = self.channel_energies
        energies = np.diag(scatter).copy() if energies is None else energies / scale / scale
        return replace(
            self,
            held=scatter,
            mean=(self.mean - offset) / scale,
            energy=float(energies.sum()),
            spectral_bound=self.spectral_bound / float(scale.min()) ** 2,
            channel_energies=energies,
        )

    def rounded(self) -> WholeScatter:
        """Return this scatter as it will arrive: as a float32 triangle."""
        if self.held.ndim == 1:
            return self
        packed, bound = triangle(self)
        return replace(self, held=packed, spectral_bound=self.spectral_bound + bound)


def scatter_of(subspace: Subspace) -> Array:
    """Return U diag(sigma^2) U', (dim, dim), in float64."""
    rows = subspace.basis.T * subspace.sigma[:, None]
    return np.asarray(rows.T @ rows)


def triangle(whole: WholeScatter) -> tuple[Storage, float]:
    """Return the packed triangle of a scatter, float32, and what its rounding may change."""
    dim, energy = whole.dim, whole.energy
    # R, row by row, has a diagonal that is not negative and entries of at most 1. The bound is
    # ||scatter - energy R'R||_2 or a little more; a scatter that came as a triangle is returned.
    if whole.held.ndim == 1:
        return whole.held, 0.0
    if not energy > FAINT:
        packed = np.zeros(dim * (dim + 1) // 2, np.float32)
        packed.flags.writeable = False
        return packed, max(0.0, energy)
    unit = whole.held / energy
    packed = _factor(unit).ravel()[upper(dim)].astype(np.float32)
    packed.flags.writeable = False
    R = _unpacked(packed, dim)
    # The product itself is rounded: by dim EPS of the trace, which is 1.
    off = float(np.abs(np.linalg.eigvalsh(unit - R.T @ R)).max()) + 2 * dim * EPS
    return packed, off * energy


def _factor(scatter: Array) -> Array:
    """Return R with R'R = scatter, whose negative eigenvalues are rounding and count as 0."""
    try:
        return np.asarray(np.linalg.cholesky(scatter).T)
    except np.linalg.LinAlgError:
        # Singular, to rounding: near-copies of channels, or fewer rows than channels. Channels are
        # brought to one size, or in units of their own small ones would be lost in large ones.
        size = np.sqrt(np.maximum(np.diag(scatter), 0.0))
        unit = np.where(size == 0, 1.0, size)
        lam, vectors = np.linalg.eigh(scatter / unit / unit[:, None])
    R = np.linalg.qr(np.sqrt(np.maximum(lam, 0.0))[:, None] * vectors.T, mode="r")
    return np.asarray(R * np.where(np.diag(R) < 0, -1.0, 1.0)[:, None] * size)


def _unpacked(packed: Storage, dim: int) -> Array:
    """Return the upper triangle (dim, dim) in float64."""
    R = np.zeros((dim, dim))
    R.ravel()[upper(dim)] = packed
    return R


@lru_cache(maxsize=4)
def upper(dim: int) -> npt.NDArray[np.intp]:
    """Return the places of the upper triangle in a flat (dim, dim) array, row by row."""
    return np.flatnonzero(np.triu(np.ones((dim, dim), dtype=bool)))
