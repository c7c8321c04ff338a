"""now(): this machine's two clocks, and whether its wall clock is synchronised (adjtimex)."""

from __future__ import annotations

import ctypes
import time

from submerge.protocol.machine import Now

ASK_EVERY_S = 60.0

_TIME_ERROR, _FORBIDDEN = 5, -1
_TIMEX_BYTES = 512  # struct timex has 208 on 64 bits; zeros change nothing

_asked_at = -ASK_EVERY_S
_synced = True


def now() -> Now:
    global _asked_at, _synced
    steady = time.monotonic()
    if steady - _asked_at >= ASK_EVERY_S:
        _asked_at, _synced = steady, _is_synced()
    return Now(steady, time.time(), _synced)


def _is_synced() -> bool:
    """Return whether the kernel's clock is synchronised; True without that call."""
    try:
        state = int(ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)))
    except (OSError, AttributeError):
        return True
    return state not in (_TIME_ERROR, _FORBIDDEN)
