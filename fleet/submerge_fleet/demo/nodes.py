"""Nodes of the demo, as they look from outside: one process after another, and what it says."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from submerge_fleet.demo.feed import Stint
from submerge_fleet.demo.outcome import Usage
from submerge_fleet.demo.processes import Process
from submerge_fleet.demo.rebuilt import Rebuilt
from submerge_fleet.demo.scores import ScoreLine
from submerge_fleet.demo.site import SiteMember

TAIL = 3
"""Last log lines that are kept, for when it fails."""

State = Literal["starting", "running", "killed", "ended"]


class LatestScore(NamedTuple):
    """Its newest row's SPE, in a kernel group `odd`; the top channel, and that channel's share."""

    size: float
    channel: str
    share: float


@dataclass(slots=True, eq=False)
class Node:
    """A node.

    Attributes
    ----------
    member : Member
    process : Process or None
        The newest.
    state : {"starting", "running", "killed", "ended"}
    stints, rebuilt
        Of a client: its processes, and what each has learnt.
    memory : Resident or None
        Of its newest process when it was last looked at; the peak is that of all.
    model : int
        Version of the one that it scores with: when its root made it, in milliseconds.
    odd : Oddness or None
    sent, heard : int
        Bytes up and down its own uplink, by its own account; of a killed process, what it had
        said by then.
    tail : deque of str
        Its last log lines.
    """

    member: SiteMember
    process: Process | None = None
    state: State = "starting"
    stints: list[Stint] = field(default_factory=list)
    rebuilt: list[Rebuilt] = field(default_factory=list)
    memory: Resident | None = None
    model: int = 0
    anomaly_score: LatestScore | None = None
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL))
    _traffic: list[tuple[int, int]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its name."""
        return self.member.name

    @property
    def words(self) -> str:
        """Its last log lines, in one."""
        return " / ".join(self.tail) or "nothing"

    @property
    def has_something_to_lose(self) -> bool:
        """Whether it runs, and if it is a client, has scored and been acknowledged."""
        return self.state == "running" and all(
            stint.known and stint.acknowledged for stint in self.stints
        )

    @property
    def rows(self) -> int:
        """Rows that it was given."""
        return sum(stint.given for stint in self.stints)

    @property
    def acknowledged(self) -> int:
        """Readings that its parent has acknowledged."""
        return sum(stint.acknowledged for stint in self.stints)

    @property
    def sent(self) -> int:
        """Bytes that went up."""
        return sum(sent for sent, _ in self._traffic)

    @property
    def heard(self) -> int:
        """Bytes that came down."""
        return sum(heard for _, heard in self._traffic)

    @property
    def usage(self) -> Usage:
        """What it has used so far."""
        now, peak = (0, 0) if self.memory is None else self.memory
        return Usage(self.name, self.member.role, self.rows, self.sent, self.heard, now, peak)

    def look(self) -> None:
        """See how much memory its process holds."""
        seen = None if self.process is None else resident(self.process.pid)
        if seen is not None:
            peak = 0 if self.memory is None else self.memory.peak
            self.memory = Resident(seen.now, max(seen.peak, peak))

    def start(self, process: Process) -> None:
        """It runs in another process from here on."""
        self.process, self.state = process, "starting"
        self._traffic.append((0, 0))

    def note_traffic(self, facts: dict[str, Any]) -> None:
        """Take in what its process says that it has sent and heard so far."""
        if "sent_bytes" in facts:
            self._traffic[-1] = int(facts["sent_bytes"]), int(facts["heard_bytes"])

    def note_score(self, line: ScoreLine) -> None:
        """Take in the newest score."""
        channel, share = next(iter(line.top.items()), ("", 0.0))
        size = line.spe if line.linear is None else line.anomaly_score
        self.model = line.model
        if size is not None:  # before there are limits nobody can tell
            self.anomaly_score = LatestScore(size, channel, share)


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
