"""ColumnRanges: notes about channels that say nothing, or hold values that mark something else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from submerge import Array
from submerge.judge.prepare import LARGEST_SCALED

FEWEST = 3
"""Rows of an outermost value from which it marks something."""

APART = 2.0
"""How far it is then from all others, over the range of these."""


class _Edge:
    """The outermost value of each channel, how often it came, and the next one."""

    def __init__(self, n: int) -> None:
        self.value: Array = np.full(n, np.inf)
        self.rows: Array = np.zeros(n)
        self.next: Array = np.full(n, np.inf)

    def add(self, rows: Array) -> None:
        """Take rows (n, channels) into account; the least value is the outermost."""
        # fmin passes over NaN.
        value = np.fmin.reduce(rows, axis=0, initial=np.inf)
        count = (rows == value).sum(axis=0)
        after = np.fmin.reduce(np.where(rows > value, rows, np.inf), axis=0, initial=np.inf)
        lower, same = value < self.value, value == self.value
        self.next = np.where(
            lower,
            np.minimum(self.value, after),
            np.minimum(self.next, np.where(same, after, value)),
        )
        self.rows = np.where(lower, count, self.rows + np.where(same, count, 0))
        self.value = np.minimum(self.value, value)


class ColumnRanges:
    """The least and greatest value of each channel, and how far they are from all others."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._low, self._high = _Edge(len(names)), _Edge(len(names))

    def add(self, rows: Array) -> None:
        """Take rows (n, channels) into account."""
        self._low.add(rows)
        self._high.add(-rows)

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
                    f"channel {name} goes from {low:g} to {high:g}: rows with numbers above"
                    f" {LARGEST_SCALED:g} are left out"
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
                    " gaps; if the machine stands still then, leave it out (--when)"
                )
