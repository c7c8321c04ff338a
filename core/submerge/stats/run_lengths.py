"""RunLengths: how long each channel has repeated one number, and its longest such run.

A healthy sensor seldom repeats a reading: its noise is larger than its last digit. A stuck sensor
repeats one number. So does a sensor at an end of its range, such as light at night or a scale at
its stop. Inside its range a sensor has no reason to stand still. So runs at either end of the
range are counted separately, and join the others when the range turns out to be wider.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SHORT = 8
"""Repeats of a first reading that are ignored. A power of 2."""

RARE = 20
"""Longest run, in readings, from which long runs are normal for a channel."""

TIMES, LEAST = 6, 10
"""A run is unusual beyond `TIMES` times the longest one before, or `TIMES * LEAST` readings."""


MANY, FOLDED = 512, 8
"""Rows from which so many are laid side by side, to find the range of each channel."""


class RunLengths(NamedTuple):
    """Runs of each channel after some rows: an immutable set of arrays (channels,).

    last, lowest, highest : float64, readings; NaN before the first
    run : int64, number of readings in a row equal to `last`
    longest : int64, the longest finished run inside the range; 0 if there is none
    at_lowest, at_highest : int64, the longest finished run at either end of the range
    """

    last: Array
    lowest: Array
    highest: Array
    run: Counts
    longest: Counts
    at_lowest: Counts
    at_highest: Counts

    @classmethod
    def none(cls, channels: int) -> RunLengths:
        """Return the state before the first row."""
        unknown, never = np.full(channels, np.nan), np.zeros(channels, dtype=np.int64)
        return cls(unknown, unknown, unknown, never, never, never, never)

    @property
    def unusual(self) -> Flags:
        """(channels,), whether a channel that has only had short runs has a long one in range."""
        inside = (self.lowest < self.last) & (self.last < self.highest)
        patience = TIMES * np.maximum(self.longest, LEAST)
        return np.asarray(inside & (self.longest < RARE) & (self.run > patience))

    def all_move(self, rows: Array) -> bool:
        """Whether there are rows (n, channels), and no reading repeats the one before or is a gap.

        Then each run is of one reading, wherever rows are cut into calls of `after`.
        """
        if not len(rows) or (rows[0] == self.last).any() or (rows[1:] == rows[:-1]).any():
            return False
        return not np.isnan(rows.sum())

    def after(self, rows: Array) -> tuple[RunLengths, Flags]:
        """Return the runs after more rows, and which channels have changed in them.

        Parameters
        ----------
        rows : (n, channels)
            One or more, oldest first. NaN is no reading: a run neither ends nor grows by it.

        Notes
        -----
        The result does not depend on how rows are cut into calls.
        """
        # NaN differs from itself: a channel without readings has no run to continue.
        same = np.empty(rows.shape, dtype=np.bool_)
        np.equal(rows[0], self.last, out=same[0])
        np.equal(rows[1:], rows[:-1], out=same[1:])
        long_rows, d = _as_long_rows(rows), rows.shape[1]
        low = long_rows.min(axis=0).reshape(-1, d).min(axis=0)  # NaN where there is a gap
        high = long_rows.max(axis=0).reshape(-1, d).max(axis=0)
        gaps = np.isnan(low)
        if gaps.any():
            low, high = np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)
        gaps |= np.isnan(self.last)
        # Mostly no reading repeats the one before.
        moved, run, long = np.ones_like(gaps), np.ones_like(self.run), self.run > SHORT
        if same.any():
            moved = ~same.all(axis=0)
            run = np.where(moved, same[::-1].argmin(axis=0) + 1, self.run + len(rows))
            long = moved & (_has_long(same) | (self.run + same.argmin(axis=0) > SHORT))
        known = self._replace(
            last=rows[-1].copy(),
            lowest=np.fmin(self.lowest, low),
            highest=np.fmax(self.highest, high),
            run=run,
        )
        # Almost all finished runs are short. Each run is looked at only where one is long, or there
        # is a gap, or an end of the range moved away from runs at it.
        long |= (known.lowest < self.lowest) & (self.at_lowest > 0)
        long |= (known.highest > self.highest) & (self.at_highest > 0)
        looked = np.flatnonzero(long | gaps)
        if len(looked):
            part, moved[looked] = self._at(looked)._one_by_one(rows[:, looked])
            known = known._with(part, looked)
        return known, moved

    def with_range_of(self, earlier: RunLengths) -> RunLengths:
        """Return the runs with the range and the longest ones of earlier readings, too.

        A run at an end of the smaller range has been inside the larger one.
        """
        lowest = np.fmin(self.lowest, earlier.lowest)
        highest = np.fmax(self.highest, earlier.highest)
        longest, low, high = [], [], []
        for each in (self, earlier):
            at_lowest, at_highest = each.lowest == lowest, each.highest == highest
            low.append(np.where(at_lowest, each.at_lowest, 0))
            high.append(np.where(at_highest, each.at_highest, 0))
            longest += [
                each.longest,
                np.where(at_lowest, 0, each.at_lowest),
                np.where(at_highest, 0, each.at_highest),
            ]
        return self._replace(
            lowest=lowest,
            highest=highest,
            longest=_longest(*longest),
            at_lowest=_longest(*low),
            at_highest=_longest(*high),
        )

    def _one_by_one(self, rows: Array) -> tuple[RunLengths, Flags]:
        """Return the same as `after`, from each single run."""
        gaps = np.isnan(rows)
        values = np.concatenate([self.last[None], rows])
        place = np.where(gaps, 0, np.arange(1, len(values))[:, None])
        values[1:] = np.take_along_axis(values, np.maximum.accumulate(place, axis=0), axis=0)
        changes = (values[1:] != values[:-1]) & ~gaps
        # Readings are counted from 1: an earlier run began before that.
        at, first = np.cumsum(~gaps, axis=0), 1 - self.run
        begun = np.maximum.accumulate(np.vstack([first, np.where(changes, at, first)]), axis=0)
        ended = np.where(changes, at - begun[:-1], 0)
        ended[ended <= SHORT] = 0

        lowest = np.fmin(self.lowest, np.fmin.reduce(rows, axis=0))
        highest = np.fmax(self.highest, np.fmax.reduce(rows, axis=0))
        sunk, risen = lowest < self.lowest, highest > self.highest
        low = values[:-1] == lowest
        high = (values[:-1] == highest) & ~low
        known = RunLengths(
            last=values[-1],
            lowest=lowest,
            highest=highest,
            run=at[-1] - begun[-1] + 1,
            # A run at a former end of the range turns out to have been inside it.
            longest=_longest(
                np.where(low | high, 0, ended),
                self.longest,
                np.where(sunk, self.at_lowest, 0),
                np.where(risen, self.at_highest, 0),
            ),
            at_lowest=_longest(np.where(low, ended, 0), np.where(sunk, 0, self.at_lowest)),
            at_highest=_longest(np.where(high, ended, 0), np.where(risen, 0, self.at_highest)),
        )
        return known, changes.any(axis=0)

    def _at(self, channels: npt.NDArray[np.intp]) -> RunLengths:
        return RunLengths._make(array[channels] for array in self)

    def _with(self, part: RunLengths, channels: npt.NDArray[np.intp]) -> RunLengths:
        def put(array: npt.NDArray[Any], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            array = array.copy()
            array[channels] = values
            return array

        return RunLengths._make(map(put, self, part))


def _as_long_rows(rows: Array) -> Array:
    """Return many rows (n, channels) as fewer, longer ones: NumPy reduces them in a third of the
    time.
    """
    n, channels = rows.shape
    many = n >= MANY and n % FOLDED == 0 and rows.flags.c_contiguous
    return rows.reshape(-1, FOLDED * channels) if many else rows


def _longest(*runs: Counts) -> Counts:
    return np.asarray(np.vstack(runs).max(axis=0))


def _has_long(same: Flags) -> Flags:
    """Return where `SHORT` successive rows each equal the one before."""
    if len(same) < SHORT:
        return np.zeros(same.shape[1], dtype=np.bool_)
    length = 1
    while length < SHORT:
        same = same[length:] & same[:-length]
        length *= 2
    return np.asarray(same.any(axis=0))
