"""resident(): how much memory a process holds, as the operating system counts it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Resident(NamedTuple):
    """Bytes of a process in memory: now, and at most so far."""

    now: int
    peak: int


def resident(pid: int) -> Resident | None:
    """Return what a process holds; None if it is gone.

    Shared libraries count in full for each process: a sum over processes overstates.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return None if Path("/proc/self").exists() else _by_psutil(pid)
    except OSError:
        return None
    sizes = {
        line.split(":")[0]: int(line.split()[1]) * 1024
        for line in status.splitlines()
        if line.startswith(("VmRSS:", "VmHWM:"))
    }
    # One that has just ended has a status, and no memory.
    return Resident(sizes["VmRSS"], sizes["VmHWM"]) if len(sizes) == 2 else None


def _by_psutil(pid: int) -> Resident | None:
    """The same without /proc, where the peak is of what was looked at."""
    import psutil

    try:
        now = int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None
    return Resident(now, now)
