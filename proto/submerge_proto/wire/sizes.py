"""Sizes of a subspace: what a receiver refuses, and how a sender stays within that.

An aggregator adds up its children's numbers, and its own parent checks the sum. Two bounds survive
merging in exact arithmetic: the mean square of a union of sets is at most the largest of theirs,
and energy is at least what sigma holds. Rounding can break both, and a sum of weights has no bound.
So a sender first brings its sum within bounds (`saturated`):

1. Too much weight: the whole summary is faded by one factor.
2. Means or squares too large: all readings are taken as smaller by one factor; weight stays.
3. Less energy than sigma holds, by the rounding of float32 columns: energy is what sigma holds.
4. Energies of channels that do not agree with energy or columns: as in `channel_energies`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeVar

import numpy as np

from submerge import Array, PeerError, Subspace
from submerge._linalg import Storage
from submerge.pca.whole_scatter import WholeScatter
from submerge_proto.v1 import summary_pb2 as pb

ROUNDING = 1e-5  # by how much what directions hold may exceed the energy, relative: float32 columns

NOISE = 1e-9
"""Of the energy of all channels: errors of columns that were computed in float32. A channel that is
constant has no energy, and its entries in a column are 1e-8, and not 0."""

AnySummary = TypeVar("AnySummary", Subspace, WholeScatter)

TINY = 1e-300  # squares near zero have large rounding errors


def held_by(rows: Storage, sigma: Array) -> Array:
    """Return what directions (k, dim) hold of the energy of channels, diag(U S^2 U'): (dim,)."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(sigma**2 @ np.square(rows, dtype=np.float64))


def agree(energies: Array, held: Array, energy: float, bound: float) -> bool:
    """Return whether energies of channels sum to `energy`, and cover what is held of each."""
    with np.errstate(over="ignore", invalid="ignore"):
        off = abs(float(energies.sum()) - energy)
        slack = min(bound, energy) + NOISE * energy + TINY
        covered = held <= energies * (1 + ROUNDING) + slack
    # NaN and infinity fail the comparisons.
    return bool(off <= ROUNDING * energy + len(energies) * TINY and covered.all())


def consistent(energies: Array | None, held: Array, energy: float, bound: float) -> Array | None:
    """Return energies of channels that `agree`; None if raising and scaling them does not help."""
    if energies is None or ((energies >= 0).all() and agree(energies, held, energy, bound)):
        return energies
    raised = np.maximum(energies, np.maximum(held - min(bound, energy), 0.0))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled = raised * (energy / raised.sum())
    for mended in (raised, scaled):
        if agree(mended, held, energy, bound):
            return mended
    return None


LARGEST = 3.4e38  # largest square that is a float32
LEAST = 2.0**-600  # least weight of a summary: with less, squares and quotients in merges underflow
WITHIN = 1 - 1e-9  # factor that takes a number from a bound to safely below it


def check_numbers(message: pb.Subspace, sigma: Array) -> None:
    """Refuse numbers that no subspace has, whatever its data."""
    numbers = message.weight, message.energy, message.spectral_bound
    if not all(map(math.isfinite, numbers)):
        raise PeerError("weight, energy and bound must be finite", kind="not_finite")
    values = sigma.tolist()  # so few that Python is faster
    if min(*numbers, *values) < 0:
        raise PeerError("weight, energy, bound and sigma must not be negative", kind="range")
    if values != sorted(values, reverse=True):
        raise PeerError("sigma must be descending", kind="unsorted")
    if not _has_energy(message.energy, _held(sigma)):
        raise PeerError("energy must not be less than what sigma holds", kind="energy")


def check_sizes(message: pb.Subspace, mean: Array) -> None:
    """Refuse numbers that overflow or underflow in sums, quotients and fading."""
    weight, most = message.weight, LARGEST**0.5
    if not LEAST <= weight < LARGEST:
        raise PeerError(f"weight must be {LEAST:.2g} to {LARGEST:g}, got {weight:g}", kind="range")
    if not np.vdot(mean, mean) < LARGEST and not np.abs(mean).max() < most:
        raise PeerError(f"means must be below {most:.2g}", kind="range")
    square = _square(message.energy, weight, mean)
    if not square <= LARGEST:
        raise PeerError(
            f"the mean square of readings must be at most {LARGEST:g}, got {square:g}", kind="range"
        )


def check_channels(energies: Array, held: Array, energy: float, bound: float) -> None:
    """Refuse energies of channels (dim,) that do not fit the energy, or what is held of each."""
    if (energies < 0).any():
        raise PeerError("energies of channels must not be negative", kind="range")
    if not agree(energies, held, energy, bound):
        raise PeerError(
            "energies of channels must sum to the energy, and not be less than what sigma holds",
            kind="energy",
        )


def saturated(subspace: Subspace) -> Subspace:
    """Return a subspace that passes all checks of a receiver, if it can be mended."""
    subspace = _with_energy(subspace)
    if within_sizes(subspace) is not subspace:
        # Factors round: an energy at the edge of what is forgiven would fall beyond it.
        energy = max(subspace.energy, _held(subspace.sigma))
        subspace = within_sizes(replace(subspace, energy=energy))
    # Of the columns as they travel. Last: a factor may have taken digits from tiny numbers.
    return _with_channels(subspace, np.asarray(subspace.basis.T, dtype=np.float32))


def saturated_on_disk(subspace: Subspace) -> Subspace:
    """Return a subspace that passes the checks that apply to one's own records, too."""
    subspace = _with_energy(subspace)
    return _with_channels(subspace, subspace.basis.T)


def _with_energy(subspace: Subspace) -> Subspace:
    """Return a subspace with no less energy than sigma holds."""
    held = _held(subspace.sigma)
    return subspace if _has_energy(subspace.energy, held) else replace(subspace, energy=held)


def _with_channels(subspace: Subspace, rows: Storage) -> Subspace:
    """Return a subspace whose channels' energies agree with columns, given as rows (k, dim)."""
    energies = subspace.channel_energies
    if energies is None:
        return subspace
    held = held_by(rows, subspace.sigma)
    agreed = consistent(energies, held, subspace.energy, subspace.spectral_bound)
    return subspace if agreed is energies else replace(subspace, channel_energies=agreed)


def within_sizes(summary: AnySummary) -> AnySummary:
    """Return a summary that passes `check_sizes`; itself if it does."""
    if not summary.weight < LARGEST:
        summary = summary.faded(WITHIN * LARGEST / summary.weight)
    factor = _factor_within(summary)
    if factor == 1:
        return summary
    # Smaller readings are squares that have faded, with the weight as it was.
    smaller = summary.faded(factor**2)
    return replace(smaller, mean=summary.mean * factor, weight=summary.weight)


def _factor_within(summary: Subspace | WholeScatter) -> float:
    """Return by what factor all readings are taken as smaller, so that they are within bounds."""
    largest = float(np.abs(summary.mean).max())
    square = _square(summary.energy, summary.weight, summary.mean)
    if largest < LARGEST**0.5 and square <= LARGEST:
        return 1.0
    factor = min(LARGEST**0.5 / max(largest, LARGEST**0.5), (LARGEST / square) ** 0.5, 1.0)
    return float(WITHIN * factor)


def _held(sigma: Array) -> float:
    return float(np.vdot(sigma, sigma))  # unlike @, it warns of no overflow


def _has_energy(energy: float, held: float) -> bool:
    """Return whether the whole energy covers what sigma holds."""
    return held * (1 - ROUNDING) <= energy + TINY


def _square(energy: float, weight: float, mean: Array) -> float:
    """Return the mean square of readings: of a union of sets, never above the largest of theirs."""
    if not weight:
        return 0.0
    return (energy / weight + float(mean @ mean)) / len(mean)
