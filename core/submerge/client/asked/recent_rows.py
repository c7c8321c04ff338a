"""RecentRows: the newest prepared rows of a client, and when they came, in a ring in its memory.

They are there for a drill, and for people who look. They are as float32, `MOST_ROWS` of them and
`MOST_NUMBERS` numbers (400 kB) at most; they are on no disk and in no report.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.judge.prepare import Block

MOST_ROWS, MOST_NUMBERS = 256, 256 * 400
"""Newest rows, and numbers in them, that a client holds."""


class RecentRows:
    """The newest prepared rows of a client, in a ring.

    width : Numbers in a row, lags included.
    """

    def __init__(self, width: int) -> None:
        most = max(1, min(MOST_ROWS, MOST_NUMBERS // width))
        self._ring: Storage = np.empty((most, width), dtype=np.float32)
        self._at = np.zeros(most)
        self._next = self._held = 0

    def add(self, block: Block, wall: float = 0.0) -> None:
        """Add the rows of a block, gaps as gaps.

        wall : when the last of them came, Unix seconds
        """
        most = len(self._ring)
        rows = block.rows[-most:]
        places = (self._next + np.arange(len(rows))) % most
        self._ring[places] = rows
        all_rows = len(block.why)
        each_s = block.time.seen_s(all_rows) / max(1, all_rows)
        self._at[places] = wall - each_s * (all_rows - 1 - block.which[-most:])
        if block.gaps is not None:
            gaps = self._ring[places]
            gaps[block.gaps[-most:]] = np.nan
            self._ring[places] = gaps
        self._next = (self._next + len(rows)) % most
        self._held = min(self._held + len(rows), most)

    @property
    def rows(self) -> Array:
        """(n, width), oldest first, in float64: a copy."""
        return np.asarray(self._ring[self._order], dtype=np.float64)

    @property
    def times(self) -> Array:
        """(n,), when they came, Unix seconds."""
        return np.asarray(self._at[self._order])

    @property
    def _order(self) -> npt.NDArray[np.intp]:
        return (self._next - self._held + np.arange(self._held, dtype=np.intp)) % len(self._ring)
