"""SystemEntropy: random numbers from the operating system, without `numpy.random`.

It has no state and no seed: two processes never draw the same numbers, and neither do the two
halves of a fork or the copies of a virtual machine.
"""

from __future__ import annotations

import builtins
import os

from submerge import UsageError


class SystemEntropy:
    """A `submerge.protocol.names.RandomSource`; usable from any thread."""

    def random(self) -> float:
        """Return a number of [0, 1), a multiple of 2**-53."""
        return (int.from_bytes(os.urandom(7), "little") >> 3) * 2.0**-53

    def integers(self, high: int, /) -> int:
        """Return a whole number of [0, high), where `high` is 1 to 2**63."""
        if not 1 <= high <= 2**63:
            raise UsageError(f"expected a bound of 1 to 2**63, got {high}")
        mask = (1 << (high - 1).bit_length()) - 1
        while True:
            # What is too large is drawn again, less than every other time: a remainder would
            # favour small numbers.
            number = int.from_bytes(os.urandom(8), "little") & mask
            if number < high:
                return number

    def bytes(self, length: int, /) -> builtins.bytes:
        """Return that many random bytes."""
        return os.urandom(length)
