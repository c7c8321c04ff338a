"""The rows that a client process has learnt, reconstructed from outside.

The demo knows what it gave the process, and what a sound mote would have read where it gave a gap:
the truth that the client could not see. Only rows that the root holds count; for a killed process
that is known at the end. So rows wait here until they are acknowledged, or until the stores are
read.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from submerge import Array


class Rebuilt:
    """The rows of one process, of `dim` channels.

    gaps : Missing values in rows that count.
    """

    def __init__(self, dim: int) -> None:
        self.gaps = 0
        self._dim = dim
        self._rows: deque[tuple[Array, int]] = deque()
        self._first = 0  # index of the first in the queue
        self._withheld: set[int] = set()

    def give(self, row: Array, sound: Array) -> None:
        """Note that the process gets a row (dim,), NaN for a gap, where `sound` is the truth."""
        gaps = np.isnan(row)
        self._rows.append((np.where(gaps, sound, row), int(np.count_nonzero(gaps))))

    def withhold(self, index: int) -> None:
        """Note that it does not learn its row `index`."""
        self._withheld.add(index)

    def count(self, until: int) -> Array:
        """Count the rows before `until`; return them (n, dim) without their gaps."""
        whole: list[Array] = []
        while self._first < until and self._rows:
            row, gaps = self._rows.popleft()
            withheld = self._first in self._withheld
            self._withheld.discard(self._first)
            self._first += 1
            # A client does not learn a row with more gaps than values.
            if not withheld and 2 * gaps <= self._dim:
                self.gaps += gaps
                whole.append(row)
        return np.array(whole).reshape(len(whole), self._dim)
