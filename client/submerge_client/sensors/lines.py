"""LineReader: cuts incoming bytes into numbered lines of bounded length.

No I/O. Memory is bounded by the longest line that is taken. A longer line is skipped to its end,
and still counts as a line.
"""

from __future__ import annotations

from collections.abc import Iterator

LONGEST = 1 << 20
"""Bytes of the longest line that is taken, some 50,000 numbers."""


class LineReader:
    """Cuts chunks of bytes into lines.

    longest : Bytes of the longest line that is taken, its end not counted.
    """

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
