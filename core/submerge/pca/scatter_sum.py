"""ScatterSum: what branches of a tree hold, laid out so that adding them up takes few calls.

All that is additive is one vector; one small product gives the distances between means:

    sum_i (scatter_i + w_i (mean_i - mean)(mean_i - mean)')
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter, upper

Center = Literal["fleet", "own"]

TOTALS = 3  # numbers behind triangle and energies: energy, spectral bound, weight


class ScatterSum:
    """The sum of parts, of one schema, about its mean (dim,).

    vector : Upper triangle of the scatter, row by row; energies of channels, NaN where a part has
        none; energy, spectral bound and weight.
    """

    __slots__ = ("dim", "mean", "vector", "weight")

    def __init__(self, vector: Array, mean: Array) -> None:
        self.dim, self.vector, self.mean = len(mean), vector, mean
        self.weight = float(vector[-1])

    def whole(self, schema: str) -> WholeScatter:
        """Return the sum as a summary of that schema."""
        size = len(self.vector) - self.dim - TOTALS
        scatter = self.vector[:size][_square(self.dim)]
        energies = self.vector[size:-TOTALS].copy()
        for array in (scatter, energies):
            array.flags.writeable = False
        energy, bound, weight = self.vector[-TOTALS:].tolist()
        known = None if np.isnan(energies[0]) else energies
        return WholeScatter(schema, scatter, self.mean, weight, energy, bound, known)


Part = Subspace | WholeScatter | ScatterSum


def summed(parts: Sequence[Part], *, center: Center) -> ScatterSum:
    """Return the sum of parts with weight: the same bytes for the same parts in order."""
    parts = [part for part in parts if part.weight > 0] or parts[:1]
    dim = parts[0].dim
    size = dim * (dim + 1) // 2
    total = np.zeros(size + dim + TOTALS)
    energy = bound = 0.0
    rows, energies = [], []
    for part in parts:
        if isinstance(part, ScatterSum):
            total += part.vector
            continue
        energy, bound = energy + part.energy, bound + part.spectral_bound
        energies.append(_unknown(dim) if part.channel_energies is None else part.channel_energies)
        if isinstance(part, WholeScatter):
            total[:size] += part.scatter.ravel()[upper(dim)]
        else:
            rows.append(part.basis.T * part.sigma[:, None])
    mean, weights = parts[0].mean, [part.weight for part in parts]
    if len(parts) > 1:
        mean, between = pooled_mean([part.mean for part in parts], weights)
        if center == "fleet":
            energies.append(np.einsum("ij,ij->j", between, between))
            energy += float(energies[-1].sum())
            rows.append(between)
    if energies:
        total[size:-TOTALS] += np.add.reduce(energies)
    if rows:
        stack = np.concatenate(rows)
        total[:size] += (stack.T @ stack).ravel()[upper(dim)]
    total[-TOTALS] += energy
    total[-2] += bound
    total[-1] = sum(weights)
    return ScatterSum(total, mean)


def pooled_mean(means: Sequence[Array], weights: Sequence[float]) -> tuple[Array, Array]:
    """Return the mean (dim,) of parts with weight, and sqrt(w_i) (mean_i - mean), (n, dim)."""
    # About the first mean, so that an offset common to all costs no digits.
    between = np.array(means)
    between -= means[0]
    shift = np.array(weights) @ between / sum(weights)
    between -= shift
    between *= np.sqrt(weights)[:, None]
    mean = np.asarray(means[0] + shift)
    mean.flags.writeable = False
    return mean, between


@lru_cache(maxsize=4)
def _unknown(dim: int) -> Array:
    """Return the energies of a child that does not know them: whatever is added, all stay NaN."""
    return np.full(dim, np.nan)


@lru_cache(maxsize=4)
def _square(dim: int) -> npt.NDArray[np.intp]:
    """Return the place in a packed triangle of each entry of a symmetric (dim, dim) matrix."""
    places = np.zeros((dim, dim), dtype=np.intp)
    places.ravel()[upper(dim)] = np.arange(dim * (dim + 1) // 2)
    return np.maximum(places, places.T)
