"""What saves memory, and how much there is: the allocator, entropy, modules that load late.

No state and no seed: no two processes, halves of a fork or copies of a machine draw the same.
"""

from __future__ import annotations

import builtins
import ctypes
import math
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from submerge import UsageError

# For programs that must be small. Two threads must not do that at once before Python 3.13: what
# `UNUSED` lists is read by no thread of ours.

UNUSED = frozenset(
    {
        # paho's, which looks there for a proxy if PySocks is installed. It brings HTTP and e-mail.
        "urllib.request",
        # gRPC's second interface. It brings asyncio.
        "grpc.aio",
        "asyncio",
        # Messages in pure Python, imported beside those in C.
        "google.protobuf.internal.python_message",
        # NumPy's documentation of functions in C.
        "numpy._core._add_newdocs",
        "numpy._core._add_newdocs_scalars",
        "calendar",
        "msgspec.inspect",
    }
)
"""What a client has no use for: 3.2 MiB over MQTT, 4.5 over gRPC."""


@contextmanager
def deferred(names: Collection[str] = UNUSED) -> Iterator[None]:
    """Let modules that the body imports for the first time load at their first use."""
    finder = _Deferring(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Deferring:
    """Finds what the path has, and puts off its loading."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec that loads late; None for all other modules."""
        if name not in self._names:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""From glibc's malloc.h; their values are part of its ABI."""


def limit(*, arenas: int) -> None:
    """Have few arenas, and give freed large blocks back, unless variables say otherwise."""
    # Smaller ones stay: with 64 kB a node of 216 channels spent half of a report on page faults.
    # One arena is enough for threads that hold Python's lock: 0.5 MiB less than with three.
    mallopt = _function("mallopt")
    if mallopt is None:
        return
    for variable, setting, value in (
        ("MALLOC_ARENA_MAX", M_ARENA_MAX, arenas),
        ("MALLOC_MMAP_THRESHOLD_", M_MMAP_THRESHOLD, 1 << 20),
        ("MALLOC_TRIM_THRESHOLD_", M_TRIM_THRESHOLD, 4 << 20),
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


FOR_JOBS = 0.75
"""Share of what a process may still take that its jobs may."""


def room_for_jobs(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> float:
    """Return how many bytes jobs may take: by cgroups, limits of the process, and the machine."""
    free, limit = free_bytes(proc), cgroup_limit(proc, cgroups)
    try:
        import resource  # not where there is no Unix

        pages = [int(each) for each in (proc / "self/statm").read_text().split()]
        size, resident, _, _, _, data, _ = (each * os.sysconf("SC_PAGE_SIZE") for each in pages)
    except (ImportError, OSError, ValueError):
        return math.inf
    rooms = [math.inf if free is None else free, math.inf if limit is None else limit - resident]
    for name, taken in ((resource.RLIMIT_AS, size), (resource.RLIMIT_DATA, data)):
        soft, _ = resource.getrlimit(name)
        rooms.append(math.inf if soft == resource.RLIM_INFINITY else soft - taken)
    return FOR_JOBS * max(0.0, min(rooms))


def free_bytes(proc: Path) -> int | None:
    try:
        lines = (proc / "meminfo").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def cgroup_limit(proc: Path, cgroups: Path) -> int | None:
    """Return the lowest limit of this process's cgroups; None if there is none."""
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        return None
    limits = []
    for line in lines:
        _, controllers, place = line.split(":", 2)
        top, name = cgroups, "memory.max"
        if controllers:
            if "memory" not in controllers.split(","):
                continue
            top, name = cgroups / "memory", "memory.limit_in_bytes"
        inner = top / place.lstrip("/")
        for folder in (inner, *inner.parents):
            limits += _number(folder / name)
            if folder == top:
                break
    return min(limits, default=None)


def _number(path: Path) -> list[int]:
    try:
        text = path.read_text().strip()
    except OSError:
        return []
    return [int(text)] if text.isdecimal() else []


class SystemEntropy:
    """A `submerge.protocol.names.RandomSource`; usable from any thread."""

    def random(self) -> float:
        """Return a number of [0, 1), a multiple of 2**-53."""
        return (int.from_bytes(os.urandom(7), "little") >> 3) * 2.0**-53

    def integers(self, high: int, /) -> int:
        if not 1 <= high <= 2**63:
            raise UsageError(f"expected a bound of 1 to 2**63, got {high}")
        mask = (1 << (high - 1).bit_length()) - 1
        while True:
            # What is too large is drawn again, less than every other time: a remainder would
            # favour small numbers.
            number = int.from_bytes(os.urandom(8), "little") & mask
            if number < high:
                return number

    def bytes(self, length: int, /) -> builtins.bytes:
        return os.urandom(length)
