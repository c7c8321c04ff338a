"""StuckDetector: how well other channels predict each channel, and which channels are stuck.

A model that keeps learning a stuck channel learns that it is unrelated to the rest. Two rules find
it, though the number that it repeats may be normal:

1. The prediction by the others has moved by far more than its typical error. This distinguishes a
   stuck light sensor from night.
2. It is inside its range and has never repeated one number for long (`RunLengths`).

What is predicted while it reads nothing does not count: the channels that predict it best, of the
same device, are then mostly silent as well. A channel that has read one number from the start is
not in use, and not stuck.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import ShapeError

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SHORT = 8  # Repeats of a first reading that are ignored. A power of 2.
RARE = 20  # longest run, in readings, from which long runs are normal for a channel

TIMES, LEAST_RUN = 6, 10
"""A run is unusual beyond `TIMES` times the longest one before, or `TIMES * LEAST` readings."""


MANY, FOLDED = 512, 8
"""Rows from which so many are laid side by side, to find the range of each channel."""


class RunLengths(NamedTuple):
    """Runs of each channel after some rows: an immutable set of arrays (channels,)."""

    # float64, readings; NaN before the first
    last: Array
    lowest: Array
    highest: Array
    run: Counts  # int64, number of readings in a row equal to `last`
    longest: Counts  # int64, the longest finished run inside the range; 0 if there is none
    # int64, the longest finished run at either end of the range
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
        patience = TIMES * np.maximum(self.longest, LEAST_RUN)
        return np.asarray(inside & (self.longest < RARE) & (self.run > patience))

    def all_move(self, rows: Array) -> bool:
        """Whether there are rows, and no reading of them is a gap or repeats the one before."""
        if not len(rows) or (rows[0] == self.last).any() or (rows[1:] == rows[:-1]).any():
            return False
        return not np.isnan(rows.sum())

    def after(self, rows: Array) -> tuple[RunLengths, Flags]:
        """Return the runs after more rows (n, channels), and which channels have changed."""
        # A run neither ends nor grows by a gap. However rows are cut, it is the same.
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
        """Return the runs with the range and the longest ones of earlier readings, too."""
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
    """Return many rows (n, channels) as fewer, longer ones, reduced in a third of the time."""
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


MEMORY = 20_000  # readings after which one counts a third: a week at two a minute

SHARE = 2
"""At first that is the number of readings over this: predictions by an early model fade soon."""

ENOUGH = 1000  # readings of a channel before it is classified
WORTH = 0.5  # least R2 of a useful prediction
SMOOTH = 10  # readings over which predictions are averaged: their noise is not movement
SETTLED = 30  # length of a run after which that average no longer depends on earlier readings
FAR = 5.0  # typical errors that the average must then move for the channel to be stuck
LONGER = 2  # times the longest run inside its range that the channel must then be in
LEAST = 1e-4  # least typical square error, over the channel's variance

CHUNK = 128
_RECENT = (1 - 1 / SMOOTH) ** np.arange(CHUNK - 1, -1, -1) / SMOOTH


class Habits(NamedTuple):
    """Behaviour of each channel: an immutable set of arrays (channels,)."""

    weight: Array  # readings learnt, faded
    mean: Array
    scatter: Array  # summed squared distances to the mean
    error: Array  # summed squared distances to the predictions
    learnt: Counts  # readings, not faded
    others: Array  # the averaged prediction by the others, NaN before the first row
    others_then: Array  # the same when the current run began
    stuck: Flags

    @classmethod
    def none(cls, channels: int) -> Habits:
        """Return the state before the first row."""
        zero, unknown = np.zeros(channels), np.full(channels, np.nan)
        never, stuck = np.zeros(channels, dtype=np.int64), np.zeros(channels, dtype=np.bool_)
        return cls(zero, zero, zero, zero, never, unknown, unknown, stuck)

    def relocated(self, by: Array | float = 0.0) -> Habits:
        """Return them for predictions about another mean: their jump says nothing of a channel."""
        unknown = np.full(len(self.mean), np.nan)
        return self._replace(mean=self.mean + by, others=unknown, others_then=unknown)


class StuckDetector:
    """Learns how a node's channels behave, and finds stuck ones; lagged columns are ignored."""

    def __init__(
        self, channels: int, run_lengths: RunLengths | None = None, habits: Habits | None = None
    ) -> None:
        self.channels = channels
        self.run_lengths = RunLengths.none(channels) if run_lengths is None else run_lengths
        self.habits = Habits.none(channels) if habits is None else habits
        for array in (*self.run_lengths, *self.habits):
            if array.shape != (channels,):
                raise ShapeError("habits", expected=f"({channels},)", got=array.shape)

    @property
    def r2(self) -> Array:
        """(channels,), the share of each channel's variance that the others predict, or NaN."""
        known = (self.habits.learnt >= ENOUGH) & (self.habits.scatter > 0)
        return np.asarray(1 - _ratio(self.habits.error, self.habits.scatter, known))

    @property
    def virtual(self) -> Flags:
        """(channels,), whether the prediction can replace the sensor."""
        enough = (self.habits.learnt >= ENOUGH) & (self.habits.scatter > 0)
        return np.asarray(enough & (self.habits.error <= (1 - WORTH) * self.habits.scatter))

    @property
    def typical_squares(self) -> Array:
        """(channels,), mean square error of the predictions; NaN before enough readings."""
        return _ratio(self.habits.error, self.habits.weight, self.habits.learnt >= ENOUGH)

    @property
    def stuck(self) -> tuple[int, ...]:
        """The numbers of stuck channels; `run_lengths.run` counts their repeated readings."""
        return tuple(np.flatnonzero(self.habits.stuck).tolist())

    def update(
        self, rows: Array, predicted: Array, learns: Flags | None = None, held: Flags | None = None
    ) -> None:
        """Process scaled readings (n, dim), oldest first; gaps are NaN, not filled.

        predicted : (n, channels), filled rows less `Reconstruction.left_out`.
        learns : (n,), rows with typical errors; those of an alarm are checked alone.
        held : (n, channels), numbers repeated because no new one came: no readings of a run.
        """
        rows = rows[:, : self.channels]
        learns = None if learns is None or learns.all() else learns
        # Mostly no reading repeats the one before: then no channel can be stuck.
        all_move = held is None and self.run_lengths.all_move(rows)
        if all_move:
            self.run_lengths, _ = self.run_lengths.after(rows)
        for first in range(0, len(rows), CHUNK):
            part = slice(first, first + CHUNK)
            if all_move:
                others = self._others(predicted[part])
                stuck = np.zeros_like(self.habits.stuck)
                self.habits = self.habits._replace(others=others, others_then=others, stuck=stuck)
            else:
                self._watch(rows[part], predicted[part], None if held is None else held[part])
            which = None if learns is None else learns[part]
            self._learn(rows[part], predicted[part], which, plain=all_move)

    def _watch(self, rows: Array, predicted: Array, held: Flags | None) -> None:
        was, run = self.habits, self.run_lengths.run
        self.run_lengths, moved = self.run_lengths.after(
            rows if held is None else np.where(held, np.nan, rows)
        )
        others = self._others(predicted, np.isnan(rows))
        fresh = moved | (run < SETTLED) | np.isnan(was.others_then)
        then = np.where(fresh, others, was.others_then)
        stuck = was.stuck & ~moved
        if (self.run_lengths.run > SETTLED).any():
            # Perfect predictions still err by rounding.
            typical = np.maximum(was.error, LEAST * was.scatter)
            elsewhere = self.virtual & (was.weight * (others - then) ** 2 > FAR**2 * typical)
            # One that mostly repeats a number, like a setpoint, does so for as long as before.
            elsewhere &= self.run_lengths.run > LONGER * self.run_lengths.longest
            stuck |= (was.learnt >= ENOUGH) & (elsewhere | self.run_lengths.unusual)
        # A silent channel is missing or out of service, not stuck.
        if stuck.any():
            stuck &= ~np.isnan(rows).all(axis=0)
        self.habits = was._replace(others=others, others_then=then, stuck=stuck)

    def _others(self, predicted: Array, gaps: Flags | None = None) -> Array:
        """Return the averaged predictions after more of them; those of gaps change nothing."""
        n, was = len(predicted), self.habits.others
        before = predicted[0] if np.isnan(was[0]) else was
        if gaps is not None and gaps.any():
            predicted = np.where(gaps, before, predicted)
        return np.asarray((1 - 1 / SMOOTH) ** n * before + _RECENT[-n:] @ predicted)

    def _learn(self, rows: Array, predicted: Array, learns: Flags | None, *, plain: bool) -> None:
        """Learn how channels vary, and what others predict; `plain`: no gap, none stuck."""
        was, n = self.habits, len(rows)
        # Deviations are taken about the mean, at first about a reading: offsets cost digits, and a
        # channel whose readings are all equal has no scatter, not even of rounding.
        mean = was.mean
        if not was.learnt.all():
            mean = np.where(was.learnt > 0, was.mean, _first_known(rows, predicted[0]))
        off, error = rows - mean, rows - predicted
        total = off.sum(axis=0)
        known = plain or not (was.stuck.any() or np.isnan(total).any())
        if learns is not None or not known:
            used = ~(np.isnan(rows) | was.stuck)
            if learns is not None:
                used &= learns[:, None]
            off, error, n = np.where(used, off, 0.0), np.where(used, error, 0.0), used.sum(axis=0)
            total = off.sum(axis=0)
        learnt = was.learnt + n
        fade = np.exp(-n / np.minimum(np.maximum(learnt / SHARE, 1), MEMORY))
        weight = fade * was.weight + n
        step = total / np.maximum(weight, 1)
        scatter = fade * was.scatter + np.einsum("ij,ij->j", off, off) - step**2 * weight
        self.habits = was._replace(
            weight=weight,
            mean=mean + step,
            scatter=np.maximum(scatter, 0.0),
            error=fade * was.error + np.einsum("ij,ij->j", error, error),
            learnt=learnt,
        )


def _first_known(rows: Array, otherwise: Array) -> Array:
    first = rows[np.argmax(~np.isnan(rows), axis=0), np.arange(rows.shape[1])]
    return np.where(np.isnan(first), otherwise, first)


def _ratio(above: Array, below: Array, where: Flags) -> Array:
    return np.asarray(np.divide(above, below, out=np.full(len(above), np.nan), where=where))
