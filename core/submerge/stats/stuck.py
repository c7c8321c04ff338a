"""StuckDetector: how well other channels predict each channel, and which channels are stuck.

A stuck channel is not always anomalous: it may repeat a normal number, and a model that keeps
learning it learns that the channel is unrelated to the rest. Two rules find a stuck channel
from its readings and from their predictions by the other channels:

1. It repeats one number, and the prediction has moved by far more than its typical error.
   This distinguishes a stuck light sensor from night.
2. It repeats one number inside its range and has never done so for long (`RunLengths`).
   This needs no prediction.

A channel is no longer stuck when it reads another number, or nothing. What is predicted while it
reads nothing does not count: the channels that predict it best, of the same device, are then mostly
silent as well. A channel that has read
one number from the start is not in use, and not stuck. Each channel is treated separately, with
a few numbers of state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.errors import ShapeError
from submerge.stats.run_lengths import Counts, Flags, RunLengths

MEMORY = 20_000
"""Readings after which one counts a third: a week at two a minute."""

SHARE = 2
"""At first that is the number of readings over this: predictions by an early model fade soon."""

ENOUGH = 1000
"""Readings of a channel before it is classified."""

WORTH = 0.5
"""Least R2 of a useful prediction."""

SMOOTH = 10
"""Readings over which predictions are averaged: their noise is not movement."""

SETTLED = 30
"""Length of a run after which that average no longer depends on earlier readings."""

FAR = 5.0
"""Typical errors that the average must then move for the channel to be stuck."""

LEAST = 1e-4
"""Least typical square error, over the channel's variance."""

CHUNK = 128
_RECENT = (1 - 1 / SMOOTH) ** np.arange(CHUNK - 1, -1, -1) / SMOOTH


class Habits(NamedTuple):
    """Behaviour of each channel: an immutable set of arrays (channels,).

    weight, mean, scatter, error : float64, number of readings learnt, faded; their mean; summed
        squared distances to it, and to the predictions
    learnt : int64, readings learnt, not faded
    others, others_then : float64, the averaged prediction by the others, now and when the
        current run began; NaN before the first row
    stuck : bool
    """

    weight: Array
    mean: Array
    scatter: Array
    error: Array
    learnt: Counts
    others: Array
    others_then: Array
    stuck: Flags

    @classmethod
    def none(cls, channels: int) -> Habits:
        """Return the state before the first row."""
        zero, unknown = np.zeros(channels), np.full(channels, np.nan)
        never, stuck = np.zeros(channels, dtype=np.int64), np.zeros(channels, dtype=np.bool_)
        return cls(zero, zero, zero, zero, never, unknown, unknown, stuck)

    def relocated(self, by: Array | float = 0.0) -> Habits:
        """Return them where predictions are made about another mean from now on.

        That the predictions jump then says nothing of a channel that stood still.

        by : how far each channel's normal readings have moved, as far as it is known
        """
        unknown = np.full(len(self.mean), np.nan)
        return self._replace(mean=self.mean + by, others=unknown, others_then=unknown)


class StuckDetector:
    """Learns how a node's channels behave, and finds stuck ones.

    Parameters
    ----------
    channels : int
        Leading columns of a row; lagged columns after them are ignored.
    run_lengths, habits : optional
        State to continue from.

    Attributes
    ----------
    run_lengths : RunLengths
    habits : Habits
        The whole state. Both are immutable: no array is ever changed.
    """

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
        """(channels,), the measured share of each channel's variance that the others predict.

        NaN before enough readings, and where all are equal. Negative where the channel's own mean
        predicts better.
        """
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
        self,
        rows: Array,
        predicted: Array,
        learns: Flags | None = None,
        held: Flags | None = None,
    ) -> None:
        """Process readings, oldest first.

        Parameters
        ----------
        rows : (n, dim)
            Scaled readings; gaps are NaN, not filled.
        predicted : (n, channels)
            Predictions by the others: filled rows less `Reconstruction.left_out`.
        learns : (n,) of bool, optional
            Rows with typical errors, by default all: rows of an alarm are not learnt, but checked
            for stuck channels. Stuck channels are not learnt.
        held : (n, channels) of bool, optional
            Numbers that are repeated because no new one has come: these are no readings of a run.

        Notes
        -----
        O(channels) a row. Rows are taken in chunks; `stuck` changes at the end of each.
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
        """Find stuck channels."""
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
        """Learn how each channel varies, and how well the others predict it.

        plain : whether it is known that there is no gap, and no stuck channel
        """
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
    """Return each channel's first reading that is no gap."""
    first = rows[np.argmax(~np.isnan(rows), axis=0), np.arange(rows.shape[1])]
    return np.where(np.isnan(first), otherwise, first)


def _ratio(above: Array, below: Array, where: Flags) -> Array:
    return np.asarray(np.divide(above, below, out=np.full(len(above), np.nan), where=where))
