"""Evidence: which channels the rows of an alarm speak against, and by how much in their units.

Errors of the `of` - 1 rows before a block are remembered: they may be of the alarm. Blame may
change after its highest row, so that row is kept for all channels (`PeakRow`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.judge.prepare import Block
from submerge.judge.score import RowScores
from submerge.protocol.alarm_status import Alarm, Deviation
from submerge.schema import Scaling


class PeakRow(NamedTuple):
    """The highest of an alarm's rows over a limit; channels in their units, NaN where not known.

    `ratio` is its score over its limit; 0 before there is one.
    """

    ratio: float
    values: Array
    expected: Array

    @classmethod
    def kept(cls, alarm: Alarm | None, names: tuple[str, ...]) -> PeakRow:
        """Return what an alarm says of it: only of the channels that it names."""
        values, expected = np.full((2, len(names)), np.nan)
        said = alarm.deviations if alarm is not None else ()
        for each in said:
            if each.channel in names:
                j = names.index(each.channel)
                values[j], expected[j] = each.value, each.expected
        return cls(alarm.worst if alarm is not None and said else 0.0, values, expected)

    def deviations(self, names: tuple[str, ...], channels: list[int]) -> tuple[Deviation, ...]:
        """Return how far channels are from their predictions, of those that are known."""
        return tuple(
            Deviation(names[j], float(self.values[j]), float(self.expected[j]))
            for j in channels
            if not np.isnan(self.values[j])
        )


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The errors of a block's rows (n, channels), scaled, NaN for a gap, and of `before` rows.

    `scores.errors` are (before + n, channels).
    """

    scores: RowScores
    before: int
    rows: Array
    scaling: Scaling | None

    @classmethod
    def of(
        cls, earlier: tuple[Array, ...], block: Block, scores: RowScores, scaling: Scaling | None
    ) -> Evidence | None:
        """Return the evidence of a block after `earlier` errors, if anything predicts channels."""
        if scores.expected is None:
            return None
        errors = np.concatenate((*earlier, scores.errors))
        before = len(errors) - len(block)
        rows = block.rows[:, : errors.shape[1]]
        if block.gaps is not None:
            # What fills a gap is no reading: a person would look for it in vain.
            rows = np.where(block.gaps[:, : errors.shape[1]], np.nan, rows)
        return cls(replace(scores, errors=errors), before, rows, scaling)

    def shares(self, rows: npt.NDArray[np.intp]) -> Array:
        """Return the mean share of each channel in rows of the block; -1 is the row before it."""
        known = rows[rows >= -self.before] + self.before
        return np.asarray(self.scores.blame(known).sum(axis=0) / max(1, len(known)))

    def at(self, row: int, ratio: float) -> PeakRow:
        """Return one of the block's rows in units, whose score is `ratio` times its limit."""
        values = self.rows[row]
        farther = 1.0 if self.scores.farther is None else self.scores.farther[row]
        expected = values - farther * self.scores.errors[row + self.before]
        if self.scaling is not None:
            n = len(values)
            offset, scale = np.array(self.scaling.offset[:n]), np.array(self.scaling.scale[:n])
            values, expected = values * scale + offset, expected * scale + offset
        return PeakRow(ratio, values, expected)


def last_errors(earlier: tuple[Array, ...], errors: Array, rows: int) -> tuple[Array, ...]:
    """Return the errors of the last `rows`, as blocks: joining few costs as much as a score."""
    if len(errors) >= rows:
        return (errors[len(errors) - rows :].copy(),)
    known = (*earlier, errors)
    more = sum(map(len, known)) - rows
    while more > 0 and len(known[0]) <= more:
        more -= len(known[0])
        known = known[1:]
    return known
