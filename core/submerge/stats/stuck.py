"""Senses: how the channels of a node behave: what others tell of each, and which are stuck.

A stuck channel is not always odd: what it repeats may be a number like any other, and a model that
goes on learning it learns that this channel has nothing to do with the rest. Two rules find
it, from what it says and what the others say that it should:

1. It repeats one number, and what the others say of it has moved by far more than they usually
   err. That tells a light sensor that is stuck from night.
2. It repeats one number, has never done so for long, and stands inside its range
   (`RunLengths`). That needs no others.

It is not stuck anymore as soon as it says another number, or nothing. A channel that has been one
number from the start is not in use, and not stuck. Each channel is judged by itself, from a few
numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.errors import ShapeError
from submerge.stats.run_lengths import Counts, Flags, RunLengths

MEMORY = 20_000
"""Readings after which one counts for a third: a week at two a minute."""

SHARE = 2
"""While they are few, that is half of them: what a young model said is soon forgotten."""

ENOUGH = 1000
"""Readings of a channel before anything is said of it."""

WORTH = 0.5
"""The R2 from which others tell enough of a channel to be asked."""

SMOOTH = 10
"""Readings over which what others say is averaged: their noise is no movement."""

SETTLED = 30
"""Readings alike after which that average has forgotten what was before them."""

FAR = 5.0
"""How many usual errors it then has to move for the channel to be stuck."""

LEAST = 1e-4
"""The least that a usual square error counts for, of the channel's variance."""

CHUNK = 128
_RECENT = (1 - 1 / SMOOTH) ** np.arange(CHUNK - 1, -1, -1) / SMOOTH


class Habits(NamedTuple):
    """What is known of each channel: a value of arrays (channels,).

    weight, mean, scatter, error : float64: readings learnt, faded; their mean; squared distances
        to it; and to what the others said
    learnt : int64, readings learnt, none faded
    others, others_then : float64: what the others say, averaged, now, and when the present run
        began; NaN before the first row
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
        """Return what is known before the first row."""
        zero, unknown = np.zeros(channels), np.full(channels, np.nan)
        never, stuck = np.zeros(channels, dtype=np.int64), np.zeros(channels, dtype=np.bool_)
        return cls(zero, zero, zero, zero, never, unknown, unknown, stuck)


class StuckDetector:
    """What a node knows of its channels.

    Parameters
    ----------
    channels : int
        The leading numbers of a row; what follows (lags) is not looked at.
    repeats, habits : optional
        Those of another, to go on from.

    Attributes
    ----------
    repeats : Repeats
    habits : Habits
        All that there is to save. They are values: no array is ever changed.
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
        """(channels,), the share of each channel's variance that the others tell, as measured.

        NaN before enough readings, and where none differed. Negative where the channel's own mean
        says more than they do.
        """
        known = (self.habits.learnt >= ENOUGH) & (self.habits.scatter > 0)
        return np.asarray(1 - _ratio(self.habits.error, self.habits.scatter, known))

    @property
    def virtual(self) -> Flags:
        """(channels,), where the others tell enough to stand in for the sensor."""
        enough = (self.habits.learnt >= ENOUGH) & (self.habits.scatter > 0)
        return np.asarray(enough & (self.habits.error <= (1 - WORTH) * self.habits.scatter))

    @property
    def usual(self) -> Array:
        """(channels,), mean square of how far off the others are; NaN before enough readings."""
        return _ratio(self.habits.error, self.habits.weight, self.habits.learnt >= ENOUGH)

    @property
    def stuck(self) -> tuple[int, ...]:
        """The channels that are stuck, by number; `repeats.run` says for how many readings."""
        return tuple(np.flatnonzero(self.habits.stuck).tolist())

    def see(self, rows: Array, predicted: Array, learns: Flags | None = None) -> None:
        """Take in readings, oldest first.

        Parameters
        ----------
        rows : (n, dim)
            As they were read, scaled: NaN where nothing was, whatever it was filled with.
        predicted : (n, channels)
            What the others say: filled rows less `Reconstruction.left_out`.
        learns : (n,) of bool, optional
            Rows in which errors are usual ones: not those of an alarm. The others are looked at
            too, for what is stuck; of a stuck channel nothing is learnt. Left out, all are usual.

        Notes
        -----
        O(channels) a row. Rows are taken in chunks, and what is stuck is said at the end of one.
        """
        rows = rows[:, : self.channels]
        for first in range(0, len(rows), CHUNK):
            part = slice(first, first + CHUNK)
            self._watch(rows[part], predicted[part])
            self._learn(rows[part], predicted[part], None if learns is None else learns[part])

    def _watch(self, rows: Array, predicted: Array) -> None:
        """Say what is stuck."""
        was, run = self.habits, self.run_lengths.run
        self.run_lengths, moved = self.run_lengths.after(rows)
        before = predicted[0] if np.isnan(was.others[0]) else was.others
        others = (1 - 1 / SMOOTH) ** len(rows) * before + _RECENT[-len(rows) :] @ predicted
        then = np.where(moved | (run < SETTLED), others, was.others_then)
        stuck = was.stuck & ~moved
        if (self.run_lengths.run > SETTLED).any():
            # Others that never err at all do, by rounding.
            usual = np.maximum(was.error, LEAST * was.scatter)
            elsewhere = self.virtual & (was.weight * (others - then) ** 2 > FAR**2 * usual)
            stuck |= (was.learnt >= ENOUGH) & (elsewhere | self.run_lengths.unusual)
        # What is silent repeats nothing: it is missing, or out of service.
        stuck &= ~np.isnan(rows).all(axis=0)
        self.habits = was._replace(others=others, others_then=then, stuck=stuck)

    def _learn(self, rows: Array, predicted: Array, learns: Flags | None) -> None:
        """Learn how a channel varies, and how much of it the others tell."""
        was, n = self.habits, len(rows)
        # About its mean, or a large offset would cost digits; at first about anything near.
        mean = was.mean if was.learnt.all() else np.where(was.learnt > 0, was.mean, predicted[0])
        off, error = rows - mean, rows - predicted
        used = None
        if learns is not None or was.stuck.any() or np.isnan(off).any():
            used = ~(np.isnan(rows) | was.stuck)
            if learns is not None:
                used &= learns[:, None]
            off, error, n = np.where(used, off, 0.0), np.where(used, error, 0.0), used.sum(axis=0)
        learnt = was.learnt + n
        fade = np.exp(-n / np.clip(learnt / SHARE, 1, MEMORY))
        weight = fade * was.weight + n
        step = off.sum(axis=0) / np.maximum(weight, 1)
        scatter = fade * was.scatter + np.einsum("ij,ij->j", off, off) - step**2 * weight
        self.habits = was._replace(
            weight=weight,
            mean=mean + step,
            scatter=np.maximum(scatter, 0.0),
            error=fade * was.error + np.einsum("ij,ij->j", error, error),
            learnt=learnt,
        )


def _ratio(above: Array, below: Array, where: Flags) -> Array:
    return np.asarray(np.divide(above, below, out=np.full(len(above), np.nan), where=where))
