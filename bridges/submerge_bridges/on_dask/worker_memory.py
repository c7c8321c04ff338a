"""keep_blocks(): a worker's C library keeps the memory of blocks of rows for the next ones.

Dask starts its workers with `MALLOC_TRIM_THRESHOLD_`, by which glibc gives each freed block back to
the system at once: then every block of rows costs its page faults again. We ask for blocks of up
to `KEPT` bytes to be kept. Other C libraries are left as they are.
"""

from __future__ import annotations

import ctypes
from functools import cache

KEPT = 64 << 20
"""Bytes that a worker keeps, at most."""

LARGEST = 32 << 20
"""Blocks from this size on go back at once: the largest that glibc takes."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's malloc.h."""


@cache
def keep_blocks() -> bool:
    """Ask for it, once in a process; return whether the C library has taken it."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST)) and bool(mallopt(_TRIM_THRESHOLD, KEPT))
