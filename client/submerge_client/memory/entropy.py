"""SystemEntropy: random numbers from the operating system, without `numpy.random`.

It has no state and no seed: two processes never draw the same numbers, and neither do the two
halves of a fork or the copies of a virtual machine.
"""

from __future__ import annotations

import builtins
import os

from submerge import UsageError


class SystemEntropy:
    """A `submerge.protocol.randomness.RandomSource`; usable from any thread."""

    def random(self) -> float:
        """Return a number of [0, 1), a multiple of 2**-53."""
        return (int.from_bytes(os.urandom(7), "little") >> 3) * 2.0**-53

    def integers(self, high: int, /) -> int:
        """Return a whole number of [0, high), where `high` is a power of two up to 2**63."""
        if high & (high - 1) or not 1 <= high <= 2**63:
            raise UsageError(f"expected a power of two up to 2**63, got {high}")
        return int.from_bytes(os.urandom(8), "little") & (high - 1)

    def bytes(self, length: int, /) -> builtins.bytes:
        """Return that many random bytes."""
        return os.urandom(length)
