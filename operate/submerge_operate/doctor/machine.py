"""Checks of the machine: clock, disk, memory."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import submerge
from submerge.protocol.machine import Now
from submerge_client.memory import cgroup_limit, free_bytes
from submerge_files.console.units import in_words, moment, size_of
from submerge_operate.doctor.findings import Finding, fails, ok, warning

LITTLE, NOTHING = 64 << 20, 1 << 20
"""Bytes of free disk below which to warn; below which a checkpoint may not fit."""

SLOW_S = 1.0  # a slower write to disk means a failing or an overloaded card

PROBE_BYTES = 4096


def clock(now: Now) -> Iterator[Finding]:
    todo = "timedatectl set-ntp true, or wait for the network"
    if shutil.which("timedatectl") is None:
        todo = "start a time service such as chrony; a clock that the host keeps right may stay so"
    installed = Path(submerge.__file__).stat().st_mtime
    if now.wall < installed - 86400.0:
        message = f"it shows {moment(now.wall)}, but this program is of {moment(installed)}"
        yield fails("clock", message, f"set it: {todo}")
    elif not now.synced:
        yield warning(
            "clock",
            f"{moment(now.wall)}, not synchronized: until it is, readings count as taken when they"
            " arrive",
            todo,
        )
    else:
        yield ok("clock", f"{moment(now.wall)}, synchronized (as reported by the kernel)")


def disk(
    what: str, path: Path, *, spare: int = 0, steady: Callable[[], float] = time.perf_counter
) -> Iterator[Finding]:
    """Check that a file can be written, by writing another one beside it."""
    # Neither the file nor its folder need exist; it may still need `spare` bytes.
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
        began = steady()
        with tempfile.TemporaryFile(prefix=".doctor-", dir=folder) as file:
            file.write(os.urandom(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
        took = steady() - began
        if path.exists() and not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(13, "Permission denied", str(path))
    except OSError as error:
        why = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
        yield fails("disk", f"{what} {path} cannot be written: {why}", _hint(error, folder))
        return
    message = f"{what}: {size_of(free)} free, a write took {in_words(took)}"
    if free < NOTHING + spare:
        yield fails("disk", message, "free some, or choose another place")
    elif free < LITTLE + 2 * spare:
        yield warning("disk", message, "free some: journalctl --vacuum-size=50M, apt-get clean")
    elif took > SLOW_S:
        yield warning("disk", message, "a slow card may be failing: see dmesg, replace the card")
    else:
        yield ok("disk", message)


def memory(
    need: int, *, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")
) -> Iterator[Finding]:
    """Check that `need` bytes are free, on the machine and for this service."""
    available = free_bytes(proc)
    limit = cgroup_limit(proc, cgroups)
    if available is None:
        yield warning("memory", "free memory is unknown on this machine", "see free -m")
        return
    room, where = available, "on this machine"
    if limit is not None and limit < room:
        room, where = limit, "allowed here (cgroup)"
    message = f"about {size_of(need)} needed, {size_of(room)} {where}"
    if room < need:
        yield fails(
            "memory", message, "end other programs, raise MemoryMax=, or lower [summary] rank"
        )
    elif room < 2 * need:
        yield warning("memory", message, "it may be enough: watch `systemctl status` for a day")
    else:
        yield ok("memory", message)


def _hint(error: OSError, folder: Path) -> str:
    match error.errno:
        case 30:  # EROFS
            return "the disk is read-only: see dmesg; Linux makes a failing card read-only"
        case 28:
            return "the disk is full: free some, or choose another place"
        case 13 | 1:
            return f"run this as the program's user, or chown {folder} to it"
    return "choose another place"
