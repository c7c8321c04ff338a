"""LineReader: cuts bytes into numbered lines of bounded length; a longer one is skipped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from submerge_client.sensors.gather import BLOCK

# Where rows come fast there is no pause: the pipe would fill, and its writer wait.

SPAN_S = 1.0  # how long a rate is counted, and holds
MANY_BYTES = 1 << 14  # a quarter of a pipe, of so many in `SPAN_S` there is no pause


class ReadPace:
    """Says how long to pause after a read while fewer than `BLOCK` rows and `MANY_BYTES` come."""

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


LONGEST = 1 << 20  # bytes of the longest line that is taken, some 50,000 numbers


class LineReader:
    """Cuts chunks of bytes into lines; the longest that is taken, its end not counted."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._begun = bytearray()
        self._skipping = False
        self._number = 1

    def cut(self, chunk: bytes) -> Iterator[tuple[int, bytes | None]]:
        """Yield number and bytes of each line that the chunk ends; None for a line too long."""
        rest, *others = chunk.split(b"\n")
        for following in others:
            yield self._end(rest)
            rest = following
        self._extend(rest)

    def last(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield the last line, if no line end followed it."""
        if self._begun or self._skipping:
            yield self._end(b"")

    def _extend(self, part: bytes) -> None:
        self._begun += part
        self._skipping = self._skipping or len(self._begun) > self._longest
        if self._skipping:
            self._begun.clear()

    def _end(self, part: bytes) -> tuple[int, bytes | None]:
        self._extend(part)
        line = None if self._skipping else bytes(self._begun)
        number = self._number
        self._number += 1
        self._skipping = False
        self._begun.clear()
        return number, line
