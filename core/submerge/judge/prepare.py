"""prepare(): a block of rows that can be scored and learnt, and why other rows cannot.

1. Rows outside the operating state are left out. If a row has half of its channels or more, its
   gaps are filled, as far as that is possible; a row that still has a gap is left out.
2. So is a row with a number that is too large to be a reading, or to be summed as a square; in a
   kernel group, with a feature that is.
3. With `judges`, rows of 2 stay, since a failing sensor must raise an alarm: such numbers,
   infinity too, count as the largest. `Block.beyond` says which rows: none is learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.condition import Condition
from submerge.judge.decision import Mask
from submerge.schema import Schema
from submerge.stats.block_maxima import HOUR_S
from submerge.stats.resolution import Steps


class RowTime(NamedTuple):
    """The time that some rows stand for."""

    period_s: float = 0.0  # of each row; 0 goes by the clock
    # seconds since the rows before, by the clock; 0 for the first rows of a process
    since_s: float = 0.0

    def elapsed_s(self, rows: int) -> float:
        """Return by how much `rows` rows are later than the rows before."""
        return rows * self.period_s if self.period_s else self.since_s

    def seen_s(self, rows: int) -> float:
        """Return the time that `rows` rows have seen; a silent sensor has seen no day."""
        return rows * self.period_s if self.period_s else min(self.since_s, HOUR_S)


@dataclass(frozen=True, slots=True)
class RowClock:
    """When rows arrived last, None before the first; 0 for `period_s` goes by the clock."""

    period_s: float = 0.0
    last_s: float | None = None

    def read(self, steady_s: float) -> tuple[RowClock, RowTime]:
        """Return the clock after rows at a steady time, and the time that they stand for."""
        since_s = 0.0 if self.last_s is None else steady_s - self.last_s
        return replace(self, last_s=steady_s), RowTime(self.period_s, since_s)


LARGEST_SCALED = 1e12
"""Rows with larger numbers are left out, features as well: the sum of ten years of their squares is
no float32 any more, and peers would refuse it."""

REASONS = ("", "lead-in", "other state", "gaps", "too large")
"""Why a row has no score; the first entry is for rows with one. A lead-in row has too few rows
before it for its lags."""

LEAD_IN, OTHER_STATE, GAPS, TOO_LARGE = range(1, len(REASONS))

Fill = Callable[[Array], Array]
"""Takes scaled rows with gaps (NaN), and returns them filled as far as that is possible."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Rows that arrived together."""

    why: npt.NDArray[np.int8]  # (n,), indices into `REASONS`, for all rows
    rows: Array  # (m, channels), that can be scored, scaled and without gaps
    features: Storage  # (m, dim), of the same rows; in a linear group the rows themselves
    gaps: Mask | None  # (m, channels), True where one was filled; None if none was
    time: RowTime = field(default_factory=RowTime)
    held: Mask | None = None  # (m, k), a leading number is repeated: no new one came
    beyond: Mask | None = None  # (m,), a number was too large: judged and not learnt
    steps: Steps | None = None  # of readings, without lags
    came: Array | None = None  # (m, channels), as they came, scaled, where one is `beyond`

    def __len__(self) -> int:
        """Number of rows that can be scored."""
        return len(self.rows)

    @property
    def which(self) -> npt.NDArray[np.int64]:
        """(m,), the index of each row among all that arrived."""
        return np.flatnonzero(self.why == 0)

    def known(self, channels: int) -> Array:
        """(m, channels), the readings of rows without lags, NaN for gaps."""
        rows = self.rows[:, :channels]
        return rows if self.gaps is None else np.where(self.gaps[:, :channels], np.nan, rows)

    def without(self, numbers: Mask, fill: Fill) -> Block:
        """Return it with gaps in place of some numbers, ((m,) channels); in a linear group."""
        gaps = np.broadcast_to(numbers, self.rows.shape)
        gaps = gaps if self.gaps is None else gaps | self.gaps
        rows = fill(np.where(gaps, np.nan, self.rows))
        return replace(self, rows=rows, features=rows, gaps=gaps)

    @property
    def left_out(self) -> int:
        """Number of rows that cannot be scored."""
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
    held: Mask | None = None,
    judges: bool = False,
) -> Block:
    """Return rows (n, channels) in their units, with lags and NaN for gaps, as a block.

    fill : Is called only if a row needs it; None fills none.
    largest : Scaled numbers have to be smaller.
    lifts : Whether to make features; False while the schema does not settle how.
    """
    scaled = schema.scaled(rows)
    plain, beyond = _all_within(scaled, largest), np.zeros(len(rows), dtype=bool)
    if judges and not plain:
        scaled, beyond = _bounded(scaled, largest)
    scaled, gaps = (scaled, None) if fill is None or plain else _filled(scaled, fill)
    why = np.zeros(len(rows), dtype=np.int8) if plain else _reasons(scaled, largest)
    if when is not None:
        why[~when.holds(rows)] = OTHER_STATE
    fine = why == 0
    # A block has rows of its own: those that came may be overwritten.
    if schema.scaling is None or not fine.all():
        scaled = scaled[fine]
    features: Storage = scaled
    if lifts and not schema.linear:
        features = schema.features.lift(scaled)
        # Products of readings may be too large where each of them is not.
        bearable = (np.abs(features) < LARGEST_SCALED).all(axis=1)
        if judges and not bearable.all():
            beyond[fine] |= ~bearable
            features, bearable = _bounded(features, LARGEST_SCALED)[0], bearable | True
        why[np.flatnonzero(fine)[~bearable]] = TOO_LARGE
        fine = why == 0
        scaled, features = scaled[bearable], features[bearable]
    if gaps is not None:
        gaps = gaps[fine] if gaps[fine].any() else None
    held, far = None if held is None else held[fine], beyond[fine] if beyond.any() else None
    came = None if far is None else np.asarray(schema.scaled(rows)[fine], dtype=np.float64)
    return Block(why, scaled, features, gaps, time, held, far, came=came)


def _bounded(rows: Storage, largest: float) -> tuple[Array, Mask]:
    """Return rows with what is too large as the largest, and which had such; a gap stays one."""
    most = np.nextafter(largest, 0.0)
    return np.clip(rows, -most, most), np.asarray((np.abs(rows) >= largest).any(axis=1))


def _filled(scaled: Array, fill: Fill) -> tuple[Array, Mask]:
    """Return rows whose gaps are filled where that helps, and which numbers are gaps."""
    gaps = np.isnan(scaled)
    some = gaps.any(axis=1) & ~np.isinf(scaled).any(axis=1)
    # The score of a row with less than half would follow from what was filled in.
    some &= 2 * gaps.sum(axis=1) <= gaps.shape[1]
    if some.any():
        scaled = scaled.copy()
        scaled[some] = fill(scaled[some])
    return scaled, gaps


def _reasons(scaled: Array, largest: float) -> npt.NDArray[np.int8]:
    """Return why rows cannot be scored by their numbers, as in `Block.why`."""
    why = np.zeros(len(scaled), dtype=np.int8)
    why[~(np.abs(scaled) < largest).all(axis=1)] = TOO_LARGE
    why[np.isnan(scaled).any(axis=1) & ~np.isinf(scaled).any(axis=1)] = GAPS
    return why


def _all_within(rows: Array, largest: float) -> bool:
    """Return whether all numbers are smaller: then there is no gap. Mostly they are."""
    # NaN is not smaller than anything.
    return bool(rows.max(initial=0.0) < largest and rows.min(initial=0.0) > -largest)


def in_units(rows: Array, schema: Schema) -> Array:
    """Return scaled rows (n, channels) in the channels' units."""
    if schema.scaling is None:
        return rows
    return np.asarray(rows * schema.scaling.scale + schema.scaling.offset)


_CURES = {
    REASONS[LEAD_IN]: "each file needs more rows than the model has lags",
    REASONS[GAPS]: "a row needs values in half of its channels",
    REASONS[TOO_LARGE]: f"a number above {LARGEST_SCALED:g} is no reading: leave its column out",
}


def none_left(rows: int, reasons: Mapping[str, int], when: Condition | None = None) -> str:
    """Return how many rows there were, why none can be judged, and what to do."""
    ordered = sorted(reasons.items(), key=lambda each: -each[1])
    if not ordered:
        return f"none of {rows:,}: give more rows"
    counts = ", ".join(f"{n:,} {why}" for why, n in ordered)
    cure = _CURES.get(ordered[0][0], "leave fewer rows out")
    if ordered[0][0] == REASONS[OTHER_STATE] and when is not None:
        cure = f"they are not in the state {when}: correct it, or leave it out"
    return f"none of {rows:,} ({counts}): {cure}"
