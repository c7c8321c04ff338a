"""screen(): which children to leave out of a merge, and how much the others may count.

The formulas, what it stops and what it does not: docs/mathematics.md, "Robust merging". A child is
an outlier by what it has and the others have not, never by what it lacks: a pump that stands still
is no outlier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array, Storage
from submerge.pca.subspace import Subspace, check_rank
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

# This module has medians of points, and of subspaces by their projectors, dim x dim matrices that
# are never formed.


ROUNDS, SETTLED = 100, 1e-4
"""Most rounds, and the change of a member's weight, relative, that ends them."""

TOUCHING = 1e-3
"""Least distance of a member, so that the iteration never divides by zero. For points its unit is
their median distance to the middle."""

SPARE, PASSES = 8, 4
"""Spare directions of the span, and passes over the members to find it."""


class Projector(NamedTuple):
    """A subspace by its projector, basis diag(shares) basis.T; shares (k,) are in (0, 1]."""

    basis: Storage
    shares: Array


@dataclass(frozen=True, slots=True, eq=False)
class Middle:
    """A geometric median of projectors: span matrix span.T; (dim, q), and (q, q) in 0 to 1."""

    span: Array
    matrix: Array

    def within(self, basis: Storage) -> Array:
        """Return the median restricted to the columns of a basis (dim, k): (k, k)."""
        seen = basis.T @ self.span
        return np.asarray(seen @ self.matrix @ seen.T, dtype=np.float64)


def of_projectors(members: Sequence[Projector]) -> Middle:
    """Return the geometric median of projectors, in the Frobenius norm; each counts once."""
    # Every direction that a quarter of the members have is in this span, since its dimension is the
    # most eigenvalues of that size that the mean projector's trace allows. O(n k dim q), with q
    # four times the k of the mean member, and n k q^2 a round.
    span = _span(members)
    held = np.array([len(each.shares) for each in members])
    starts = np.concatenate([[0], np.cumsum(held)[:-1]])
    shares = np.concatenate([each.shares for each in members])
    rows = np.vstack([each.basis.T @ span for each in members]) * np.sqrt(shares)[:, None]
    # These are norms of whole members, not of their parts in the span.
    squares = np.add.reduceat(shares**2, starts)

    weights = np.full(len(members), 1 / len(members))
    for _ in range(ROUNDS):
        middle = (rows * np.repeat(weights, held)[:, None]).T @ rows
        products = np.add.reduceat(((rows @ middle) * rows).sum(axis=1), starts)
        distances = np.maximum(0.0, squares - 2 * products + np.vdot(middle, middle))
        new = 1 / np.sqrt(distances + TOUCHING**2)
        new /= new.sum()
        moved = np.abs(new / weights - 1).max()
        weights = new
        if moved < SETTLED:
            break
    return Middle(span, middle)


def of_points(points: Array) -> Array:
    """Return the geometric median of points (n, dim), one or more: (dim,)."""
    # Points are taken about the first: an offset common to all costs no digits.
    origin = points[0]
    off = points - origin
    middle = np.median(off, axis=0)
    touching = TOUCHING * float(np.median(np.linalg.norm(off - middle, axis=1)))
    for _ in range(ROUNDS):
        distances = np.hypot(np.linalg.norm(off - middle, axis=1), touching)
        if not distances.all():
            break  # more than half of the points coincide
        weights = distances.min() / distances
        new = weights @ off / weights.sum()
        moved, middle = float(np.linalg.norm(new - middle)), new
        if moved <= SETTLED * touching:
            break
    return np.asarray(origin + middle)


def _span(members: Sequence[Projector]) -> Array:
    """Return an orthonormal basis (dim, q) of the shared span, by subspace iteration."""
    dim = len(members[0].basis)
    shared = 4 * sum(float(each.shares.sum()) for each in members) / len(members)
    q = min(dim, int(np.ceil(shared)) + SPARE)
    if q == dim:
        return np.eye(dim)
    # The start is fixed, and random so that members are not orthogonal to it by design.
    span: Array = np.random.Generator(np.random.Philox(key=0)).standard_normal((dim, q))
    for _ in range(PASSES):
        image = np.zeros((dim, q))
        for basis, shares in members:
            image += basis @ (shares[:, None] * (basis.T @ span))
        span = np.linalg.qr(image)[0]
    return span


# Each direction of a child, and the shift of its mean, is therefore compared with what the others
# have along it.


def loudness(
    parts: Sequence[Subspace], weights: Array, span: Array, center: Array | None, floor: float
) -> Array:
    """Return for each part its largest ratio to the mean of the others: (n,).

    For a direction u of part i: u' S_i u over the mean of u' S_j u, with S_j = U_j diag(sigma_j^2 /
    w_j) U_j' + (mean_j - m)(mean_j - m)'. O(n k dim q + n k q^2).

    weights : Of parts' energies where they speak as others: forged ones count as much as allowed.
    span, floor : Shared (dim, q); beyond it a part has `floor` per sample along any direction.
    """
    # Row by row sigma u' / sqrt(w), and the shift of the mean last: S_j is their Gram matrix.
    stacks = [_rows(part, center) for part in parts]
    inside = [stack @ span for stack in stacks]
    total = np.zeros((span.shape[1], span.shape[1]))
    for rows, weight in zip(inside, weights, strict=True):
        total += weight * (rows.T @ rows)
    found = np.zeros(len(parts))
    for i, (stack, rows) in enumerate(zip(stacks, inside, strict=True)):
        squares = np.einsum("ij,ij->i", stack, stack)
        there = squares > 0
        if not there.any():
            continue
        units = rows[there] / np.sqrt(squares[there])[:, None]
        own = np.einsum("ij,ij->i", units @ (rows.T @ rows), units)
        every = np.einsum("ij,ij->i", units @ total, units)
        others = np.maximum(every - weights[i] * own, 0.0) / (len(parts) - 1)
        found[i] = float(np.max(squares[there] / np.maximum(others + floor, TINY)))
    return found


def _rows(part: Subspace, center: Array | None) -> Array:
    scaled = part.basis.T * (part.sigma / np.sqrt(part.weight))[:, None]
    shift = np.zeros_like(part.mean) if center is None else part.mean - center
    return np.vstack([scaled, shift])


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
    """How far a child is off, 0 within limits: in degrees, and its mean in typical deviations."""

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
    """Outliers to leave out, and factors, below 1, for others with too much weight or energy."""

    outliers: Mapping[str, Outlier]
    factors: Mapping[str, float]


NO_OUTLIERS = Screening({}, {})


def screen(
    parts: Mapping[str, Subspace], *, rank: int, unit: float = 1.0, means: bool = True
) -> Screening:
    """Compare children with each other, by name; their order does not matter, to the last bit.

    rank : Directions beyond count as noise.
    unit : The weight of one sample, in parts that have faded.
    """
    check_rank(rank)
    # O(n k dim q), q of some 4 rank: n = 1000, dim = 512 and rank = 10 take half a second.
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
    """Return degrees between each part's least shared direction and the median, -1 if unknown."""
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
    """Return each mean's distance from their geometric median, in units of typical deviations."""
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
    """Return factors that fade parts with far more weight, or energy, in all or in a direction."""
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
