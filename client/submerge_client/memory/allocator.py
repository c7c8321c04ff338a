"""The C library's allocator, set up for a program that holds little memory and runs for years.

glibc keeps an arena for each thread, raises by itself the size from which an allocation has
pages of its own, and keeps freed pages. Set up here, it behaves the same in a unit, a container
and a shell. Other C libraries (musl, that of macOS) have no such settings, and are left alone.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""From glibc's malloc.h; their values are part of its ABI."""


def limit(*, arenas: int) -> None:
    """Have few arenas, and let large blocks go back when they are freed.

    A variable that sets the same from outside holds. One arena is enough for threads that hold
    Python's lock while they allocate: a client is 0.5 MiB smaller with one than with three.
    """
    mallopt = _function("mallopt")
    if mallopt is None:
        return
    for variable, setting, value in (
        ("MALLOC_ARENA_MAX", M_ARENA_MAX, arenas),
        ("MALLOC_MMAP_THRESHOLD_", M_MMAP_THRESHOLD, 65_536),
        ("MALLOC_TRIM_THRESHOLD_", M_TRIM_THRESHOLD, 131_072),
    ):
        if variable not in os.environ:
            mallopt(setting, value)


def trim() -> None:
    """Return free pages to the kernel; milliseconds. Nothing where the C library cannot."""
    malloc_trim = _function("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)


def _function(name: str) -> Any:
    """Return a function of glibc; None with another C library."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    # musl has neither; a library that has one of them only is none that we know.
    known = all(hasattr(library, each) for each in ("mallopt", "malloc_trim"))
    return getattr(library, name) if known else None
