"""Sizes of a subspace: what a receiver refuses, and how a sender stays within that.

A child's numbers pass `check_numbers` and `check_sizes`. An aggregator adds them up, and its own
parent checks the sum. Two bounds survive merging in exact arithmetic: the mean square of a union
of sets is at most the largest of theirs, and energy is at least what sigma holds. Rounding can
break both, and a sum of weights has no bound. So a sender first brings its sum within bounds
(`saturated`):

1. Too much weight: the whole summary is faded by one factor, so that weight, sigma, energy and
   spectral bound stay consistent, and means do not move.
2. Means or squares too large: all readings are taken as smaller by one factor; weight stays.
3. Less energy than sigma holds, by the rounding of float32 columns: energy is what sigma holds.

A summary within bounds is returned as it is: nothing that a receiver accepts is changed.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from submerge import Array, PeerError, Subspace
from submerge_proto.v1 import summary_pb2 as pb

LARGEST = 3.4e38
"""Largest square that is a float32."""

LEAST = 2.0**-600
"""Least weight of a summary: with less, squares and quotients in a merge underflow."""

ROUNDING = 1e-5
"""By how much the energy that sigma holds may exceed the whole, relative: float32 columns."""

WITHIN = 1 - 1e-9
"""Factor that takes a number from a bound to safely below it."""


def check_numbers(message: pb.Subspace, sigma: Array) -> None:
    """Refuse numbers that no subspace has, whatever its data."""
    numbers = message.weight, message.energy, message.spectral_bound
    if not all(map(math.isfinite, numbers)):
        raise PeerError("weight, energy and bound must be finite", kind="not_finite")
    if min(numbers) < 0 or (sigma < 0).any():
        raise PeerError("weight, energy, bound and sigma must not be negative", kind="range")
    if not (sigma[1:] <= sigma[:-1]).all():
        raise PeerError("sigma must be descending", kind="unsorted")
    if not _has_energy(message.energy, _held(sigma)):
        raise PeerError("energy must not be less than what sigma holds", kind="energy")


def check_sizes(message: pb.Subspace, mean: Array) -> None:
    """Refuse numbers that overflow or underflow in sums, quotients and fading."""
    weight, most = message.weight, LARGEST**0.5
    if not LEAST <= weight < LARGEST:
        raise PeerError(f"weight must be {LEAST:.2g} to {LARGEST:g}, got {weight:g}", kind="range")
    if not np.abs(mean).max() < most:
        raise PeerError(f"means must be below {most:.2g}", kind="range")
    square = _square(message.energy, weight, mean)
    if not square <= LARGEST:
        raise PeerError(
            f"the mean square of readings must be at most {LARGEST:g}, got {square:g}", kind="range"
        )


def saturated(subspace: Subspace) -> Subspace:
    """Return a subspace that passes `check_numbers` and `check_sizes`; itself if it does.

    One that has faded below `LEAST`, or holds what is not finite, is not mended.
    """
    subspace = saturated_on_disk(subspace)
    if not subspace.weight < LARGEST:
        subspace = subspace.faded(WITHIN * LARGEST / subspace.weight)
    largest = float(np.abs(subspace.mean).max())
    square = _square(subspace.energy, subspace.weight, subspace.mean)
    if largest < LARGEST**0.5 and square <= LARGEST:
        return subspace
    factor = WITHIN * min(LARGEST**0.5 / max(largest, LARGEST**0.5), (LARGEST / square) ** 0.5, 1.0)
    return replace(
        subspace,
        mean=subspace.mean * factor,
        sigma=subspace.sigma * factor,
        energy=subspace.energy * factor**2,
        spectral_bound=subspace.spectral_bound * factor**2,
    )


def saturated_on_disk(subspace: Subspace) -> Subspace:
    """Return a subspace that passes `check_numbers`, which alone applies to one's own records."""
    held = _held(subspace.sigma)
    return subspace if _has_energy(subspace.energy, held) else replace(subspace, energy=held)


def _held(sigma: Array) -> float:
    with np.errstate(over="ignore"):
        return float(sigma @ sigma)


def _has_energy(energy: float, held: float) -> bool:
    """Return whether the whole energy covers what sigma holds."""
    # Squares near zero have large rounding errors.
    return held * (1 - ROUNDING) <= energy + 1e-300


def _square(energy: float, weight: float, mean: Array) -> float:
    """Return the mean square of readings: of a union of sets, never above the largest of theirs."""
    if not weight:
        return 0.0
    return (energy / weight + float(mean @ mean)) / len(mean)
