"""Pace: rows in real time, for a node that reads what is now, and not what was.

All nodes of a crowd go by one clock. Who was held up leaves out the rows of that time, as a
sensor's reader does, and counts them; nothing waits anywhere but in the node's own queue.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from submerge import Array

BLOCKS_PER_S = 4.0
"""More rows a second than these are handed on together."""

Rows = Callable[[int, int], Array]
"""Returns rows from one number up to another."""


class RealTimePace:
    """What number the rows of now have.

    Parameters
    ----------
    rate : float
        Rows a second.
    clock : callable
        Seconds, never set back; row 0 is of the moment at which this is made.
    wait : callable
        `wait(stop, seconds)` returns at the latest when `stop` is set.
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
        """Rows that are handed on together."""

    @property
    def now(self) -> int:
        """How many rows there have been."""
        return int((self._clock() - self._began) * self.rate)

    def waited(self, row: int, stop: threading.Event) -> bool:
        """Wait until a row is there; False if `stop` is set before."""
        while not stop.is_set():
            left = self._began + (row + 1) / self.rate - self._clock()
            if left <= 0:
                return True
            self._wait(stop, left)
        return False


class Paced:
    """A sensor that never ends.

    Parameters
    ----------
    rows : Rows
    pace : Pace

    Attributes
    ----------
    counts : dict of str to int
        Rows "skipped" because the node was behind.
    """

    def __init__(self, rows: Rows, pace: RealTimePace) -> None:
        self.counts = {"skipped": 0}
        self._rows, self._pace = rows, pace

    def read(self, hand: Callable[[Array], None], stop: threading.Event) -> None:
        """Hand over what is read from now on, until `stop` is set."""
        first = self._pace.now
        while self._pace.waited(first + self._pace.block - 1, stop):
            stop_at = first + self._pace.block
            hand(self._rows(first, stop_at))
            # Less than a block behind is on time: the next one is being gathered.
            missed = max(0, self._pace.now - stop_at) // self._pace.block * self._pace.block
            self.counts["skipped"] += missed
            first = stop_at + missed
