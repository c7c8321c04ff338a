"""The fleet as its supervisor sees it: starts nodes, feeds them, reads their output, kills them.
Only this module parses what nodes write: score lines and alarm events on standard output, log lines
as JSON on standard error.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from submerge import Array, SubmergeError
from submerge_lab.demo.alarms import FleetAlarms
from submerge_lab.demo.failures import ProcessFailure
from submerge_lab.demo.feed import Stint
from submerge_lab.demo.processes import OutputLine, Process, ProcessEnd, Processes
from submerge_lab.demo.scores import InOrder, ScoreLine, read_line
from submerge_lab.demo.site import MqttWire, Site, SiteMember

TAIL = 3
"""Log lines that are kept for error messages."""

State = Literal["starting", "running", "killed", "ended"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Traffic and memory of one node.

    rows : Rows that a client was given; 0 for other nodes.
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

    model : Version of the model that it scores with: when its root made it, in milliseconds.
    sent, received : Bytes up and down its uplink, by its own log; of a killed process, as logged by
        then.
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
    """Return a process's resident memory; None if it has ended."""
    # Shared libraries count in full for each process: a sum over processes overstates.
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


LOOK_S, WAIT_S = 0.5, 0.02
"""Seconds between two looks at memory; seconds to wait for output, at most."""

PATIENCE_S = 60.0
"""Seconds for nodes to start, or to end, before that counts as a failure."""

EVENT = b'{"event":'
"""How a line with an alarm event begins, and a score line does not."""

BROKER = SiteMember("broker", "broker", None)


class FleetFailed(SubmergeError):
    """A node failed, or did not do its part in time."""


class DemoFleet:
    """All nodes of a demo; their processes run within a `with fleet.processes` block.

    nodes : The broker first, if the demo runs one; then the root, aggregators, clients.
    """

    def __init__(
        self, site: Site, members: Sequence[SiteMember], failures: Sequence[ProcessFailure]
    ) -> None:
        own = [BROKER] if isinstance(site.wire, MqttWire) and site.wire.own else []
        self.site = site
        self.nodes = {member.name: Node(member) for member in (*own, *members)}
        self.scores = InOrder(site.names)
        self.alarms = FleetAlarms(len(self.of("client")))
        self._failures = failures
        self.processes = Processes()
        self._encode = msgspec.json.Encoder().encode
        self._looked_at = 0.0
        self._closing = False

    def of(self, role: str) -> list[Node]:
        """Return the nodes of one role."""
        return [node for node in self.nodes.values() if node.member.role == role]

    @property
    def summary(self) -> str:
        """Each node's state and last log lines, for error messages."""
        return "; ".join(f"{n.name} {n.state} ({n.last_log})" for n in self.nodes.values())

    @property
    def running(self) -> list[Stint]:
        """The newest process of each client."""
        return [node.stints[-1] for node in self.of("client")]

    @property
    def oldest_model_at(self) -> float:
        """When the oldest model was made that a client scores with: wall time, inf without one."""
        known = [node.model for node in self.of("client") if node.stints[-1].has_scored]
        return min((version / 1000 for version in known), default=math.inf)

    @property
    def rows_behind(self) -> int:
        """The most rows that one client was given without an acknowledgement."""
        return max(stint.given - stint.acknowledged for stint in self.running)

    # -- actions -----------------------------------------------------------------

    def start(self, show: Callable[[], None]) -> None:
        """Start all nodes, and wait until they run."""
        self.site.write(node.member for node in self.nodes.values() if node.member is not BROKER)
        brokers = self.of("broker")
        for node in brokers:
            self.start_node(node)
        self.wait_until(lambda: all(node.state == "running" for node in brokers), "start", show)
        others = [node for node in self.nodes.values() if node not in brokers]
        for node in others:
            self.start_node(node)
        self.wait_until(lambda: all(node.state == "running" for node in others), "start", show)

    def start_node(self, node: Node) -> None:
        """Start a node, the first time or again."""
        role, wire = node.member.role, self.site.wire
        if isinstance(wire, MqttWire) and role == "broker":
            module = ["submerge_lab.demo.broker", str(wire.port)]
            node.start(self.processes.start(node.name, module, fed=False))
            return
        program = "client" if role == "client" else "aggregator"
        config = str(self.site.config(node.member))
        arguments = ["submerge_operate", program, "--config", config, "--log-json"]
        node.start(self.processes.start(node.name, arguments, fed=role == "client"))
        if role == "client":
            node.stints.append(Stint(node.name))

    def kill(self, node: Node) -> None:
        """Kill a node's process (SIGKILL)."""
        if node.process is not None:
            node.process.kill()
        node.state = "killed"
        for stint in node.stints[-1:]:
            stint.killed = True

    def give(self, stint: Stint, row: Array) -> None:
        """Write a row of readings to a client; NaN is a gap."""
        node = self.nodes[stint.node]
        if node.process is not None:
            self.processes.write(node.process, self._encode(row.tolist()) + b"\n")

    def close(self, show: Callable[[], None]) -> None:
        """End all nodes, clients first, each once it has reported everything to its parent."""
        self._closing = True
        for node in self.of("client"):
            if node.process is not None:
                self.processes.close_input(node.process)
        self._wait_for_the_end(self.of("client"), show)
        for role in ("aggregator", "root", "broker"):
            for node in self.of(role):
                if node.process is not None:
                    node.process.end()
            self._wait_for_the_end(self.of(role), show)

    # -- output of nodes -----------------------------------------------------------

    def wait(self, seconds: float = WAIT_S) -> None:
        """Move data through the pipes for so long; look at memory now and then."""
        for event in self.processes.wait(seconds):
            node = self.nodes[event.process.name]
            match event:
                case ProcessEnd():
                    self._end(node, event.status)
                case OutputLine(_, "out", line):
                    self._read_output(node, line)
                case OutputLine(_, _, line):
                    self._read_log(node, line.decode(errors="replace"))
        if time.monotonic() - self._looked_at >= LOOK_S:
            self._looked_at = time.monotonic()
            for node in self.nodes.values():
                node.look()

    def wait_until(self, done: Callable[[], bool], what: str, show: Callable[[], None]) -> None:
        """Read output until `done()`."""
        until = time.monotonic() + PATIENCE_S
        while not done():
            if time.monotonic() > until:
                raise FleetFailed(
                    f"the fleet did not {what} within {PATIENCE_S:g} s: {self.summary}"
                )
            self.wait()
            show()

    def _wait_for_the_end(self, nodes: Iterable[Node], show: Callable[[], None]) -> None:
        waiting = list(nodes)
        self.wait_until(lambda: all(node.process is None for node in waiting), "end", show)

    def _read_output(self, node: Node, raw: bytes) -> None:
        """Read a line of standard output: a row's score or an alarm event; they come in order."""
        if raw.startswith(EVENT):
            self._read_event(node, raw)
        else:
            self._read_score(node, raw)

    def _read_event(self, node: Node, raw: bytes) -> None:
        stint = node.stints[-1]
        newest = stint.snapshots[stint.scored - 1] if stint.scored else 0
        self.alarms.add(json.loads(raw), newest)

    def _read_score(self, node: Node, raw: bytes) -> None:
        line, stint = read_line(raw), node.stints[-1]
        self._pass_over(stint, line.row)
        self.scores.put(stint.snapshots[line.row], line)
        stint.scored = line.row + 1
        node.note_score(line)

    def _pass_over(self, stint: Stint, until: int) -> None:
        """Note that unscored rows of a process before `until` will never be scored."""
        for row in range(stint.scored, until):
            self.scores.put(stint.snapshots[row], None)
        stint.scored = max(stint.scored, until)

    def _read_log(self, node: Node, text: str) -> None:
        try:
            note: dict[str, Any] = json.loads(text)
            what = str(note.get("what"))
        except (ValueError, AttributeError):
            note, what = {}, ""  # most likely a traceback: kept for the error message
        if what != "acknowledged":
            node.tail.append(" ".join(map(str, note.values())) if note else text)
        self._take_note(node, what, note)

    def _take_note(self, node: Node, what: str, note: dict[str, Any]) -> None:
        """Take a log line's facts."""
        node.note_traffic(note)
        now = time.monotonic()
        if node.stints and "incarnation" in note:
            node.stints[-1].incarnations.add(note["incarnation"])
        if what in ("reading", "serving"):
            if node.state == "starting":
                node.state = "running"
            for stint in node.stints[-1:]:
                stint.reading = True
            for failure in self._failures:
                failure.note_ready(node.name, now)
        if what == "acknowledged":
            node.stints[-1].acknowledged = note["readings"]
        if what == "acknowledged" or (what == "ended" and not note.get("unreported")):
            for failure in self._failures:
                failure.note_acknowledged(node.name, now)

    def _end(self, node: Node, status: int) -> None:
        node.process = None
        for stint in node.stints[-1:]:
            self._pass_over(stint, stint.given)
            stint.ended = True
        if node.state == "killed":
            return
        if status or not self._closing:
            raise FleetFailed(f"{node.name} ended with status {status}; last log: {node.last_log}")
        node.state = "ended"
