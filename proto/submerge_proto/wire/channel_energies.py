"""Energies of single channels beside the energy of all: what a receiver refuses, what is sent.

Energies are sums of squares in float64, exact to rounding. Directions are not: their columns travel
as float32 or int8, and a sum may have been faded or cut (`sizes`). So what directions hold of a
channel may exceed the channel's energy, by no more than

    ROUNDING * its energy + spectral_bound + NOISE * the energy of all channels

The bound has what int8 columns changed: a diagonal entry changes by at most the spectral norm. Both
sides ask `agree`; a sender whose numbers do not agree mends them first (`consistent`).
"""

from __future__ import annotations

import numpy as np

from submerge import Array
from submerge._linalg import Storage

ROUNDING = 1e-5
"""By how much what directions hold may exceed the energy, relative: float32 columns."""

NOISE = 1e-9
"""Of the energy of all channels: errors of columns that were computed in float32. A channel that is
constant has no energy, and its entries in a column are 1e-8, and not 0."""

TINY = 1e-300
"""Squares near zero have large rounding errors."""


def held_by(rows: Storage, sigma: Array) -> Array:
    """Return what directions hold of the energy of each channel, diag(U S^2 U'): (dim,).

    rows : (k, dim), the columns of U
    """
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(sigma**2 @ np.square(rows, dtype=np.float64))


def agree(energies: Array, held: Array, energy: float, bound: float) -> bool:
    """Return whether energies of channels sum to `energy`, and cover what is held of each.

    energies, held : (dim,)
    energy, bound : of all channels; `spectral_bound`
    """
    with np.errstate(over="ignore", invalid="ignore"):
        off = abs(float(energies.sum()) - energy)
        slack = min(bound, energy) + NOISE * energy + TINY
        covered = held <= energies * (1 + ROUNDING) + slack
    # NaN and infinity fail the comparisons.
    return bool(off <= ROUNDING * energy + len(energies) * TINY and covered.all())


def consistent(energies: Array | None, held: Array, energy: float, bound: float) -> Array | None:
    """Return energies of channels that `agree`: the same array if they do.

    Otherwise each is raised to what is held of it, and all are scaled by one factor where their
    sum is not the energy. None if that does not help: the summary then has no such energies, as
    one of an earlier version.
    """
    if energies is None or ((energies >= 0).all() and agree(energies, held, energy, bound)):
        return energies
    raised = np.maximum(energies, np.maximum(held - min(bound, energy), 0.0))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled = raised * (energy / raised.sum())
    for mended in (raised, scaled):
        if agree(mended, held, energy, bound):
            return mended
    return None
