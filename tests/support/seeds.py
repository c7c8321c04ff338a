"""How many seeds a test of simulated fleets tries: a tenth in the gate, all in `make soak`."""

from __future__ import annotations

import os

ALL = bool(os.environ.get("SUBMERGE_SOAK"))


def seeds(several: int, first: int = 0) -> range:
    """Return the seeds from a first one on."""
    return range(first, first + (several if ALL else -(-several // 10)))
