"""Directions of the readings themselves, beside those of their features: a model scores with both.

A fault may leave the curved set that readings lie on and keep to the directions that they vary
along, or the other way round (`protocol.kernel_summary`). They merge as ranks do, about the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from submerge._linalg import Array
from submerge.jobs.arrays import Arrays
from submerge.jobs.kinds.kpca.dis_lr import (
    Coordinates,
    LeadingAxes,
    found_in_ranks,
    merged_ranks,
    ranks_up,
)

NAMES = {"factor": "readings", "sums": "readings_sums", "mean": "readings_mean"}
"""What travels: a factor, its sums and mean, under names of their own."""


def rank_of(k: int, width: int) -> int:
    """Return how many directions a model shows of the readings, as clients do without a setting."""
    return min(k, max(1, width // 2))


def readings_up(rows: Array, rank: int) -> dict[str, Array]:
    """Return a factor of rows (n, d), of twice the rank."""
    up = ranks_up(Coordinates(rows, 0.0), 2 * rank, center=True)
    return {NAMES[name]: array for name, array in up.items()}


def merged_readings(ups: Sequence[Arrays], rank: int) -> dict[str, Array]:
    """Return the factor of all rows behind several."""
    merged = merged_ranks([factor_of(up) for up in ups], 2 * rank)
    return {NAMES[name]: array for name, array in merged.items()}


def found_in_readings(up: Arrays, rank: int) -> LeadingAxes:
    """Return the leading directions of all rows."""
    return found_in_ranks(factor_of(up), rank)


def factor_of(up: Arrays) -> dict[str, Array]:
    """Return the factor of the readings, as `dis_lr` names it."""
    return {name: up[own] for name, own in NAMES.items()}


def without_readings(up: Arrays) -> Arrays:
    """Return what else has come up."""
    return {name: array for name, array in up.items() if name not in NAMES.values()}


def residuals_of(rows: Array, axes: Array, mean: Array) -> Array:
    """Return the squared distances of rows (n, d) from directions (d, r) through a mean: (n,)."""
    off = rows - mean
    if axes.shape[0] == axes.shape[1]:
        return np.zeros(len(rows))
    off -= (off @ axes) @ axes.T
    return np.asarray(np.einsum("ij,ij->i", off, off))


def answered_readings(found: LeadingAxes) -> Mapping[str, Array]:
    """Return the arrays of an answer."""
    return {
        "readings_axes": found.axes,
        "readings_mean": found.mean,
        "readings_eigenvalues": found.eigenvalues,
        "readings_energy": np.array([found.inside]),
    }
