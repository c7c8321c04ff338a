"""Memory of an engine over a thousand blocks, compared with the documented bound.

The figures include state, the block that is being filled, temporaries, and a reading of the
subspace every hundred blocks. Memory is measured in two ways, each in a process of its own, after
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

import measure
from report import Table, command
from submerge import SAPCA

BLOCKS = 1000
RANK = 10
READ_EVERY = 100
POOL = 8  # blocks of rows, used in turn: drawing them anew would take most of the time


class Case(NamedTuple):
    """An engine at its default block size."""

    dim: int
    exact: str
    dtype: str

    def engine(self) -> SAPCA:
        """Return a new one."""
        return SAPCA(RANK, exact=self.exact, dtype=self.dtype)

    @property
    def bound(self) -> int:
        """What it may take, in bytes; float32 is promised no less."""
        engine = self.engine()
        k, b = RANK + engine.oversample, engine.block_size
        return 8 * self.dim * (3 * k + b + 4) + 48 * (k + b + 1) ** 2 + 64_000


CASES = (
    Case(48, "auto", "float64"),
    # From 400 on "auto" and "never" are the same: dim > k + b.
    *(Case(dim, "never", t) for dim in (48, 400, 1000, 10_000) for t in ("float64", "float32")),
)


class Used(NamedTuple):
    """Bytes above those before the engine: the most ever, and what the second half added."""

    most: int
    grown: int
    algorithm: str


def learn(engine: SAPCA, pool: measure.Array, first: int, end: int) -> None:
    """Learn blocks number `first` to `end`, and read the subspace now and then."""
    b = engine.block_size
    for i in range(first, end):
        block = pool[i % POOL * b :][:b]
        engine.partial_fit(block[: b // 2])
        if i % READ_EVERY == 0:
            # Half a block waits: reading has to summarise it beside the past.
            _ = engine.shown.sigma
        engine.partial_fit(block[b // 2 :])


def watched(case: Case, blocks: int, most: Callable[[], int]) -> Used:
    """Run a case, and ask `most` for the peak before, at half time, and at the end."""
    pool = measure.synth(POOL * case.engine().block_size, case.dim, alpha=1.0, seed=0)
    pool += 100.0  # sensors have offsets
    learn(case.engine(), pool, 0, 2 * READ_EVERY)
    most()
    _give_back()
    before = most()
    engine = case.engine()
    learn(engine, pool, 0, blocks // 2)
    half = most()
    learn(engine, pool, blocks // 2, blocks)
    end = most()
    return Used(end - before, end - half, engine.algorithm)


def by_tracemalloc(case: Case, blocks: int) -> Used:
    """Watch NumPy's arrays and Python's objects."""
    tracemalloc.start()
    return watched(case, blocks, lambda: tracemalloc.get_traced_memory()[1])


def by_high_water_mark(case: Case, blocks: int) -> Used | None:
    """Watch the process; None where the kernel does not let it forget its peak."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        return None
    return watched(case, blocks, _high_water_mark)


def _give_back() -> None:
    """Return what the warm-up freed to the system, and forget the peaks it made."""
    gc.collect()
    if tracemalloc.is_tracing():
        tracemalloc.reset_peak()
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def _high_water_mark() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise LookupError("no VmHWM in /proc/self/status")


def room(quick: bool) -> list[Table]:
    """Measure the cases; `quick` takes fewer blocks and leaves out dim = 10000."""
    blocks = BLOCKS // 5 if quick else BLOCKS
    rows = []
    # A process a measurement: nothing that an earlier one freed can hide growth.
    fresh = ProcessPoolExecutor(
        1, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1
    )
    with fresh:
        for case in measure.progress(CASES, "memory"):
            if quick and case.dim > 1000:
                continue
            traced = fresh.submit(by_tracemalloc, case, blocks).result()
            marked = [fresh.submit(by_high_water_mark, case, blocks).result() for _ in range(3)]
            most = median(used.most for used in marked) / 1e3 if all(marked) else None
            grown = median(used.grown for used in marked) / 1e3 if all(marked) else None
            rows.append(
                (
                    case.dim,
                    case.dtype,
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
            f"Memory over {blocks} blocks, r = {RANK}, default block size, kB",
            {
                "d": "d",
                "dtype": "",
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
            "Bound: 8 d (3k + b + 4) + 48 (k + b + 1)^2 + 64 kB. The column 2nd half is"
            " the growth of the peak in the second half of the stream.",
        )
    ]


if __name__ == "__main__":
    command(room)
