"""screen(): which children to leave out of a merge, and how much the others may count.

A merge trusts every child: one with sigma a million times too large turns the model by 90
degrees. So the children of a group are compared with each other. The result is a pure function
of them all, so nothing has to be undone: a child that resembles the others again is merged again.

1. A child counts once in every median, whatever weight it claims.
2. A direction counts as far as it stands out from noise (`noise`). Directions within noise are
   not compared: those of young children, and all where there is no gap.
3. A child is an outlier by what it has and the others have not, never by what it lacks: a pump
   that stands still is no outlier.
4. At most half are left out. The others are many and alike: a fleet of two kinds is two groups.

It stops gross forgeries, not subtle ones: docs/mathematics.md describes what remains possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.pca.subspace import Subspace, check_rank
from submerge.robust.geometric_median import Middle, Projector, of_points, of_projectors
from submerge.robust.loudness import loudness
from submerge.robust.noise import (
    EDGE,
    ROUNDING,
    TINY,
    TypicalNoise,
    clearness,
    energy_of,
    median,
    typical_noise,
)

LEAST = 3
"""Fewest children that can be compared: among fewer it is unclear which is the outlier."""

WEIGHT, ENERGY = 3.0, 3.0
"""Most weight, and energy per sample, that a child counts for, in units of the median."""

TURN = 15.0
"""Degrees from the others that are always allowed: machines are not all alike."""

OFFSET = 4.0
"""Distance of means, in units of what noise and variation explain, that is always allowed."""

SPREAD, FEW = 8.0, 8
"""Median deviations from the median that are allowed beyond that: 5.4 standard deviations of a
Gaussian. Among `FEW` children, whose median deviation may be small by chance, twice as many."""

SHARED = 1 / 2
"""Share of a direction in the median from which it counts as shared in full: children too young to
be certain of it do not count against it."""


class Outlier(NamedTuple):
    """How far a child is from the others; 0 where that is within limits.

    angle : degrees between the direction that it alone has and the shared ones
    offset : distance of its mean from theirs, in units of what noise and variation explain
    """

    angle: float
    offset: float

    @property
    def words(self) -> str:
        """The outlier in a few words, for people."""
        turned = [f"{self.angle:.0f} deg"] if self.angle else []
        shifted = [f"its mean, {self.offset:.0f} times noise"] if self.offset else []
        return ", ".join(turned + shifted)


@dataclass(frozen=True, slots=True)
class Screening:
    """Result of comparing children.

    Attributes
    ----------
    outliers : dict of str to Outlier
        Children to leave out.
    factors : dict of str to float
        Factors, below 1, to fade others by that claim too much weight or energy.
    """

    outliers: Mapping[str, Outlier]
    factors: Mapping[str, float]


NO_OUTLIERS = Screening({}, {})


def screen(
    parts: Mapping[str, Subspace], *, rank: int, unit: float = 1.0, means: bool = True
) -> Screening:
    """Compare children with each other.

    Parameters
    ----------
    parts : mapping of str to Subspace
        By the children's names. Their order does not matter, to the last bit.
    rank : int
        Number of directions that are shown, r: those beyond count as noise.
    unit : float
        Weight of one sample, in parts that have faded.
    means : bool
        Compare means too, because they become part of the merge.

    Returns
    -------
    Screening
        Scaling all readings, or all weights and `unit`, does not change it.

    Notes
    -----
    O(n k dim q) for n parts, k directions, and q of some 4 r: n = 1000, dim = 512 and r = 10
    take about half a second, once after a change.
    """
    check_rank(rank)
    names = sorted(name for name, part in parts.items() if part.weight > 0)
    if len(names) < LEAST:
        return NO_OUTLIERS
    chosen = [parts[name] for name in names]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        typical = typical_noise(chosen, rank, unit)
        angles, middle = _angles(chosen, typical, unit)
        most = _limit(angles[angles >= 0], TURN)
        angles[angles <= most] = 0.0
        offsets = np.zeros(len(names))
        if means:
            # Where children do not agree on directions, no shift is along a wrong one.
            offsets = _offsets(chosen, typical, unit, middle if most < 90 else None)
            offsets[offsets <= _limit(offsets, OFFSET)] = 0.0
        left = [Outlier(float(a), float(o)) for a, o in zip(angles, offsets, strict=True)]
        outliers = {name: each for name, each in zip(names, left, strict=True) if any(each)}
        if 2 * len(outliers) > len(names):
            outliers = {}  # different minorities are off: it is unclear which children are honest
        kept = [name for name in names if name not in outliers]
        factors = _factors([parts[name] for name in kept], middle, typical, means=means)
    capped = zip(kept, map(float, factors), strict=True)
    return Screening(outliers, {name: factor for name, factor in capped if factor < 1})


def both(one: Screening, other: Screening, *, of: int) -> Screening:
    """Return the screening of `of` children by two memories: an outlier in one is one in both."""
    outliers = dict(one.outliers)
    if 2 * len(outliers.keys() | other.outliers.keys()) <= of:
        outliers = dict(other.outliers) | outliers
    names = sorted(one.factors.keys() | other.factors.keys())
    least = {name: min(each.factors.get(name, 1.0) for each in (one, other)) for name in names}
    return Screening(outliers, {name: least[name] for name in names if name not in outliers})


def _angles(
    parts: Sequence[Subspace], typical: TypicalNoise, unit: float
) -> tuple[Array, Middle | None]:
    """Return degrees between each part and the median of all (-1: unknown), and what is shared.

    The angle is that of the part's direction that is shared least: the largest principal angle,
    if all directions were certain.
    """
    angles = np.full(len(parts), -1.0)
    clear = [clearness(part, typical, unit) for part in parts]
    votes = [np.clip(each - 0.5, 0.0, 1.0) for each in clear]
    voters = [i for i, vote in enumerate(votes) if vote.any()]
    if len(voters) < LEAST:
        return angles, None
    chosen = [Projector(parts[i].basis[:, votes[i] > 0], votes[i][votes[i] > 0]) for i in voters]
    shared = _shared(of_projectors(chosen))
    for i in voters:
        # For a direction that is barely clear, other parts may not have voted.
        held = np.clip((clear[i] - 1) / 2, 0.0, 1.0)
        basis, held = parts[i].basis[:, held > 0], held[held > 0]
        alone = np.sqrt(np.multiply.outer(held, held)) * (np.eye(len(held)) - shared.within(basis))
        sine2 = float(np.linalg.eigvalsh(alone)[-1]) if len(held) else 0.0
        angles[i] = np.degrees(np.arcsin(np.sqrt(min(max(sine2, 0.0), 1.0))))
    return angles, shared


def _shared(middle: Middle) -> Middle:
    """Return the projector nearest to a geometric median."""
    values, vectors = np.linalg.eigh(middle.matrix)
    clipped = np.clip(values / SHARED, 0.0, 1.0)
    return Middle(middle.span, (vectors * clipped) @ vectors.T)


def _offsets(
    parts: Sequence[Subspace], typical: TypicalNoise, unit: float, middle: Middle | None
) -> Array:
    """Return each mean's distance from their geometric median, in units of typical deviations.

    The unit is a sample's energy along shared directions, and noise beyond them, where a shift
    makes a direction of its own.
    """
    points = np.stack([part.mean for part in parts])
    center = of_points(points)
    offs = points - center
    squares = np.einsum("ij,ij->i", offs, offs)
    # An old part's mean is more exact, which must not make it more of an outlier.
    weights = np.minimum([part.weight for part in parts], typical.weight)
    inside = squares
    if middle is not None:
        seen = offs @ middle.span
        inside = np.minimum(np.einsum("ij,jk,ik->i", seen, middle.matrix, seen), squares)
    rounding = ROUNDING * typical.energy + (ROUNDING * float(np.linalg.norm(center))) ** 2 + TINY
    # A mean of few rows is off by chance: by noise, and along directions turned by up to TURN.
    chance = typical.rest + typical.energy * np.sin(np.radians(TURN)) ** 2
    noise = typical.edge + chance * unit / weights + rounding
    return np.asarray(np.sqrt((squares - inside) / noise + inside / (typical.energy + rounding)))


def _factors(
    parts: Sequence[Subspace], middle: Middle | None, typical: TypicalNoise, *, means: bool
) -> Array:
    """Return factors that fade parts with far more weight or energy than the others.

    Energy counts in all, and along each direction that a part has.
    """
    weights = np.array([part.weight for part in parts])
    energies = np.array([energy_of(part) for part in parts])
    usual = median(list(energies[energies > 0]))
    by_weight = np.minimum(1.0, WEIGHT * median(list(weights)) / weights)
    by_energy = np.minimum(1.0, ENERGY * usual / np.maximum(energies, TINY))
    if middle is not None and len(parts) >= LEAST and np.isfinite(typical.edge):
        points = np.stack([part.mean for part in parts])
        # Where means do not become part of the merge, none is shifted.
        center = of_points(points) if means else None
        louder = loudness(parts, by_energy, middle.span, center, EDGE * typical.edge + TINY)
        most = _limit(louder, ENERGY)
        by_energy = np.minimum(by_energy, most / np.maximum(louder, most))
    # A factor to fade by must be positive, whatever a part claims.
    return np.asarray(np.maximum(by_weight * by_energy, TINY))


def _limit(values: Array, least: float) -> float:
    """Return the limit beyond which a value is an outlier: at least twice the median."""
    if not len(values):
        return np.inf
    middle = float(np.median(values))
    spread = float(np.median(np.abs(values - middle)))
    return max(least, 2 * middle, middle + SPREAD * (1 + FEW / len(values)) * spread)
