"""Memory of an engine over a thousand calls, compared with the documented bound.

The figures include state, the block that is being filled, temporaries, and a reading of the
subspace every hundred calls. Memory is measured in two ways, each in a process of its own, after
a warm-up at the same size. tracemalloc sees NumPy's arrays and Python's objects, exactly. VmHWM
(Linux) also sees LAPACK's work space and the heap's slack, which varies by some 30 kB; the figure
is the median of three. BLAS keeps a buffer for packing, which the warm-up allocates.
"""

import contextlib
import ctypes
import gc
import multiprocessing
import os
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

import measure
from report import Table, command
from submerge import SAPCA, Schema

CALLS = 1000
RANK = 10
READ_EVERY = 100
POOL = 8  # calls of rows, used in turn: new ones for each call would take most of the time
WAITING = 20  # rows that wait when the subspace is read


class Case(NamedTuple):
    """An engine at its default block size, in calls of so many rows."""

    dim: int
    exact: str
    dtype: str
    call: int = 45

    def engine(self) -> SAPCA:
        """Return a new one, which knows its number of columns, and so its block size."""
        schema = Schema.anonymous(self.dim, center="fleet")
        return SAPCA(RANK, exact=self.exact, dtype=self.dtype, schema=schema)

    @property
    def bound(self) -> int:
        """What it may take, in bytes; float32 is promised no less."""
        return self.engine().partial_fit(np.zeros((1, self.dim))).most_bytes


CASES = (
    *(Case(dim, "auto", t, 500) for dim in (48, 64, 200) for t in ("float64", "float32")),
    Case(256, "auto", "float64", 500),
    # At 400 and more columns "auto" and "never" are the same.
    *(Case(dim, "never", t) for dim in (48, 400, 1000, 10_000) for t in ("float64", "float32")),
)


class Used(NamedTuple):
    """Bytes above those before the engine: the most ever, and what the second half added."""

    most: int
    grown: int
    algorithm: str


def learn(engine: SAPCA, pool: measure.Array, first: int, end: int) -> None:
    """Learn calls number `first` to `end` from a pool, and read the subspace now and then."""
    call = len(pool) // POOL
    for i in range(first, end):
        rows = pool[i % POOL * call :][:call]
        engine.partial_fit(rows[:WAITING])
        if i % READ_EVERY == READ_EVERY // 2:
            # A part of a block waits: reading has to summarise it beside the past.
            _ = engine.shown.sigma
        engine.partial_fit(rows[WAITING:])


def watched(case: Case, calls: int, most: Callable[[], int]) -> Used:
    """Run a case, and ask `most` for the peak before, at half time, and at the end."""
    pool = measure.synth(POOL * case.call, case.dim, alpha=1.0, seed=0)
    pool += 100.0  # sensors have offsets
    learn(case.engine(), pool, 0, 2 * READ_EVERY)
    most()
    give_back()
    before = most()
    engine = case.engine()
    learn(engine, pool, 0, calls // 2)
    half = most()
    learn(engine, pool, calls // 2, calls)
    end = most()
    return Used(end - before, end - half, engine.algorithm)


def by_tracemalloc(case: Case, calls: int) -> Used:
    """Watch NumPy's arrays and Python's objects."""
    tracemalloc.start()
    return watched(case, calls, lambda: tracemalloc.get_traced_memory()[1])


def by_high_water_mark(case: Case, calls: int) -> Used | None:
    """Watch the process; None where the kernel does not let it forget its peak."""
    if not can_forget():
        return None
    return watched(case, calls, high_water_mark)


def can_forget() -> bool:
    """Return whether the kernel lets a process forget its peak."""
    return os.access("/proc/self/clear_refs", os.W_OK)


def give_back() -> None:
    """Return what the warm-up freed to the system, and forget the peaks it made."""
    gc.collect()
    if tracemalloc.is_tracing():
        tracemalloc.reset_peak()
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def high_water_mark() -> int:
    """Return the most bytes that this process ever had in memory, or since `give_back`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise LookupError("no VmHWM in /proc/self/status")


def room(quick: bool) -> list[Table]:
    """Measure the cases; `quick` takes fewer calls and leaves out dim = 10000."""
    calls = CALLS // 5 if quick else CALLS
    rows = []
    # A process a measurement: nothing that an earlier one freed can hide growth.
    fresh = ProcessPoolExecutor(
        1, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1
    )
    with fresh:
        for case in measure.progress(CASES, "memory"):
            if quick and case.dim > 1000:
                continue
            traced = fresh.submit(by_tracemalloc, case, calls).result()
            marked = [fresh.submit(by_high_water_mark, case, calls).result() for _ in range(3)]
            most = median(used.most for used in marked) / 1e3 if all(marked) else None
            grown = median(used.grown for used in marked) / 1e3 if all(marked) else None
            rows.append(
                (
                    case.dim,
                    case.dtype,
                    case.call,
                    traced.algorithm,
                    case.bound / 1e3,
                    traced.most / 1e3,
                    traced.most / case.bound,
                    traced.grown / 1e3,
                    most,
                    most and most * 1e3 / case.bound,
                    grown,
                )
            )
    return [
        Table(
            f"Memory over {calls} calls, r = {RANK}, default block size, kB",
            {
                "d": "d",
                "dtype": "",
                "call": "d",
                "algorithm": "",
                "bound": ".0f",
                "tracemalloc": ".0f",
                "of the bound": ".0%",
                "2nd half": ".1f",
                "VmHWM": ".0f",
                "of it": ".0%",
                "its 2nd half": ".0f",
            },
            rows,
            "Bound: 8 (2 d^2 + b d + max(d^2 + k d, b d)) + 64 kB on the exact path, with b = 500"
            " or what the budget of 4.2 MB leaves; 8 d (3k + b + 4) + 48 (k + b + 1)^2 + 64 kB on"
            " the low-rank path. The column 2nd half is the growth of the peak in the second half"
            " of the stream.",
        )
    ]


if __name__ == "__main__":
    command(room)
