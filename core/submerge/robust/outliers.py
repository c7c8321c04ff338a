"""Robust merging: whom to leave out of a merge, and how much the others may count.

A merge believes everybody: one child with sigma a million times too large turns the model by
90 degrees. Here the children of a group are held against one another. It is a pure function of
them all, so nothing has to be undone: who comes back to the others is in again.

1. A child counts once in every median, whatever weight it claims.
2. A direction is believed as far as it stands out from noise (`noise`). What cannot be told
   from it is not judged: young children, and all where there is no gap.
3. A child is judged by what it has and the others have not, never by what it lacks: a pump that
   stands still is no liar.
4. At most half are left out. The others are many and alike: a fleet of two kinds is two groups.

It stops gross lies, not clever ones: docs/mathematics.md says what is left to those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.pca.subspace import Subspace, check_rank
from submerge.robust.geometric_median import Middle, Projector, of_points, of_projectors
from submerge.robust.noise import (
    ROUNDING,
    TINY,
    TypicalNoise,
    clearness,
    energy_of,
    median,
    typical_noise,
)

LEAST = 3
"""Children that have something to be judged by; of fewer, nobody can say who is odd."""

WEIGHT, ENERGY = 3.0, 3.0
"""A child counts for at most so many times the usual weight, and energy per sample."""

TURN = 15.0
"""Degrees that a child may always be from the others: machines are not all alike."""

OFFSET = 4.0
"""Distance of means, in units of what noise and variation explain, that is never held against
a child."""

SPREAD, FEW = 8.0, 8
"""Beyond it, how many median deviations from the usual: 5.4 standard ones of a Gaussian. Twice as
many of so few children, whose median deviation may be small by chance."""

SHARED = 1 / 2
"""A direction that the median has by so much is shared in full: those who have seen too little to
be certain of it do not speak against it."""


class Outlier(NamedTuple):
    """How far a child is from the others; 0 where it is not so far as to be left out.

    angle : degrees between the direction that it alone has and what they share
    offset : of its mean from theirs, in units of what noise and variation explain
    """

    angle: float
    offset: float

    @property
    def words(self) -> str:
        """In a few words, for people."""
        turned = [f"{self.angle:.0f} deg"] if self.angle else []
        shifted = [f"its mean, {self.offset:.0f} times noise"] if self.offset else []
        return ", ".join(turned + shifted)


@dataclass(frozen=True, slots=True)
class Screening:
    """What comes of judging.

    Attributes
    ----------
    far : dict of str to Far
        Children to leave out.
    factors : dict of str to float
        What to fade others by, for those that claim too much; below 1.
    """

    outliers: Mapping[str, Outlier]
    factors: Mapping[str, float]


NOBODY = Screening({}, {})
"""All are as they should be."""


def judged(
    parts: Mapping[str, Subspace], *, rank: int, unit: float = 1.0, means: bool = True
) -> Screening:
    """Judge children by one another.

    Parameters
    ----------
    parts : mapping of str to Subspace
        By the children's names; their order does not matter, to the last bit.
    rank : int
        Directions that are shown, r: those beyond are taken for noise.
    unit : float
        What one sample weighs, in parts that have faded.
    means : bool
        The parts' means become part of the merge: judge them as well.

    Returns
    -------
    Judged
        Scaling all readings, or all weights and `unit`, changes nothing.

    Notes
    -----
    O(n k dim q) for n parts, k directions, and q of some 4 r: n = 1000, dim = 512 and r = 10
    take about half a second, once after a change.
    """
    check_rank(rank)
    names = sorted(name for name, part in parts.items() if part.weight > 0)
    if len(names) < LEAST:
        return NOBODY
    chosen = [parts[name] for name in names]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        usual = typical_noise(chosen, rank, unit)
        angles, middle = _angles(chosen, usual, unit)
        most = _limit(angles[angles >= 0], TURN)
        angles[angles <= most] = 0.0
        offsets = np.zeros(len(names))
        if means:
            # Where they do not agree on directions, no shift is along a wrong one.
            offsets = _offsets(chosen, usual, unit, middle if most < 90 else None)
            offsets[offsets <= _limit(offsets, OFFSET)] = 0.0
        left = [Outlier(float(a), float(o)) for a, o in zip(angles, offsets, strict=True)]
        outliers = {name: each for name, each in zip(names, left, strict=True) if any(each)}
        if 2 * len(outliers) > len(names):
            outliers = {}  # each kind of lie by a minority: nobody can say who is honest
        kept = [name for name in names if name not in outliers]
        factors = _factors([parts[name] for name in kept])
    capped = zip(kept, map(float, factors), strict=True)
    return Screening(outliers, {name: factor for name, factor in capped if factor < 1})


def both(one: Screening, other: Screening, *, of: int) -> Screening:
    """Return what comes of judging two memories of `of` children: out by one, out by both."""
    outliers = dict(one.outliers)
    if 2 * len(outliers.keys() | other.outliers.keys()) <= of:
        outliers = dict(other.outliers) | outliers
    names = sorted(one.factors.keys() | other.factors.keys())
    least = {name: min(each.factors.get(name, 1.0) for each in (one, other)) for name in names}
    return Screening(outliers, {name: least[name] for name in names if name not in outliers})


def _angles(
    parts: Sequence[Subspace], usual: TypicalNoise, unit: float
) -> tuple[Array, Middle | None]:
    """Degrees between each and the geometric median of all; -1 where there is nothing to judge.

    Of the direction that it has and they have least: the largest principal angle, if all were
    certain. With the angles comes what is shared.
    """
    angles = np.full(len(parts), -1.0)
    clear = [clearness(part, usual, unit) for part in parts]
    votes = [np.clip(each - 0.5, 0.0, 1.0) for each in clear]
    voters = [i for i, vote in enumerate(votes) if vote.any()]
    if len(voters) < LEAST:
        return angles, None
    chosen = [Projector(parts[i].basis[:, votes[i] > 0], votes[i][votes[i] > 0]) for i in voters]
    shared = _shared(of_projectors(chosen))
    for i in voters:
        # A little less than certain, others may not have voted for it.
        held = np.clip((clear[i] - 1) / 2, 0.0, 1.0)
        basis, held = parts[i].basis[:, held > 0], held[held > 0]
        alone = np.sqrt(np.multiply.outer(held, held)) * (np.eye(len(held)) - shared.within(basis))
        sine2 = float(np.linalg.eigvalsh(alone)[-1]) if len(held) else 0.0
        angles[i] = np.degrees(np.arcsin(np.sqrt(min(max(sine2, 0.0), 1.0))))
    return angles, shared


def _shared(middle: Middle) -> Middle:
    """The projector that a geometric median is near to."""
    values, vectors = np.linalg.eigh(middle.matrix)
    clipped = np.clip(values / SHARED, 0.0, 1.0)
    return Middle(middle.span, (vectors * clipped) @ vectors.T)


def _offsets(
    parts: Sequence[Subspace], usual: TypicalNoise, unit: float, middle: Middle | None
) -> Array:
    """How far each mean is from their geometric median, in units of what is usual there.

    Along shared directions that is the energy of a sample, beyond them noise: a shift out there
    makes a direction of its own.
    """
    points = np.stack([part.mean for part in parts])
    center = of_points(points)
    offs = points - center
    squares = np.einsum("ij,ij->i", offs, offs)
    # Old ones are sure of their means: that does not make them odder than the usual one.
    weights = np.minimum([part.weight for part in parts], usual.weight)
    inside = squares
    if middle is not None:
        seen = offs @ middle.span
        inside = np.minimum(np.einsum("ij,jk,ik->i", seen, middle.matrix, seen), squares)
    rounding = ROUNDING * usual.energy + (ROUNDING * float(np.linalg.norm(center))) ** 2 + TINY
    # A mean of few rows is off by chance: by noise, and along directions turned as they may be.
    chance = usual.rest + usual.energy * np.sin(np.radians(TURN)) ** 2
    noise = usual.edge + chance * unit / weights + rounding
    return np.asarray(np.sqrt((squares - inside) / noise + inside / (usual.energy + rounding)))


def _factors(parts: Sequence[Subspace]) -> Array:
    """What to fade each part by, so that none has far more weight or energy than is usual."""
    weights = np.array([part.weight for part in parts])
    energies = np.array([energy_of(part) for part in parts])
    usual = median(list(energies[energies > 0]))
    by_weight = np.minimum(1.0, WEIGHT * median(list(weights)) / weights)
    by_energy = np.minimum(1.0, ENERGY * usual / np.maximum(energies, TINY))
    # Even what claims all there is must leave a factor to fade by.
    return np.asarray(np.maximum(by_weight * by_energy, TINY))


def _limit(values: Array, least: float) -> float:
    """Beyond which a value is not like the others: at least twice the usual one."""
    if not len(values):
        return np.inf
    middle = float(np.median(values))
    spread = float(np.median(np.abs(values - middle)))
    return max(least, 2 * middle, middle + SPREAD * (1 + FEW / len(values)) * spread)
