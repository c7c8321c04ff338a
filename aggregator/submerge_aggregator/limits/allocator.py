"""The C library's allocator: memory that a flood has taken goes back to the kernel.

glibc keeps an arena for each thread, raises by itself the size from which an allocation has
pages of its own, and keeps freed pages: after 4 MiB messages on many connections a gigabyte.
Set up here, it behaves the same in a unit, a container and a shell. Other C libraries (musl, that
of macOS) have no such settings, and are left alone.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from typing import Any

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""From glibc's malloc.h; their values are part of its ABI."""

SETTINGS = {
    "MALLOC_ARENA_MAX": (M_ARENA_MAX, 2),
    "MALLOC_MMAP_THRESHOLD_": (M_MMAP_THRESHOLD, 65_536),
    "MALLOC_TRIM_THRESHOLD_": (M_TRIM_THRESHOLD, 131_072),
}
"""By the variable that sets the same from outside, which then holds."""


TRIM_EVERY_S = 30.0
"""Between two returns of free pages. Each takes milliseconds, on a thread of its own."""


def limit() -> None:
    """Have few arenas, and let large blocks go back when they are freed."""
    mallopt = _function("mallopt")
    if mallopt is not None:
        for variable, (setting, value) in SETTINGS.items():
            if variable not in os.environ:
                mallopt(setting, value)


async def keep_trimmed() -> None:
    """Return free pages to the kernel from time to time, until cancelled."""
    trim = _function("malloc_trim")
    while trim is not None:
        await asyncio.sleep(TRIM_EVERY_S)
        await asyncio.to_thread(trim, 0)


def _function(name: str) -> Any:
    """Return a function of glibc; None with another C library."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    # musl has neither; a library that has one of them only is none that we know.
    known = all(hasattr(library, each) for each in ("mallopt", "malloc_trim"))
    return getattr(library, name) if known else None
