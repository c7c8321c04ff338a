"""keep_freed_memory(): blocks of rows are made in memory that blocks before them have left.

glibc gives freed memory back to the system where more of it is free than twice the largest block
that was freed so far. Blocks of rows come and go: each of them would be made of fresh pages, which
takes as long as unpacking it. Elsewhere it does nothing. Memory grows by at most twice `BYTES`.
"""

from __future__ import annotations

import numpy as np

BYTES = 1 << 23
"""The block that is freed: some blocks of rows (`tables.block_rows`) of a hundred columns."""


def keep_freed_memory() -> None:
    """Free a block: from now on, memory of that size waits for the next."""
    # Its pages are never touched, and so never made.
    np.empty(BYTES, dtype=np.uint8)
