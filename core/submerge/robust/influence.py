"""Bounded influence: how much a child may count in a merge, by what others like it have.

The formulas, and what they do not detect: docs/mathematics.md, "Bounded influence".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter
from submerge.robust.noise import HUGE, ROUNDING, TINY

LIKE = 5
"""So many other nodes raise what a node may have: fewer may be one person's."""

LEAST_NODES = 5
"""Fewest nodes with a known row rate, and fewest aggregators, among which there are bounds."""

SPREAD = 3.0
"""Energy per sample, in units of the median, that every node may have."""

TOLERANCE = 1.25
"""Readings beyond the group's row rate, and energy beyond that of five others like it, that are
differences between honest nodes. Readings within it allow no more energy, and no larger shift."""

NOTABLE = 0.9
"""A node that counts for more of its readings than this is not worth a line."""

FIRST_ROWS = 100.0
"""Readings that a node may have gathered before it was first heard: those of its first report."""


class Readings(NamedTuple):
    """What honest nodes of these ages may have reported, (n,)."""

    most: Array  # that are counted, with the tolerance
    usual: Array  # without; they allow energy and shifts

    @classmethod
    def of(cls, earned: Array, first: float) -> Readings:
        """Return them for readings by rate and age, and those of a first report."""
        slack = np.maximum((TOLERANCE - 1) * earned, first)
        # A node that has earned as many has no energy by those of its first report.
        return cls(earned + slack, np.maximum(earned, first))


class Spread(NamedTuple):
    """Children's effective samples, as of their newest reports, and energy per sample; (n,) all."""

    rows: Array
    energy: Array  # about the group's middle
    offset: Array  # a part of it: the mean's squared distance from the middle


class Loudness(NamedTuple):
    """How many times as much variance as all children one has along a direction; (n,) both."""

    ratio: Array  # the largest over all directions
    most: Array  # that each may have, were its rows many: few are louder by chance
    dim: int


class InfluenceBound(NamedTuple):
    """How far a child is beyond what it may have, times the bounds; 0 within. `factor` fades it."""

    factor: float
    rows: float
    energy: float
    mean: float  # by the sum of the readings' distances from the group's middle
    variance: float = 0.0  # along the direction where it has most of what the others lack

    @property
    def notable(self) -> bool:
        """Whether a person should know: small differences are usual."""
        return self.factor < NOTABLE

    @property
    def words(self) -> str:
        """The bound in a few words, for people."""
        said = (
            (self.rows, "the readings of a node of its age"),
            (self.energy, "the energy allowed"),
            (self.mean, "the shift of the mean allowed"),
            (self.variance, "the variance allowed along a direction, by that of the others"),
        )
        beyond = ", ".join(f"{times:.3g} times {what}" for times, what in said if times)
        return f"counts {self.factor:.2g}: {beyond}"


def spread(parts: Sequence[Subspace | WholeScatter], units: Array, *, means: bool) -> Spread:
    """Measure one part of all children about the median of means; `units` (n,) weigh samples."""
    weights = np.array([part.weight for part in parts])
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        energy = np.array([part.energy for part in parts]) / weights
        offset = np.zeros(len(parts))
        if means:
            points = np.stack([part.mean for part in parts])
            offs = points - np.median(points, axis=0)
            offset = np.einsum("ij,ij->i", offs, offs)
        return Spread(_finite(weights / units), _finite(energy + offset), _finite(offset))


def effective_age(seconds: Array, half_life: float | None) -> Array:
    """Return H/ln 2 (1 - 2^(-a/H)): what a reading a second weighs after so long, as they fade."""
    if not half_life:
        return seconds
    rate = math.log(2.0) / half_life
    return np.asarray(-np.expm1(-seconds * rate) / rate)


def row_rates(rows: Array, ages: Array, reported: Array, known: npt.NDArray[np.bool_]) -> Array:
    """Return for each node the rows a second that several others `known` for long enough have."""
    # Effective ages at newest reports: a node that is away keeps its rate. At least half of the age
    # is taken, whatever a clock says.
    rates = rows / np.maximum(np.maximum(reported, ages / 2), TINY)
    count = int(known.sum())
    others = np.where(known, count - 1, count)
    # Half of the others where they are few: else one node that stands still would bound the group.
    ks = np.minimum(LIKE, -(-others // 2))
    largest = np.sort(rates[known])[::-1]
    # A node among the k largest is left out of them: the next one moves up.
    places = ks - 1 + (known & (rates >= largest[np.maximum(ks - 1, 0)]))
    return np.asarray(largest[np.minimum(places, count - 1)])


def allowed_energy(energy: Array) -> Array:
    """Return what each may have a sample, (n,): three times the median, or as five others have."""
    positive = energy[energy > 0]
    typical = SPREAD * float(np.median(positive)) if len(positive) else 0.0
    largest = np.sort(energy)[::-1]
    if len(energy) <= LIKE:
        return np.full(len(energy), typical)
    fifth = np.where(energy >= largest[LIKE - 1], largest[LIKE], largest[LIKE - 1])
    return np.where(fifth > typical, TOLERANCE * fifth, typical)


def node_excess(part: Spread, loud: Loudness, readings: Readings) -> Array:
    """Return how many times each node is beyond its bounds: (n, 4), at most 1 within."""
    energy = np.maximum(allowed_energy(part.energy), TINY)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        times = part.rows / np.maximum(readings.usual, TINY)
        excess = (
            part.rows / np.maximum(readings.most, TINY),
            times * part.energy / energy,
            # The sum of distances, rows * |mean - m|, by which a mean moves.
            times * np.sqrt(part.offset / energy),
            # By the readings that it may have, not by those that it claims: few forgive much.
            times * loud.ratio / (loud.most * by_chance(readings.usual, loud.dim)),
        )
    return _finite(np.stack(excess, axis=1))


def site_excess(part: Spread, loud: Loudness) -> Array:
    """Return how often each aggregator is beyond its bounds of a sample's energy: (n, 4)."""
    excess = np.zeros((len(part.rows), 4))
    excess[:, 1] = part.energy / np.maximum(allowed_energy(part.energy), TINY)
    excess[:, 3] = loud.ratio / (loud.most * by_chance(part.rows, loud.dim))
    return _finite(excess)


ROUNDS, SETTLED = 12, 1e-2
"""Most rounds in which loud children leave what the others are measured by, and what ends them."""

FLOOR = 0.01
"""Variance of a direction that every child may have, over the mean variance of a column."""

WHOLE, SPAN, PASSES = 128, 32, 3
"""Columns up to which the scatter of all is held whole; beyond, directions of its leading span."""

STEPS = 16
"""Of the power method; where two directions are as loud, each will do."""

BATCH = 1 << 20  # numbers at once


def by_chance(rows: Array, dim: int) -> Array:
    """Return how much louder along its loudest direction so few rows are (Marchenko-Pastur)."""
    return np.asarray(np.square(1.0 + np.sqrt(dim / np.maximum(rows, 1.0))))


def loudness(parts: Sequence[Subspace | WholeScatter], rows: Array, *, means: bool) -> Loudness:
    """Hold each child's variance along every direction against that of all, O(n k d^2)."""
    # The largest eigenvalue of P^-1 S_i: S_i is the scatter of a sample of child i about the median
    # of means, P its mean over children, faded as they are bounded; none has a larger voice than
    # the median.
    n, dim = len(parts), len(parts[0].mean)
    voices = np.minimum(rows, np.median(rows))
    middle = np.median(np.stack([part.mean for part in parts]), axis=0) if means else None
    chance = by_chance(rows, dim)
    factors, ratio, most = np.ones(n), np.zeros(n), np.ones(n)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        span = _leading(parts, voices, middle) if dim > WHOLE else None
        for _ in range(ROUNDS):
            weights = voices * factors
            ratio = _ratios(parts, weights / weights.sum(), middle, span)
            most = TOLERANCE * allowed_energy(ratio / chance)
            new = np.minimum(1.0, np.maximum(most, TINY) / np.maximum(ratio / chance, TINY))
            moved, factors = float(np.abs(new / factors - 1.0).max()), np.maximum(new, TINY)
            if moved <= SETTLED:
                break
    return Loudness(ratio, np.maximum(most, TINY), dim)


def _ratios(
    parts: Sequence[Subspace | WholeScatter],
    shares: Array,
    middle: Array | None,
    span: Array | None,
) -> Array:
    """Return each child's largest variance over that of all, whose shares add up to 1."""
    dim = len(parts[0].mean)
    q = dim if span is None else span.shape[1]
    inside, beyond = np.zeros((q, q)), 0.0
    for at, stack in _stacks(parts, middle):
        seen = stack if span is None else stack @ span
        scaled = (seen * np.sqrt(shares[at])[:, None, None]).reshape(-1, q)
        inside += scaled.T @ scaled
        if span is not None:
            beyond += float(shares[at] @ (_squares(stack) - _squares(seen)))
    # Where the others do not vary at all, a child that does is not shut out.
    quiet = FLOOR * (float(np.trace(inside)) + beyond) / dim + TINY
    rest = quiet + float(shares @ np.array([_rest(part) for part in parts]))
    beyond = max(beyond, 0.0) / max(dim - q, 1) + rest
    inside += rest * np.eye(q)
    whiten = np.linalg.inv(np.linalg.cholesky(inside)).T
    found = np.zeros(len(parts))
    for at, stack in _stacks(parts, middle):
        seen = stack if span is None else stack @ span
        white = seen @ whiten
        gram = white @ white.transpose(0, 2, 1)
        if span is not None:
            off = stack @ stack.transpose(0, 2, 1) - seen @ seen.transpose(0, 2, 1)
            gram += off / beyond
        found[at] = _largest(gram)
    return _finite(found)


def _largest(gram: Array) -> Array:
    """Return nearly the largest eigenvalue of each of positive matrices (n, m, m), never more."""
    diagonal = np.einsum("nii->ni", gram)
    vector = np.take_along_axis(gram, diagonal.argmax(axis=1)[:, None, None], axis=2)
    for _ in range(STEPS):
        vector = gram @ (vector / np.maximum(np.linalg.norm(vector, axis=1, keepdims=True), TINY))
    return np.asarray(np.maximum(np.linalg.norm(vector, axis=1)[:, 0], diagonal.max(axis=1)))


def _stacks(
    parts: Sequence[Subspace | WholeScatter], middle: Array | None
) -> Iterator[tuple[slice, Array]]:
    """Yield some children's rows (n, m, d) at a time, whose squares are their scatter a sample."""
    dim = len(parts[0].mean)
    m = 1 + max(dim if isinstance(part, WholeScatter) else part.rank for part in parts)
    step = max(1, BATCH // (m * dim))
    for first in range(0, len(parts), step):
        some = parts[first : first + step]
        stack = np.zeros((len(some), m, dim))
        for rows, part in zip(stack, some, strict=True):
            held = (
                part.factor
                if isinstance(part, WholeScatter)
                else part.basis.T * part.sigma[:, None]
            )
            rows[: len(held)] = held / part.weight**0.5
            if middle is not None:
                rows[-1] = part.mean - middle
        yield slice(first, first + step), np.clip(stack, -(HUGE**0.25), HUGE**0.25)


def _leading(
    parts: Sequence[Subspace | WholeScatter], voices: Array, middle: Array | None
) -> Array:
    """Return an orthonormal basis (d, q) of where the children's scatters are largest."""
    dim = len(parts[0].mean)
    # Fixed, and random so that no child is orthogonal to it by design.
    span: Array = np.random.Generator(np.random.Philox(key=0)).standard_normal((dim, SPAN))
    for _ in range(PASSES):
        image = np.zeros((dim, SPAN))
        for at, stack in _stacks(parts, middle):
            seen = (stack @ span) * voices[at][:, None, None]
            image += np.einsum("nmd,nmq->dq", stack, seen, optimize=True)
        span = np.linalg.qr(image)[0]
    return span


def _squares(stack: Array) -> Array:
    return np.asarray(np.einsum("nmd,nmd->n", stack, stack))


def _rest(part: Subspace | WholeScatter) -> float:
    """Return the variance along each direction that a summary does not have."""
    if isinstance(part, WholeScatter) or part.rank == part.dim:
        return 0.0
    left = part.energy - float(part.sigma @ part.sigma)
    return min(max(left, 0.0) / part.weight / (part.dim - part.rank), HUGE)


def bound_of(excess: Array) -> InfluenceBound | None:
    """Return the bound that follows from a child's excess (4,); None if it is within."""
    most = float(excess.max())
    if most <= 1.0 + ROUNDING:
        return None
    beyond = (float(each) if each > 1.0 + ROUNDING else 0.0 for each in excess)
    # A factor to fade by must be positive, whatever a child claims.
    return InfluenceBound(max(1.0 / most, TINY), *beyond)


def _finite(values: Array) -> Array:
    """Clip forged numbers; what cannot be computed is as large."""
    return np.nan_to_num(np.minimum(values, HUGE), nan=HUGE)
