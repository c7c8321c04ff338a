"""The rows that a client process has learnt, reconstructed from outside.

The demo knows what it gave the process, and score lines show what it filled gaps with. Only rows
that the root holds count; for a killed process that is known at the end. So rows wait here until
they are acknowledged, or until the stores are read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from submerge import Array


class Rebuilt:
    """The rows of one process, with these channels.

    Attributes
    ----------
    unheard : list of (dim,)
        Rows that count, with gaps that no score line showed the filling of.
    gaps : int
        Missing values in rows that count.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.unheard: list[Array] = []
        self.gaps = 0
        self._places = {name: place for place, name in enumerate(names)}
        self._rows: deque[tuple[Array, int]] = deque()
        self._first = 0  # index of the first in the queue
        self._withheld: set[int] = set()

    def give(self, row: Array) -> None:
        """Note that the process gets a row (dim,), NaN for a gap."""
        self._rows.append((row.copy(), int(np.count_nonzero(np.isnan(row)))))

    def fill(self, index: int, filled: Mapping[str, float]) -> None:
        """Note what it filled the gaps of its row `index` with."""
        row, _ = self._rows[index - self._first]
        for name, value in filled.items():
            row[self._places[name]] = value

    def withhold(self, index: int) -> None:
        """Note that it does not learn its row `index`."""
        self._withheld.add(index)

    def count(self, until: int) -> Array:
        """Count the rows before `until`, and return those (n, dim) without unknown gaps."""
        whole: list[Array] = []
        while self._first < until and self._rows:
            row, gaps = self._rows.popleft()
            withheld = self._first in self._withheld
            self._withheld.discard(self._first)
            self._first += 1
            if withheld:
                continue
            if 2 * gaps > len(row):
                continue  # a client does not learn a row with more gaps than values
            self.gaps += gaps
            (self.unheard if np.isnan(row).any() else whole).append(row)
        return np.array(whole).reshape(len(whole), len(self._places))
