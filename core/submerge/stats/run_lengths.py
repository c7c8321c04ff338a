"""Repeats: for how long each channel has been one number, and for how long it ever was.

A sensor in good order seldom says the same thing twice: its noise is larger than its last digit.
One that is stuck says nothing else. So does one that is at its end, light at night or a scale at
its stop, and what tells the two apart is where they stand: inside the range that it has been seen
in, a sensor has no reason to be still. So runs at either end of the range are counted apart, and
join the others when the range turns out to be wider.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SHORT = 8
"""Readings alike after a first one that are nothing: such runs are not looked at. A power of 2."""

RARE = 20
"""A channel that has repeated itself for so many readings is one that does."""

TIMES, LEAST = 6, 10
"""How many times its longest run, taken for no less than so many readings, is no chance."""


class RunLengths(NamedTuple):
    """What is known of each channel after some rows: a value of arrays (channels,).

    last, lowest, highest : float64, readings; NaN before the first
    run : int64, readings for which it has been `last`
    longest : int64, the longest run that has ended, inside its range; 0 for none that counts
    at_lowest, at_highest : int64, the same at its ends
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
        """Return what is known before the first row."""
        unknown, never = np.full(channels, np.nan), np.zeros(channels, dtype=np.int64)
        return cls(unknown, unknown, unknown, never, never, never, never)

    @property
    def unusual(self) -> Flags:
        """(channels,), where one that never repeats itself for long does, inside its range."""
        inside = (self.lowest < self.last) & (self.last < self.highest)
        patience = TIMES * np.maximum(self.longest, LEAST)
        return np.asarray(inside & (self.longest < RARE) & (self.run > patience))

    def after(self, rows: Array) -> tuple[RunLengths, Flags]:
        """Return what is known some rows later, and which channels have changed in them.

        Parameters
        ----------
        rows : (n, channels)
            At least one, oldest first. NaN is no reading: a run neither ends nor grows by it.

        Notes
        -----
        However rows are cut, the result is the same.
        """
        said = np.concatenate([self.last[None], rows])
        # NaN is not even like itself: a channel that was never heard has no run to go on with.
        same = said[1:] == said[:-1]
        moved = ~same.all(axis=0)
        known = self._replace(
            last=rows[-1].copy(),
            lowest=np.fmin(self.lowest, np.fmin.reduce(rows, axis=0)),
            highest=np.fmax(self.highest, np.fmax.reduce(rows, axis=0)),
            run=np.where(moved, same[::-1].argmin(axis=0) + 1, self.run + len(rows)),
        )
        # Next to all runs that have ended are short. Only where one is not, or a gap is in the
        # way, or an end of the range moved on from runs at it, is it worth while to look at each.
        long = moved & (_has_long(same) | (self.run + same.argmin(axis=0) > SHORT))
        long |= (known.lowest < self.lowest) & (self.at_lowest > 0)
        long |= (known.highest > self.highest) & (self.at_highest > 0)
        looked = np.flatnonzero(long | np.isnan(said).any(axis=0))
        if len(looked):
            part, moved[looked] = self._at(looked)._one_by_one(rows[:, looked])
            known = known._with(part, looked)
        return known, moved

    def _one_by_one(self, rows: Array) -> tuple[RunLengths, Flags]:
        """Do what `after` does, looking at each run."""
        gaps = np.isnan(rows)
        said = np.concatenate([self.last[None], rows])
        place = np.where(gaps, 0, np.arange(1, len(said))[:, None])
        said[1:] = np.take_along_axis(said, np.maximum.accumulate(place, axis=0), axis=0)
        changes = (said[1:] != said[:-1]) & ~gaps
        # Counted in readings, from 1: a run that came along began before that.
        at, first = np.cumsum(~gaps, axis=0), 1 - self.run
        begun = np.maximum.accumulate(np.vstack([first, np.where(changes, at, first)]), axis=0)
        ended = np.where(changes, at - begun[:-1], 0)
        ended[ended <= SHORT] = 0

        lowest = np.fmin(self.lowest, np.fmin.reduce(rows, axis=0))
        highest = np.fmax(self.highest, np.fmax.reduce(rows, axis=0))
        sunk, risen = lowest < self.lowest, highest > self.highest
        low = said[:-1] == lowest
        high = (said[:-1] == highest) & ~low
        known = RunLengths(
            last=said[-1],
            lowest=lowest,
            highest=highest,
            run=at[-1] - begun[-1] + 1,
            # A run at what was an end of the range, and is no more, was inside it after all.
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


def _longest(*runs: Counts) -> Counts:
    return np.asarray(np.vstack(runs).max(axis=0))


def _has_long(same: Flags) -> Flags:
    """Where `SHORT` rows one after the other are each like the one before."""
    if len(same) < SHORT:
        return np.zeros(same.shape[1], dtype=np.bool_)
    length = 1
    while length < SHORT:
        same = same[length:] & same[:-length]
        length *= 2
    return np.asarray(same.any(axis=0))
