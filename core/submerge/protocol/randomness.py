"""RandomSource: the random numbers that a node draws, for names and for waits.

Any `numpy.random.Generator` is one. A device draws a few numbers a day, and takes them from the
system in place of NumPy's generators, which are 2 MiB of memory.
"""

from __future__ import annotations

import builtins
from typing import Protocol


class RandomSource(Protocol):
    """Draws numbers. Two nodes never share the state of one."""

    def random(self) -> float:
        """Return a number of [0, 1)."""

    def integers(self, high: int, /) -> int:
        """Return a whole number of [0, high), where `high` is 1 to 2**63."""

    def bytes(self, length: int, /) -> builtins.bytes:
        """Return that many random bytes."""
