"""ReadPace: how long a reader of a pipe leaves it alone, so that slow rows are read together.

To wake a thread for each of ten rows a second costs more than to read them. A pipe holds what
comes meanwhile. Where rows come fast there is no pause: the pipe would fill, and its writer wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from submerge_client.sensors.gather import BLOCK

SPAN_S = 1.0
"""How long a rate is counted, and holds."""

MANY_BYTES = 1 << 14
"""A quarter of a pipe, of so many in `SPAN_S` there is no pause."""


class ReadPace:
    """Counts what is read.

    pause_s : The pause after a read, while fewer than `BLOCK` rows and `MANY_BYTES` come in
        `SPAN_S`.
    steady : A steady clock, in seconds.
    """

    def __init__(self, pause_s: float, *, steady: Callable[[], float] = time.monotonic) -> None:
        self._pause_s, self._steady = pause_s, steady
        self._ends = steady() + SPAN_S
        self._rows = self._bytes = 0
        self._was_fast = False

    def pause_after(self, rows: int, size: int) -> float:
        """Return the seconds until the next read, after one of so many rows and bytes."""
        now = self._steady()
        if now >= self._ends:
            self._was_fast = self._is_fast
            self._ends, self._rows, self._bytes = now + SPAN_S, 0, 0
        self._rows += rows
        self._bytes += size
        # A line that has come in part is read to its end.
        return 0.0 if self._was_fast or self._is_fast or not rows else self._pause_s

    @property
    def _is_fast(self) -> bool:
        return self._rows >= BLOCK or self._bytes >= MANY_BYTES
