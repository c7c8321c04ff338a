"""Patience: a busy machine is slow, and no test fails for that.

What is expected is waited for as long as anything goes on. A test fails when nothing has
moved for PATIENCE_S; how fast things move is no test's business.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 120.0
"""Without any progress. What works moves many times a second, also beside busy programs."""

LONGEST_S = 900.0
"""With progress that leads nowhere: a program that tries again and again never ends by itself."""


def nothing() -> object:
    """No progress is known."""
    return None


def until(
    happens: Callable[[], object],
    said: Callable[[], str] = lambda: "it",
    progress: Callable[[], object] = nothing,
) -> None:
    """Wait for something that is expected.

    Parameters
    ----------
    happens : callable
        Whether it has happened.
    said : callable
        What is waited for, with all that is known; asked if it does not happen.
    progress : callable
        Anything that changes while the work goes on, such as the length of a log: each change
        renews the patience.
    """
    began = moved = time.monotonic()
    before = progress()
    while not happens():
        now, seen = time.monotonic(), progress()
        if seen != before:
            before, moved = seen, now
        if now - moved > PATIENCE_S:
            raise AssertionError(f"nothing moved for {PATIENCE_S:g} s: waited for {said()}")
        if now - began > LONGEST_S:
            raise AssertionError(f"waited {LONGEST_S:g} s for {said()}")
        time.sleep(0.01)
