"""Resolution: the step that readings of a channel move by, and the noise that it makes.

Reading to a step adds an error of variance step^2 / 12 (docs/decisions/0066).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array

UNKNOWN = 1e12  # noise of a channel whose step is not known, over the largest of others
ENOUGH = 3  # moves by a step from which it counts beside that of earlier readings
ALIKE = 1e-6  # share by which movements of one step differ: more is another step
ROUNDING = 1e-10  # least movement of a reading, scaled: less is rounding


class Steps(NamedTuple):
    """The steps of channels at rows, in runs: the same from `begins[i]` on to the next."""

    begins: npt.NDArray[np.int64]  # (k,), the first is 0
    step: Array  # (k, channels), of these readings, NaN if unknown
    before: Array  # (channels,), of those before
    seen: Array  # (k, channels), how often these were seen

    def runs(self, rows: int) -> list[tuple[int, int]]:
        """Return where runs begin and end, of that many rows."""
        return list(pairwise([*self.begins.tolist(), rows]))


class Resolution(NamedTuple):
    """The steps of channels after some rows: immutable arrays (channels,), NaN if unknown."""

    last: Array  # the newest reading
    step: Array  # the least difference between a reading and the next, where they differ
    before: Array  # that of an earlier time: a channel is as coarse as either
    seen: Array  # how often readings differed by the step, `ENOUGH` at most

    @classmethod
    def none(cls, channels: int) -> Resolution:
        """Return the state before the first row."""
        unknown = np.full(channels, np.nan)
        return cls(unknown, unknown, unknown, np.zeros(channels))

    @property
    def restarted(self) -> Resolution:
        """What is known to other rows than those that follow: of another time, or file."""
        return Resolution.none(len(self.last))._replace(before=np.fmax(self.step, self.before))

    def after(self, rows: Array) -> tuple[Resolution, Steps | None]:
        """Return it after rows (n, channels), and their steps; None if these are as before."""
        values = np.concatenate((self.last[None], rows))
        gaps = np.isnan(values)
        if gaps[1:].any():
            place = np.where(gaps, 0, np.arange(len(values))[:, None])
            np.maximum.accumulate(place, axis=0, out=place)
            values = np.take_along_axis(values, place, axis=0)
        moved = np.abs(values[1:] - values[:-1])
        known = self._replace(last=values[-1].copy())
        # Mostly no reading moves by the step, or less: one that is unknown is NaN.
        which = np.flatnonzero(~(moved > (1 + ALIKE) * self.step).all(axis=0))
        moved, values = moved[:, which], values[:, which]
        step, often = self.step[which], self.seen[which]
        solid = moved > ROUNDING * (1 + np.abs(values[1:]))
        again = (often >= ENOUGH) & (moved >= (1 - ALIKE) * step)
        if not (solid & ~again & ~(moved > (1 + ALIKE) * step)).any():
            return known, None
        moved[~solid] = np.nan
        steps = np.fmin.accumulate(np.concatenate((step[None], moved)), axis=0)
        finer = solid & ~(steps[1:] >= (1 - ALIKE) * steps[:-1])
        count = np.cumsum(solid & (moved <= (1 + ALIKE) * steps[1:]), axis=0)
        # Those before a finer step do not count.
        other = np.maximum.accumulate(np.where(finer, count - 1, -often), axis=0)
        seen = np.minimum(count - other, ENOUGH)
        news = finer[1:] | (seen[1:] != seen[:-1])
        begins = np.concatenate(([0], np.flatnonzero(news.any(axis=1)) + 1))
        runs = Steps(
            begins,
            np.tile(self.step, (len(begins), 1)),
            self.before,
            np.tile(self.seen, (len(begins), 1)),
        )
        runs.step[:, which], runs.seen[:, which] = steps[1:][begins], seen[begins]
        return known._replace(step=runs.step[-1].copy(), seen=runs.seen[-1].copy()), runs

    @property
    def steps(self) -> Steps:
        """The steps of rows to come, as long as they are as coarse."""
        return Steps(np.zeros(1, dtype=np.int64), self.step[None], self.before, self.seen[None])


def as_read(noise: Array, steps: Steps, flat: npt.NDArray[np.bool_]) -> Array:
    """Return the variances of noise (dim,) of readings with lags, (k, dim), in runs of steps."""
    copies = len(noise) // len(steps.before)
    step, seen = np.tile(steps.step, (1, copies)), np.tile(steps.seen, (1, copies))
    before = np.tile(steps.before, copies)
    # Readings that are not on a grid never move by the same amount again, and a fault does once.
    known = seen >= np.where(flat, 1, np.where(np.isnan(before), 2, ENOUGH))
    now, before = np.where(known, np.square(step), np.nan) / 12, np.square(before) / 12
    coarse = np.fmax(now, before)
    # What was measured includes the error of reading to the steps before. Of a `flat` channel
    # nothing was measured.
    more = noise + np.nan_to_num(np.maximum(now - before, 0.0))
    unknown = UNKNOWN * float(noise.max())
    least = np.where(np.isnan(coarse) & flat, unknown, coarse)
    return np.asarray(np.fmax(more, least), dtype=np.float64)
