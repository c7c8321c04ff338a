"""TypicalNoise: the noise level of similar summaries, and which directions stand out from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.pca.subspace import Subspace

EDGE, SAMPLES = 2.0, 16.0
"""A direction stands out if its energy exceeds `EDGE` times that of the first direction beyond the
rank (typically), plus the noise of `SAMPLES` samples: its error is then some 14 degrees."""

ROUNDING = 1e-9
"""Share of the energy that may be rounding."""

TINY, HUGE = 1e-300, 1e300
"""Least divisor, and the value that forged energies are clipped to."""


class TypicalNoise(NamedTuple):
    """Medians per weight; `edge` is along the first direction beyond the rank, or infinite."""

    weight: float
    energy: float
    edge: float
    rest: float


def typical_noise(parts: Sequence[Subspace], rank: int, unit: float) -> TypicalNoise:
    """Return the medians over parts at a rank, each of which counts once; `unit`: of a sample."""
    weight = median([part.weight for part in parts])
    energy = median([each for each in map(energy_of, parts) if each > 0])
    heavy = [part for part in parts if part.weight >= 2 * (rank + 1) * unit]
    if 2 * len(heavy) <= len(parts):
        return TypicalNoise(weight, energy, np.inf, np.inf)
    edge = median([_edge(part, rank) / part.weight for part in heavy])
    seen = rank
    while True:
        # These directions and the mean use up so many degrees of freedom.
        taken = (seen + 1) * unit
        rest = median([_rest(part, seen) / (part.weight - taken) for part in heavy])
        typical = TypicalNoise(weight, energy, edge, rest)
        clear = median([float(np.sum(clearness(part, typical, unit) > 1)) for part in heavy])
        if clear >= seen:
            return typical
        # Where rows are few, the weaker directions are noise as well, so the loop repeats.
        seen = int(clear)


def clearness(part: Subspace, typical: TypicalNoise, unit: float) -> Array:
    """Return each direction's energy over that of noise, (k,): above 1 it stands out."""
    # A part with more energy in all may have more noise too.
    louder = max(1.0, energy_of(part) / typical.energy) if typical.energy > 0 else 1.0
    louder = min(louder, HUGE)
    # A direction that typical parts have too few samples to show cannot be shared.
    samples = unit / min(part.weight, typical.weight)
    noise = louder * (EDGE * typical.edge + SAMPLES * typical.rest * samples)
    noise = max(noise + ROUNDING * energy_of(part), TINY)
    # Infinite over infinite is unknown, and counts as 0.
    return np.nan_to_num(part.sigma**2 / part.weight / noise)


def energy_of(part: Subspace) -> float:
    """Return a part's energy per unit of weight."""
    return min(part.energy / part.weight, HUGE)


def median(values: Sequence[float]) -> float:
    """Return the median; 0 of nothing."""
    return float(np.median(values)) if len(values) else 0.0


def _rest(part: Subspace, rank: int) -> float:
    return max(0.0, part.energy - float(np.sum(part.sigma[:rank] ** 2)))


def _edge(part: Subspace, rank: int) -> float:
    """Return the energy along the first direction beyond the rank, or a bound on it."""
    if part.rank > rank:
        return float(part.sigma[rank] ** 2)
    return min(part.spectral_bound, _rest(part, rank))
