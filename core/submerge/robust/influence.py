"""Bounded influence: how much a child may count in a merge, by what others like it have.

The formulas, and what they do not detect: docs/mathematics.md, "Bounded influence".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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


class InfluenceBound(NamedTuple):
    """How far a child is beyond what it may have, times the bounds; 0 within. `factor` fades it."""

    factor: float
    rows: float
    energy: float
    mean: float  # by the sum of the readings' distances from the group's middle

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


def node_excess(part: Spread, readings: Readings) -> Array:
    """Return how many times each node is beyond its bounds: (n, 3), at most 1 within."""
    energy = np.maximum(allowed_energy(part.energy), TINY)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        times = part.rows / np.maximum(readings.usual, TINY)
        excess = (
            part.rows / np.maximum(readings.most, TINY),
            times * part.energy / energy,
            # The sum of distances, rows * |mean - m|, by which a mean moves.
            times * np.sqrt(part.offset / energy),
        )
    return _finite(np.stack(excess, axis=1))


def site_excess(part: Spread) -> Array:
    """Return how often each aggregator is beyond its bound of energy per sample: (n, 3)."""
    excess = np.zeros((len(part.rows), 3))
    excess[:, 1] = part.energy / np.maximum(allowed_energy(part.energy), TINY)
    return _finite(excess)


def bound_of(excess: Array) -> InfluenceBound | None:
    """Return the bound that follows from a child's excess (3,); None if it is within."""
    most = float(excess.max())
    if most <= 1.0 + ROUNDING:
        return None
    rows, energy, mean = (float(each) if each > 1.0 + ROUNDING else 0.0 for each in excess)
    # A factor to fade by must be positive, whatever a child claims.
    return InfluenceBound(max(1.0 / most, TINY), rows, energy, mean)


def _finite(values: Array) -> Array:
    """Clip forged numbers; what cannot be computed is as large."""
    return np.nan_to_num(np.minimum(values, HUGE), nan=HUGE)
