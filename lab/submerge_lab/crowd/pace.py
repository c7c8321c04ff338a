"""Rows in real time: a node reads the row of now, not older ones.

All nodes of a crowd use one clock. A node that was delayed skips the rows of that time, as a
sensor's reader does, and counts them. Rows wait only in the node's own queue.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from submerge import Array

BLOCKS_PER_S = 4.0
"""Above this rate rows are handed over in blocks."""

Rows = Callable[[int, int], Array]
"""Returns rows from one number up to another."""


class RealTimePace:
    """The number of the current row.

    rate : Rows a second.
    clock : Monotonic seconds; row 0 is of the moment at which this object is made.
    wait : `wait(stop, seconds)` returns at the latest when `stop` is set.
    """

    def __init__(
        self,
        rate: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[threading.Event, float], object] = threading.Event.wait,
    ) -> None:
        self.rate, self._clock, self._wait = rate, clock, wait
        self._began = clock()
        self.block = max(1, int(rate / BLOCKS_PER_S))
        """Rows of a block."""

    @property
    def now(self) -> int:
        """Number of rows so far."""
        return int((self._clock() - self._began) * self.rate)

    def wait_for(self, row: int, stop: threading.Event) -> bool:
        """Wait until a row is due; return False if `stop` is set before."""
        while not stop.is_set():
            left = self._began + (row + 1) / self.rate - self._clock()
            if left <= 0:
                return True
            self._wait(stop, left)
        return False


class PacedSensor:
    """A sensor that never ends; `counts["skipped"]` is how many rows it skipped."""

    def __init__(self, rows: Rows, pace: RealTimePace) -> None:
        self.counts = {"skipped": 0}
        self._rows, self._pace = rows, pace

    def read(self, hand: Callable[[Array], None], stop: threading.Event) -> None:
        """Hand over rows from now on, until `stop` is set."""
        first = self._pace.now
        while self._pace.wait_for(first + self._pace.block - 1, stop):
            stop_at = first + self._pace.block
            hand(self._rows(first, stop_at))
            # Less than a block behind is on time: the next block is not complete.
            missed = max(0, self._pace.now - stop_at) // self._pace.block * self._pace.block
            self.counts["skipped"] += missed
            first = stop_at + missed
