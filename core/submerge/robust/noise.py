"""Noise: which directions of a summary stand out from it, by what its fellows have.

One summary cannot say what is noise in it, or may lie. Many of one kind can: beyond the
directions that a model shows, the usual one has noise, and few rows know a direction only as
well as there is more energy in it than in the noise of some samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.pca.subspace import Subspace

EDGE, SAMPLES = 2.0, 16.0
"""A direction stands out if it has so many times the energy that the first one beyond the rank
usually has, and beside it that of so many samples' noise: it is then some 14 degrees off."""

ROUNDING = 1e-9
"""Of the energy: what is below may be rounding."""

TINY, HUGE = 1e-300, 1e300
"""What is divided by in place of 0, and what a liar's energy may be at most."""


class TypicalNoise(NamedTuple):
    """What is usual, per unit of weight but for the first.

    weight, energy : a summary's
    edge : along the first direction beyond the rank; infinite where nobody can say
    rest : along all directions beyond those that are seen
    """

    weight: float
    energy: float
    edge: float
    rest: float


def typical_noise(parts: Sequence[Subspace], rank: int, unit: float) -> TypicalNoise:
    """Return what is usual among parts, each of which counts once.

    rank : directions that are shown
    unit : what one sample weighs
    """
    weight = median([part.weight for part in parts])
    energy = median([each for each in map(energy_of, parts) if each > 0])
    reported = [part for part in parts if part.weight >= 2 * (rank + 1) * unit]
    if 2 * len(reported) <= len(parts):
        return TypicalNoise(weight, energy, np.inf, np.inf)
    edge = median([_edge(part, rank) / part.weight for part in reported])
    seen = rank
    while True:
        # The directions that are seen, and the mean, take this much of the rows' freedom.
        taken = (seen + 1) * unit
        rest = median([_rest(part, seen) / (part.weight - taken) for part in reported])
        usual = TypicalNoise(weight, energy, edge, rest)
        clear = median([float(np.sum(clearness(part, usual, unit) > 1)) for part in reported])
        if clear >= seen:
            return usual
        # Where rows are few, the weaker directions are noise as well: look again.
        seen = int(clear)


def clearness(part: Subspace, usual: TypicalNoise, unit: float) -> Array:
    """Return how far each direction of a part stands out, (k,): above 1 it does."""
    # Where all is larger, noise may be as well.
    louder = max(1.0, energy_of(part) / usual.energy) if usual.energy > 0 else 1.0
    louder = min(louder, HUGE)
    # Nor does it see more than the usual one: what they cannot see, they cannot share.
    samples = unit / min(part.weight, usual.weight)
    noise = louder * (EDGE * usual.edge + SAMPLES * usual.rest * samples)
    noise = max(noise + ROUNDING * energy_of(part), TINY)
    # Infinite over infinite: it is not known.
    return np.nan_to_num(part.sigma**2 / part.weight / noise)


def energy_of(part: Subspace) -> float:
    """Return a part's energy per unit of weight."""
    return min(part.energy / part.weight, HUGE)


def median(values: Sequence[float]) -> float:
    """Return the median; 0 of nothing."""
    return float(np.median(values)) if len(values) else 0.0


def _rest(part: Subspace, rank: int) -> float:
    """Energy beyond the first directions."""
    return max(0.0, part.energy - float(np.sum(part.sigma[:rank] ** 2)))


def _edge(part: Subspace, rank: int) -> float:
    """Energy along the first direction beyond the rank, or a bound on it."""
    if part.rank > rank:
        return float(part.sigma[rank] ** 2)
    return min(part.spectral_bound, _rest(part, rank))
