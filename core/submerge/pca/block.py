"""Blend: how one block of rows joins the past; centering costs no column (docs/decisions/0001).

With forgetting factor f, row j of n weighs f^(n-1-j) and the block fades the past by f^n, so the
result does not depend on how the stream was cut into blocks. With rows c_j from the running mean,
their weighted mean `drift` and their mass W, the block adds to the energy of channel l

    sum_j w_j c_jl^2 - pull (2 - pull) W drift_l^2
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from submerge._linalg import CANCELLED, WIDTH, Array, Directions, Mix, Storage, slices
from submerge.pca.subspace import Subspace


class Ages(NamedTuple):
    """Weights of n rows by age; roots, shares of their sum, and unit, of length 1; (n,) each."""

    weights: Array
    roots: Array
    shares: Array
    unit: Array
    mass: float

    @classmethod
    @lru_cache(maxsize=4)
    def of(cls, n: int, forgetting_factor: float) -> Ages:
        """Weigh `n` rows. The result is cached, since whole blocks repeat it."""
        weights = forgetting_factor ** np.arange(n - 1, -1, -1, dtype=np.float64)
        roots, mass = np.sqrt(weights), float(weights.sum())
        return cls(weights, roots, weights / mass, roots / mass**0.5, mass)


class Blend(NamedTuple):
    """Weights of a block and of the past before it."""

    past: float  # multiplies the past's weight, energy and squared sigma
    ages: Ages
    mass: float
    pull: float  # 0 without centering
    follow: float  # W / (w + W), by which the running mean moves toward the drift
    weight: float  # w, faded

    @classmethod
    def of(cls, n: int, weight: float, *, forgetting_factor: float, center: bool) -> Blend:
        """Blend `n` rows into a past of that weight."""
        ages = Ages.of(n, forgetting_factor)
        past, mass = forgetting_factor**n, ages.mass
        if not center:
            return cls(past, ages, mass, 0.0, 0.0, past * weight)
        share = past * weight / (past * weight + mass)
        return cls(past, ages, mass, 1.0 - share**0.5, 1.0 - share, past * weight)


class Digest(NamedTuple):
    """A memory's past and a block: its drift from the mean and the energies it adds, (dim,)."""

    found: Directions
    drift: Array
    energies: Array


def channel_energies(rows: Storage, blend: Blend, drift: Array) -> Array:
    """Return what rows (n, dim) add to each channel's energy, (dim,), with a slice's memory."""
    weights, roots, _, unit, mass = blend.ages
    if blend.past == 1.0:
        squares = np.einsum("ij,ij->j", rows, rows, dtype=np.float64)
    else:
        squares = np.concatenate([weights @ (part * part) for part in slices(rows)])
    taken = (blend.pull * (2 - blend.pull) * mass) * drift**2
    energies = np.asarray(squares - taken)
    # Where a mean jumps, little is left of a difference: those rows move before they are squared.
    cancelled = np.flatnonzero(taken > CANCELLED * energies)
    for start in range(0, len(cancelled), WIDTH):
        some = cancelled[start : start + WIDTH]
        moved = Mix(roots, unit, blend.pull).of_rows(np.asarray(rows[:, some], dtype=np.float64))
        energies[some] = np.einsum("ij,ij->j", moved, moved)
    return energies


class Totals(NamedTuple):
    """Mean (dim,), weight and energies (dim,), exact at any rank; the bound on what was dropped."""

    mean: Array
    weight: float
    energy: float
    dropped: float
    energies: Array | None

    @classmethod
    def of(cls, past: Subspace) -> Totals:
        """Return what a subspace holds beside its directions."""
        energies = past.channel_energies
        return cls(past.mean.copy(), past.weight, past.energy, past.spectral_bound, energies)

    def faded(self, factor: float) -> Totals:
        """Return the totals with all rows counted `factor` times."""
        mean, weight, energy, dropped, energies = self
        energies = None if energies is None else energies * factor
        return Totals(mean, weight * factor, energy * factor, dropped * factor, energies)

    def after(self, blend: Blend, digest: Digest) -> Totals:
        """Return the totals with the block counted in."""
        energies = self.energies
        if energies is not None:
            energies = blend.past * energies
            energies += digest.energies
        return Totals(
            self.mean + blend.follow * digest.drift,
            blend.past * self.weight + blend.mass,
            blend.past * self.energy + float(digest.energies.sum()),
            blend.past * self.dropped + digest.found.dropped,
            energies,
        )
