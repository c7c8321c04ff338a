"""Memory that a flood has taken goes back to the kernel.

After 4 MiB messages on many connections glibc keeps a gigabyte. The settings themselves are in
`submerge_client.memory.allocator`: a client has them, too.
"""

from __future__ import annotations

import asyncio

from submerge_client.memory import allocator

ARENAS = 2
"""gRPC's threads allocate without Python's lock."""

TRIM_EVERY_S = 30.0
"""Between two returns of free pages. Each takes milliseconds, on a thread of its own."""


def limit() -> None:
    """Have few arenas, and let large blocks go back when they are freed."""
    allocator.limit(arenas=ARENAS)


async def keep_trimmed() -> None:
    """Return free pages to the kernel from time to time, until cancelled."""
    while True:
        await asyncio.sleep(TRIM_EVERY_S)
        await asyncio.to_thread(allocator.trim)
