"""The rows that a client process has learnt, put together again from outside.

What it was given is known, and its score lines say what it took gaps for. Only rows that
the root holds count, and of a process that was killed that is known at the end: rows wait
here until their reading is acknowledged, or until the stores are read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from submerge import Array


class Rebuilt:
    """The rows of one process.

    Parameters
    ----------
    names : sequence of str
        The channels.

    Attributes
    ----------
    unheard : list of (dim,)
        Rows that count, with gaps of which nobody has said what they were taken for.
    gaps : int
        Missing values in rows that count.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.unheard: list[Array] = []
        self.gaps = 0
        self._places = {name: place for place, name in enumerate(names)}
        self._rows: deque[tuple[Array, int]] = deque()
        self._first = 0  # index of the leftmost
        self._withheld: set[int] = set()

    def give(self, row: Array) -> None:
        """The process is given a row (dim,), NaN for a gap."""
        self._rows.append((row.copy(), int(np.count_nonzero(np.isnan(row)))))

    def fill(self, index: int, filled: Mapping[str, float]) -> None:
        """It has said what it took the gaps of its row `index` for."""
        row, _ = self._rows[index - self._first]
        for name, value in filled.items():
            row[self._places[name]] = value

    def withhold(self, index: int) -> None:
        """It has said that it does not learn its row `index`."""
        self._withheld.add(index)

    def count(self, until: int) -> Array:
        """Hand over the rows (n, dim) before `until` that are whole: these count from now on."""
        whole: list[Array] = []
        while self._first < until and self._rows:
            row, gaps = self._rows.popleft()
            withheld = self._first in self._withheld
            self._withheld.discard(self._first)
            self._first += 1
            if withheld:
                continue
            if 2 * gaps > len(row):
                continue  # a client does not learn what shows less than half
            self.gaps += gaps
            (self.unheard if np.isnan(row).any() else whole).append(row)
        return np.array(whole).reshape(len(whole), len(self._places))
