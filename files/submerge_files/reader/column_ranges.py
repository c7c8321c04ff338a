"""ColumnRanges: notes about channels that say nothing, or hold values that mark something else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from submerge import Array
from submerge.judge.prepare import LARGEST_SCALED

FEWEST = 3
"""Rows of an outermost value from which it marks something."""

APART = 2.0
"""How far it is then from all others, over the range of these."""


FOLDED = 8
"""Rows that are laid side by side to find ranges: NumPy reduces long rows sooner than many."""


class _Edge:
    """The outermost value of each channel, how often it came, and the next one.

    n : Channels.
    sign : 1 for the least values, -1 for the greatest, which are held with that sign.
    """

    def __init__(self, n: int, sign: float) -> None:
        self.value: Array = np.full(n, np.inf)
        self.rows: Array = np.zeros(n)
        self.next: Array = np.full(n, np.inf)
        self._sign = sign
        # fmin and fmax pass over NaN.
        self._outermost = np.fmin if sign > 0 else np.fmax

    def add(self, rows: Array) -> None:
        """Take rows (n, channels) into account."""
        value = self._edge_of(rows)
        reached = np.flatnonzero(value <= self.value)
        self.next = np.minimum(self.next, np.where(value <= self.value, np.inf, value))
        # Mostly no channel goes as far as it has gone before, and nothing is to be counted.
        if len(reached):
            self._count(self._sign * rows[:, reached], value[reached], reached)

    def _edge_of(self, rows: Array) -> Array:
        """Return the outermost value of each channel."""
        width = len(self.value)
        if len(rows) % FOLDED == 0 and rows.flags.c_contiguous:
            rows = rows.reshape(-1, FOLDED * width)
        nothing = self._sign * np.inf
        folded = self._outermost.reduce(rows, axis=0, initial=nothing).reshape(-1, width)
        return np.asarray(self._sign * self._outermost.reduce(folded, axis=0, initial=nothing))

    def _count(self, rows: Array, value: Array, channels: npt.NDArray[np.intp]) -> None:
        """Count the values of some channels that are as far out as any before, or further."""
        count = (rows == value).sum(axis=0)
        after = np.fmin.reduce(np.where(rows > value, rows, np.inf), axis=0, initial=np.inf)
        held, before = self.value[channels], self.next[channels]
        lower = value < held
        self.next[channels] = np.minimum(np.where(lower, held, before), after)
        self.rows[channels] = np.where(lower, count, self.rows[channels] + count)
        self.value[channels] = value


class ColumnRanges:
    """The least and greatest value of each channel, and how far they are from all others."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._low, self._high = _Edge(len(names), 1.0), _Edge(len(names), -1.0)

    def add(self, rows: Array) -> None:
        """Take rows (n, channels) into account."""
        self._low.add(rows)
        self._high.add(rows)

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each channel that has one."""
        for i, name in enumerate(self._names):
            low, high = float(self._low.value[i]), -float(self._high.value[i])
            if low > high:
                yield f"channel {name} has no value in any row"
            elif low == high:
                yield f"channel {name} is {low:g} in all rows"
            elif max(-low, high) >= LARGEST_SCALED:
                yield (
                    f"channel {name} goes from {low:g} to {high:g}: numbers above"
                    f" {LARGEST_SCALED:g} are no readings; their rows are not learnt, and judged as"
                    f" if they were that many scales of the channel"
                )
            else:
                yield from self._marks(i, low, high)

    def _marks(self, i: int, low: float, high: float) -> Iterator[str]:
        """Yield a sentence for a value that is far from all others, and comes often."""
        second, last = float(self._low.next[i]), -float(self._high.next[i])
        for edge, value, begin, end, gap in (
            (self._low, low, second, high, second - low),
            (self._high, high, low, last, high - last),
        ):
            if edge.rows[i] >= FEWEST and end > begin and gap > APART * (end - begin):
                yield (
                    f"channel {self._names[i]} is {value:g} in {int(edge.rows[i]):,} rows, and from"
                    f" {begin:g} to {end:g} in all others: if that marks missing values, make them"
                    " gaps; if the machine stands still then, leave these rows out (--when of fit,"
                    " detect and score)"
                )
