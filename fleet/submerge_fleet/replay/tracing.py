"""traced(): what a piece of work allocates, by tracemalloc."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bytes:
    """Beside interpreter and libraries: still held when the work was done; at its peak."""

    rest: int
    peak: int


def traced(work: Callable[[], object]) -> Bytes:
    """Do `work`, and return the bytes that it took; what it returns is still held.

    NumPy's arrays and Python's objects count, LAPACK's work space does not. Where someone
    is tracing already the peak is theirs too, so we refuse: two cannot be told apart.
    """
    if tracemalloc.is_tracing():
        raise RuntimeError("tracemalloc is tracing already: two peaks cannot be told apart")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        held = work()
        rest, peak = tracemalloc.get_traced_memory()
        del held
        return Bytes(rest - before, peak - before)
    finally:
        tracemalloc.stop()
