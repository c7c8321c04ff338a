"""DutyCycles: channels that go to and fro between two states, and how long they stay in each."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array

Flags = npt.NDArray[np.bool_]

# A channel has two states if readings keep close to two levels that are at least a scale apart. A
# reading near the middle changes no state, a gap neither state nor time. Levels move by at most
# their distance: a peak at switching on moves them little. Runs longer than `LONGEST_S` follow days
# and people, like a lamp's.

RUNS, WATCHED_S, LONGEST_S = 24, 86_400.0, 6 * 3600.0
TIMES, MORE = 2.0, 1.25
# Time after which the readings before count a third: of a level, and of distances to both.
LEVEL_S, SPREAD_S = 3600.0, 43_200.0
# Mean distance to the nearer level, over that of both, below which there are two states, and above
# which there are no more: noise has .3, a ramp .25, a sine .21.
CLOSE, APART = 0.1, 0.15
MEMORY = 400  # runs after which what was typical, and the longest beyond it, count a third


class Shown(NamedTuple):
    """What is told of a channel: for how long, how many times its bound, its level, another."""

    since_s: float
    times: float
    value: float
    other: float


class DutyCycles(NamedTuple):
    """Two states of each channel, lower and higher: an immutable set of arrays (channels,)."""

    low: Array  # level, NaN before the first reading
    high: Array
    spread: Array  # mean distance to the nearer one
    state: Array  # 0 or 1; NaN without
    run_s: Array  # of the current run; without two states, since the first reading
    known_s: Array  # since there are two states
    runs_low: Array  # finished ones
    runs_high: Array
    typical_low: Array  # mean logarithm of their seconds
    typical_high: Array
    longest_low: Array  # logarithm of seconds
    longest_high: Array

    @classmethod
    def none(cls, channels: int) -> DutyCycles:
        """Return the state before the first row."""
        zero, unknown = np.zeros(channels), np.full(channels, np.nan)
        return cls(unknown, unknown, np.ones(channels), unknown, *[zero] * 8)

    def _current(self) -> Array:
        """(3, channels), runs, their mean and the longest one, of the current state."""
        return np.asarray(np.where(self.state == 1, self[7::2], self[6::2]))

    @property
    def longest_s(self) -> Array:
        """(channels,), the longest finished run of the current state; 0 before there is one."""
        runs, _, longest = self._current()
        return np.asarray(np.where(runs > 0, np.exp(longest), 0.0))

    def shown(self, j: int) -> Shown:
        """Return for how long a channel is at its state, and the level of both."""
        levels = float(self.low[j]), float(self.high[j])
        value, other = levels[::-1] if self.state[j] == 1 else levels
        run_s = float(self.run_s[j])
        return Shown(run_s, run_s / max(float(self.longest_s[j]), 1.0), value, other)

    def bound_s(self, often: float) -> Array:
        """(channels,), longest run of the current state; `often`: false alarms a second, or 0."""
        runs, typical, longest = self._current()
        # Of n runs the longest is a times a typical one; by a power law, of N runs it is
        # a ** (log N / log n) times. N are those in the time that allows a state one false alarm.
        parts = 2.0 * max(1, int(np.count_nonzero(self.known_s)))
        times = parts / (often * np.maximum(self.known_s, 1.0)) if often else np.ones(len(runs))
        further = 1 + np.log(np.maximum(times, 1.0)) / np.log(np.maximum(runs, 2.0))
        most = np.maximum(longest + math.log(TIMES), typical + (longest - typical) * further)
        return np.asarray(np.exp(np.minimum(most, 700.0)))

    def too_long(self, often: float) -> Flags:
        """(channels,), whether the current run is too long."""
        enough = (np.minimum(self.runs_low, self.runs_high) >= RUNS) & (self.known_s >= WATCHED_S)
        enough &= np.maximum(self.longest_low, self.longest_high) <= math.log(LONGEST_S)
        # One of a day is how the channel is used from now on.
        enough &= self.run_s <= WATCHED_S
        return np.asarray(enough & (self.run_s > self.bound_s(often))) if enough.any() else enough

    @property
    def usual(self) -> Flags:
        """(channels,), whether a run has not lasted for much longer than runs before it."""
        return np.asarray((self.run_s > 0) & (self.run_s <= TIMES * self.longest_s))

    def together(self, channels: Flags) -> Flags:
        """(channels,), these and those that stay for as long: a plug's power and its current."""
        if not channels.any():
            return channels
        apart = np.abs(self.run_s - self.run_s[channels].max()) > 60  # seconds: of other devices
        return np.asarray(channels | (~apart & (self.run_s > self.longest_s) & (self.known_s > 0)))

    def normal(self, channels: Flags) -> DutyCycles:
        """Return it where a person calls the current runs of these channels normal."""
        length = np.log(np.maximum(self.run_s, 1.0))
        low, high = (
            np.where(channels & (self.state == state), np.maximum(longest, length), longest)
            for state, longest in enumerate((self.longest_low, self.longest_high))
        )
        return self._replace(longest_low=low, longest_high=high)

    def after(self, rows: Array, each_s: float, often: float = 0.0) -> DutyCycles:
        """Return it after scaled rows (n, channels), NaN for gaps, of so many seconds each."""
        # A day without two states, or less than a run of each a day: it follows people, or one odd
        # reading has made a level at which nothing is. It begins again.
        idle = self.known_s > WATCHED_S * (1 + np.minimum(self.runs_low, self.runs_high))
        idle |= (self.known_s == 0) & (self.run_s > WATCHED_S)
        if idle.any():
            fresh = zip(DutyCycles.none(len(idle)), self, strict=True)
            begun = DutyCycles(*(np.where(idle, new, old) for new, old in fresh))
            return begun.after(rows, each_s, often)
        rows = np.clip(rows, -1e12, 1e12)  # infinities, too
        here = ~np.isnan(rows)
        first = rows[here.argmax(axis=0), np.arange(rows.shape[1])]
        low = np.where(np.isnan(self.low), first, self.low)
        high = np.where(np.isnan(self.high), first, self.high)
        place = (rows - low) / np.maximum(high - low, 1e-9)
        near = place > 0.5
        reach = np.maximum(high - low, 1.0)
        off = np.clip(np.where(near, rows - high, rows - low), -reach, reach)
        off = np.where(here, off, 0.0)
        n, n_high = here.sum(axis=0), near.sum(axis=0)
        to_high = np.where(near, off, 0.0).sum(axis=0)
        to_low = off.sum(axis=0) - to_high
        distance = np.abs(off).sum(axis=0) / np.maximum(n, 1)
        spread = self.spread + (1 - np.exp(-n * each_s / SPREAD_S)) * (distance - self.spread)
        low, high = (
            level + (1 - np.exp(-rows * each_s / LEVEL_S)) * off / np.maximum(rows, 1)
            for level, off, rows in ((low, to_low, n - n_high), (high, to_high, n_high))
        )
        gap = high - low
        two = (gap >= 1) & (spread < np.where(self.known_s > 0, APART, CLOSE) * gap)

        known, lost = self._replace(low=low, high=high, spread=spread), (self.known_s > 0) & ~two
        if lost.any():
            counted = (np.where(lost, 0.0, each) for each in self[4:])
            known = DutyCycles(low, high, spread, np.where(lost, np.nan, self.state), *counted)
        known = known._replace(run_s=known.run_s + np.where(two, 0.0, n * each_s))
        if not two.any():
            return known
        on, out = (place > 2 / 3) & two, (place < 1 / 3) & two
        changes = ((on & (known.state != 1)) | (out & (known.state != 0))).any(axis=0)
        passed_s = np.where(two, n * each_s, 0.0)
        run_s = np.where(changes, known.run_s, known.run_s + passed_s)
        known = known._replace(run_s=run_s, known_s=known.known_s + passed_s)
        if changes.any():
            bounds, columns = known.bound_s(often), [each.copy() for each in known]
            for j in np.flatnonzero(changes).tolist():
                moves = np.where(on[:, j], 1, np.where(out[:, j], 0, -1))[here[:, j]]
                _follow(columns, j, moves.tolist(), each_s, float(bounds[j]))
            known = DutyCycles(*columns)
        return known


def _follow(columns: list[Array], j: int, moves: list[int], each_s: float, bound_s: float) -> None:
    """Take a channel's rows into the columns: 1 for high, 0 for low, -1 for neither."""
    state, run_s = columns[3], columns[4]
    for move in moves:
        if move not in (-1, state[j]):
            # The first row begins a run, and ends none.
            if not np.isnan(state[j]):
                runs, typical, longest = columns[6 + int(state[j]) :: 2]
                length = math.log(max(run_s[j], each_s))
                # The next run that is too long is found as well.
                if bound_s < run_s[j] <= WATCHED_S and runs[j] >= RUNS:
                    length = min(length, longest[j] + math.log(MORE))
                runs[j] += 1
                typical[j] += (length - typical[j]) / min(runs[j], MEMORY)
                longest[j] = max(length, longest[j] - (longest[j] - typical[j]) / MEMORY)
            state[j], run_s[j], bound_s = move, 0.0, math.inf
        run_s[j] += each_s
