"""WholeScatter: the summary of a narrow group, whose scatter takes no more than its directions.

With d dimensions and k directions, a packed scatter has d (d + 1) / 2 numbers, and directions have
d k. Where the first are at most twice the second, all of the scatter is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from submerge._linalg import EPS, Array
from submerge.pca.subspace import Subspace, oriented


def is_narrow(dim: int, k: int) -> bool:
    """Return whether a group of `dim` dimensions reports all of its scatter."""
    return dim + 1 <= 4 * k


@dataclass(frozen=True, eq=False)
class WholeScatter:
    """The scatter of data that are no longer kept.

    Attributes
    ----------
    schema : str
        The schema's fingerprint.
    scatter : (dim, dim)
        About the mean; positive semi-definite.
    mean : (dim,)
    weight : float
        Effective number of samples.
    energy : float
        Total squared distance to the mean: the trace, and what rounding has taken from it.
    spectral_bound : float
        Most that may be missing from any eigenvalue of the scatter.
    channel_energies : (dim,), optional
        As in `Subspace`.
    """

    schema: str
    scatter: Array
    mean: Array
    weight: float
    energy: float
    spectral_bound: float
    channel_energies: Array | None = None

    @property
    def dim(self) -> int:
        """Length of the vectors."""
        return len(self.mean)

    @cached_property
    def parts(self) -> tuple[Subspace, ...]:
        """All directions, found when they are asked for."""
        return (self.directions(self.dim),)

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
        energies = self.channel_energies
        return replace(
            self,
            scatter=self.scatter * factor,
            weight=self.weight * factor,
            energy=self.energy * factor,
            spectral_bound=self.spectral_bound * factor,
            channel_energies=None if energies is None else energies * factor,
        )
