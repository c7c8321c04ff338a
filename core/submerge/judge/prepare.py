"""prepare(): a sensor's rows as a block that can be scored and learnt, and why others cannot.

1. Rows are scaled, and rows outside the operating state are left out.
2. The gaps of a row that shows half of its channels or more are filled, if there is anything to
   fill them with; a row that still has a gap is left out.
3. So is a row with a number that is too large to be a reading, or to be summed as a square.
4. In a kernel group the rest is lifted into features, and what is too large there is left out.

All that read rows come by here, so that a row has the same fate wherever it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.condition import Condition
from submerge.judge.clock import RowTime
from submerge.judge.decision import Mask
from submerge.schema import Schema

LARGEST_SCALED = 1e12
"""Larger numbers are left out, features as well: the sum of ten years of their squares is no longer
a float32, and no peer would take it."""

REASONS = ("", "lead-in", "other state", "gaps", "too large")
"""Why a row has no score; the first has one. A lead-in has no past yet to be laid beside."""

LEAD_IN, OTHER_STATE, GAPS, TOO_LARGE = range(1, len(REASONS))

Fill = Callable[[Array], Array]
"""Takes scaled rows with gaps (NaN), and returns them filled as far as that is possible."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Rows that came together.

    Attributes
    ----------
    why : (n,) of int8
        Places in `REASONS`, of all rows.
    rows : (m, channels)
        Scaled and without gaps: those that can be scored.
    features : (m, dim)
        Of the same rows; the rows themselves outside kernel groups.
    gaps : (m, channels) of bool, or None
        True where a number was filled in; None if none was.
    time : RowTime
        What they stand for.
    """

    why: npt.NDArray[np.int8]
    rows: Array
    features: Storage
    gaps: Mask | None
    time: RowTime = field(default_factory=RowTime)

    def __len__(self) -> int:
        """Rows that can be scored."""
        return len(self.rows)

    @property
    def which(self) -> npt.NDArray[np.int64]:
        """(m,), where each row stood among all that came."""
        return np.flatnonzero(self.why == 0)

    @property
    def left_out(self) -> int:
        """Rows that cannot be scored."""
        return len(self.why) - len(self.rows)


def prepare(
    rows: Array,
    schema: Schema,
    *,
    fill: Fill | None,
    when: Condition | None = None,
    largest: float = LARGEST_SCALED,
    lifts: bool = True,
    time: RowTime = RowTime(),  # noqa: B008 - a value
) -> Block:
    """Return rows as a block.

    Parameters
    ----------
    rows : (n, channels)
        In their units, lags included; NaN is a gap.
    schema : Schema
    fill : callable, optional
        What gaps are filled by, if any row needs it; None fills none.
    when : Condition, optional
        The operating state; rows for which it does not hold are left out.
    largest : float
        Scaled numbers have to be smaller.
    lifts : bool
        Whether features are made; False while the schema does not say yet how.
    time : RowTime

    Raises
    ------
    ShapeError
        If they have another number of channels than the schema.
    """
    scaled, gaps, why = schema.scaled(rows), None, np.zeros(len(rows), dtype=np.int8)
    if fill is not None:
        gaps = np.isnan(scaled)
        some = gaps.any(axis=1) & ~np.isinf(scaled).any(axis=1)
        # A row that shows less than half would be scored by what it was filled with.
        some &= 2 * gaps.sum(axis=1) <= gaps.shape[1]
        if some.any():
            scaled = scaled.copy()
            scaled[some] = fill(scaled[some])
    why[~(np.abs(scaled) < largest).all(axis=1)] = TOO_LARGE
    why[np.isnan(scaled).any(axis=1) & ~np.isinf(scaled).any(axis=1)] = GAPS
    if when is not None:
        why[~when.holds(rows)] = OTHER_STATE
    fine = why == 0
    scaled = scaled[fine]
    features: Storage = scaled
    if lifts and not schema.linear:
        features = schema.features.lift(scaled)
        # Products of readings may be too large where each of them is not.
        bearable = (np.abs(features) < LARGEST_SCALED).all(axis=1)
        why[np.flatnonzero(fine)[~bearable]] = TOO_LARGE
        fine = why == 0
        scaled, features = scaled[bearable], features[bearable]
    if gaps is not None:
        gaps = gaps[fine]
        gaps = gaps if gaps.any() else None
    return Block(why, scaled, features, gaps, time)


def in_units(rows: Array, schema: Schema) -> Array:
    """Return scaled rows (n, channels) in the channels' units."""
    if schema.scaling is None:
        return rows
    return np.asarray(rows * schema.scaling.scale + schema.scaling.offset)
