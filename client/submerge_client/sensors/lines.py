"""Lines: bytes as they come in, cut at line ends; a line has a number and a bound.

No I/O. Memory is bounded by the longest line that is taken, whatever is fed: a longer
one is passed over to its end, and still counts as a line.
"""

from __future__ import annotations

from collections.abc import Iterator

LONGEST = 1 << 20
"""Bytes of the longest line that is taken: 50,000 numbers."""


class LineReader:
    """Cuts chunks of bytes into lines.

    Parameters
    ----------
    longest : int
        Bytes of the longest line that is taken, its end not counted.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._begun = bytearray()
        self._passing_over = False
        self._number = 1

    def cut(self, chunk: bytes) -> Iterator[tuple[int, bytes | None]]:
        """Yield each line that the chunk ends, after its number; None for one too long."""
        rest, *others = chunk.split(b"\n")
        for following in others:
            yield self._ended(rest)
            rest = following
        self._begin(rest)

    def last(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield the line that no line end followed, if there is one."""
        if self._begun or self._passing_over:
            yield self._ended(b"")

    def _begin(self, part: bytes) -> None:
        self._begun += part
        if len(self._begun) > self._longest:
            self._passing_over = True
        if self._passing_over:
            self._begun.clear()

    def _ended(self, part: bytes) -> tuple[int, bytes | None]:
        self._begin(part)
        line = None if self._passing_over else bytes(self._begun)
        number = self._number
        self._number += 1
        self._passing_over = False
        self._begun.clear()
        return number, line
