"""now(): this machine's two clocks, and whether anybody vouches for the one on the wall.

A Pi has no clock that runs while it is off: until the network has told it the time, what
its wall clock says is no age to fade a reading by. The kernel knows (adjtimex).
"""

from __future__ import annotations

import ctypes
import time

from submerge.protocol.machine import Now

ASK_EVERY_S = 60.0

_TIME_ERROR, _NOT_LET = 5, -1
_TIMEX_BYTES = 512  # struct timex has 208 on 64 bits; zeros mean: only tell

_asked_at = -ASK_EVERY_S
_synced = True


def now() -> Now:
    """Return both clocks."""
    global _asked_at, _synced
    steady = time.monotonic()
    if steady - _asked_at >= ASK_EVERY_S:
        _asked_at, _synced = steady, _vouched_for()
    return Now(steady, time.time(), _synced)


def _vouched_for() -> bool:
    """Whether the kernel thinks that its clock is in step; True where there is nobody to ask.

    One that may not be asked (a seccomp filter, systemd's ProtectClock) vouches for nothing.
    """
    try:
        state = int(ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)))
    except (OSError, AttributeError):
        return True
    return state not in (_TIME_ERROR, _NOT_LET)
