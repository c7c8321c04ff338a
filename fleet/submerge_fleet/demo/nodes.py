"""Nodes of the demo as their supervisor sees them: processes, output, traffic, memory."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from submerge_fleet.demo.feed import Stint
from submerge_fleet.demo.processes import Process
from submerge_fleet.demo.scores import ScoreLine
from submerge_fleet.demo.site import SiteMember

TAIL = 3
"""Log lines that are kept for error messages."""

State = Literal["starting", "running", "killed", "ended"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Traffic and memory of one node.

    rows : Rows that a client was given; 0 for other nodes.
    sent_bytes, heard_bytes : Messages to and from its parent.
    resident_bytes, peak_bytes : Of its newest process when last measured; the peak of all its
        processes.
    """

    node: str
    role: str
    rows: int
    sent_bytes: int
    heard_bytes: int
    resident_bytes: int
    peak_bytes: int


class LatestScore(NamedTuple):
    """The newest row's SPE (kernel group: anomaly score), its top channel, and that one's share."""

    size: float
    channel: str
    share: float


@dataclass(slots=True, eq=False)
class Node:
    """A node.

    process : The newest.
    stints : A client's processes.
    memory : Of its newest process when last measured; the peak is that of all its processes.
    model : Version of the model that it scores with: when its root made it, in milliseconds.
    sent, received : Bytes up and down its uplink, by its own log; of a killed process, as logged by
        then.
    tail : Its last log lines.
    """

    member: SiteMember
    process: Process | None = None
    state: State = "starting"
    stints: list[Stint] = field(default_factory=list)
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
    def last_log(self) -> str:
        """Its last log lines, joined."""
        return " / ".join(self.tail) or "nothing"

    @property
    def has_something_to_lose(self) -> bool:
        """Return whether it runs and, if it is a client, has scored and been acknowledged."""
        return self.state == "running" and all(
            stint.has_scored and stint.acknowledged for stint in self.stints
        )

    @property
    def rows(self) -> int:
        """Number of rows that it was given."""
        return sum(stint.given for stint in self.stints)

    @property
    def acknowledged(self) -> int:
        """Number of readings that its parent has acknowledged."""
        return sum(stint.acknowledged for stint in self.stints)

    @property
    def sent(self) -> int:
        """Bytes that went up."""
        return sum(sent for sent, _ in self._traffic)

    @property
    def received(self) -> int:
        """Bytes that came down."""
        return sum(received for _, received in self._traffic)

    @property
    def usage(self) -> Usage:
        """What it has used so far."""
        now, peak = (0, 0) if self.memory is None else self.memory
        return Usage(self.name, self.member.role, self.rows, self.sent, self.received, now, peak)

    def look(self) -> None:
        """Measure the memory of its process."""
        seen = None if self.process is None else resident(self.process.pid)
        if seen is not None:
            peak = 0 if self.memory is None else self.memory.peak
            self.memory = Resident(seen.now, max(seen.peak, peak))

    def start(self, process: Process) -> None:
        """Note that it runs in another process from now on."""
        self.process, self.state = process, "starting"
        self._traffic.append((0, 0))

    def note_traffic(self, facts: dict[str, Any]) -> None:
        """Take the bytes sent and received so far from a log line, if it has them."""
        if "sent_bytes" in facts:
            self._traffic[-1] = int(facts["sent_bytes"]), int(facts["heard_bytes"])

    def note_score(self, line: ScoreLine) -> None:
        """Note the newest score."""
        channel, share = next(iter(line.top.items()), ("", 0.0))
        size = line.spe if line.linear is None else line.anomaly_score
        self.model = line.model
        if size is not None:  # an anomaly score needs limits
            self.anomaly_score = LatestScore(size, channel, share)


class Resident(NamedTuple):
    """Resident memory of a process in bytes: now, and the peak."""

    now: int
    peak: int


def resident(pid: int) -> Resident | None:
    """Return a process's resident memory; None if it has ended.

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
    # A process that has just ended has a status file without sizes.
    return Resident(sizes["VmRSS"], sizes["VmHWM"]) if len(sizes) == 2 else None


def _by_psutil(pid: int) -> Resident | None:
    """Return the same without /proc; the peak is the largest that was measured."""
    import psutil

    try:
        now = int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None
    return Resident(now, now)
