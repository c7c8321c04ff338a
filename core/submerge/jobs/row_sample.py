"""RowSample: a uniform sample of the rows of a stream, as they are, in bounded memory.

Every row gets a random priority of 64 bits, and the rows with the smallest stay: all sets of rows
are equally likely. Until the sample is full its rows are in the order of their arrival; after that
a row takes the place of the one that it displaces.
"""

from __future__ import annotations

import numpy as np

from submerge._linalg import Array
from submerge.errors import ShapeError, whole
from submerge.protocol.randomness import RandomSource

LARGEST = (1 << 64) - 1


class RowSample:
    """A uniform sample of rows.

    most, width : Rows that it holds, at least 1, and numbers in each: 8 `most` `width` bytes.
    rng : Draws 8 bytes for each row.

    seen : Rows that it was drawn from.
    """

    def __init__(self, most: int, width: int, rng: RandomSource) -> None:
        whole("most", most, least=1)
        self.seen = 0
        self._rng = rng
        self._rows: Array = np.empty((most, width))
        self._priorities = np.full(most, LARGEST, dtype=np.uint64)

    def __len__(self) -> int:
        """Return how many rows it holds."""
        return min(self.seen, len(self._rows))

    @property
    def rows(self) -> Array:
        """A copy of its rows, (n, width)."""
        return self._rows[: len(self)].copy()

    def add(self, rows: Array) -> None:
        """Let rows (n, width) into the sample; O(n), and O(most) for each that is taken."""
        if rows.ndim != 2 or rows.shape[1] != self._rows.shape[1]:
            raise ShapeError("rows", expected=f"(n, {self._rows.shape[1]})", got=rows.shape)
        drawn = np.frombuffer(self._rng.bytes(8 * len(rows)), dtype="<u8")
        free = min(len(rows), len(self._rows) - len(self))
        place = slice(len(self), len(self) + free)
        self._rows[place], self._priorities[place] = rows[:free], drawn[:free]
        self.seen += len(rows)
        last = int(np.argmax(self._priorities))
        for i in free + np.flatnonzero(drawn[free:] < self._priorities[last]):
            if drawn[i] < self._priorities[last]:
                self._rows[last], self._priorities[last] = rows[i], drawn[i]
                last = int(np.argmax(self._priorities))
