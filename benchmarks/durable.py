"""Reports that one aggregator makes durable in a second: over gRPC, and over MQTT.

A real root on one core, its store on a disk; on the other core whoever speaks to it, and the
broker. A thousand nodes report one after the other, each only once it has its answer before;
so many of them at a time that turns fill. Each report is new: a higher number, and a subspace
that has learnt more. What counts is an acknowledgement, which follows the write to disk.

A commit costs what the disk makes of it, and this disk may be a fast one: "a commit" is
measured beside it. Mean turn: reports that shared one commit.
"""

import asyncio
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import measure
import processes
from report import Table, command
from speakers import Speaker, root_config, speakers
from submerge.protocol.machine import Now
from submerge.protocol.messages import Answer, Joined, Model, Reason
from submerge_proto.wire import codec
from submerge_proto.wire.codec import Kind
from wires import OverGrpc, OverMqtt, Wire

DIM, RANK, NODES = 64, 8, 1000
AT_ONCE = 256
"""Nodes that wait for an answer at any time."""

CHANNELS = 32
"""Connections over gRPC; real nodes have one each, which costs memory rather than time."""

MODEL_EVERY_S = 10.0
"""A model of a thousand nodes now and then is part of the work."""

WARM_S = 3.0
OVER: dict[str, Callable[[processes.Site], Wire]] = {
    "gRPC": lambda _: OverGrpc(CHANNELS, streams=True),
    "gRPC, a call each": lambda _: OverGrpc(CHANNELS),
    "MQTT": lambda site: OverMqtt(site, core=processes.cores()[1]),
}


class Clerk:
    """Has all nodes join, and the next one report for each answer that comes."""

    def __init__(self, nodes: Sequence[Speaker], wire: Wire) -> None:
        self.joined = self.acknowledged = self.refused = 0
        self._nodes = {node.name: node for node in nodes}
        self._idle, self._wire = deque(nodes), wire
        self._version = 0
        self._done = False

    def begin(self) -> None:
        """Have all ask to join."""
        for node in self._nodes.values():
            self._wire.send(node.name, "join", node.join())

    def end(self) -> None:
        """Follow nothing up any more."""
        self._done = True

    def hear(self, _: Sequence[str], kind: Kind, data: bytes) -> None:
        """Take in an answer, or a model."""
        message = codec.decode(kind, data)
        match message:
            case Joined():
                if message.reason is not Reason.ACK:
                    raise RuntimeError(f"a join was refused: {message}")
                self._nodes[message.stamp.node].parent = message.pinned
                self.joined += 1
                if self.joined == len(self._nodes):
                    for _ in range(min(AT_ONCE, len(self._nodes))):
                        self._speak()
            case Answer():
                node = self._nodes[message.stamp.node]
                taken = message.reason is Reason.ACK and message.newest == node.seq
                self.acknowledged += taken
                self.refused += not taken
                self._idle.append(node)
                self._speak()
            case Model():
                self._version = message.version

    def _speak(self) -> None:
        if not self._done:
            node, now = self._idle.popleft(), Now(time.monotonic(), time.time(), True)
            self._wire.send(node.name, "report", node.report(now, self._version))


class Mark(NamedTuple):
    """How far it was at a time."""

    at: float
    acknowledged: int
    cpu_s: float
    reports: float
    commits: float


class Rate(NamedTuple):
    """A row of the table."""

    over: str
    per_s: float
    microseconds: float
    turn: float
    mebibytes: float


def measured(over: str, seconds: float, *, source: Path | None = None, more: str = "") -> Rate:
    """Have a thousand nodes speak to a root for some seconds.

    source : another checkout, whose root it is
    more : sections of the root's configuration
    """
    core, _ = processes.cores()
    with processes.site() as site:
        wire = OVER[over](site)
        config = root_config(
            site.folder, wire.listen(), dim=DIM, rank=RANK, model_every_s=MODEL_EVERY_S
        )
        root, status = site.aggregator(config + more, core=core, source=source)
        nodes = speakers(NODES, DIM, RANK, since_ms=int(time.time() * 1000))
        clerk = Clerk(nodes, wire)

        def mark() -> Mark:
            reported = processes.numbers(status)
            reports, commits = (
                reported[f"submerge_{what}_total"] for what in ("reports", "commits")
            )
            return Mark(time.perf_counter(), clerk.acknowledged, root.cpu_s, reports, commits)

        async def run() -> tuple[Mark, Mark]:
            await wire.open([node.name for node in nodes], clerk.hear)
            clerk.begin()
            await asyncio.sleep(WARM_S)
            before = mark()
            await asyncio.sleep(seconds)
            after = mark()
            clerk.end()
            await wire.close()
            return before, after

        before, after = asyncio.run(run())
        done = after.acknowledged - before.acknowledged
        if clerk.refused or not done:
            raise RuntimeError(f"{clerk.refused} reports refused, {done} taken: {root.said()}")
        return Rate(
            over,
            done / (after.at - before.at),
            1e6 * (after.cpu_s - before.cpu_s) / done,
            (after.reports - before.reports) / (after.commits - before.commits),
            root.resident / 2**20,
        )


def commit_ms() -> float:
    """Return what it takes to have 4 kB on the disk for certain, in milliseconds."""
    with processes.site() as site:
        file = os.open(site.folder / "probe", os.O_WRONLY | os.O_CREAT)
        try:

            def once() -> float:
                os.write(file, bytes(4096))
                start = time.perf_counter()
                os.fdatasync(file)
                return time.perf_counter() - start

            return measure.repeated(once, budget_s=0.5).median * 1e3
        finally:
            os.close(file)


def room(quick: bool) -> list[Table]:
    """Measure each way, the best of three runs; `quick`: one, and shorter."""
    if sys.platform != "linux":
        measure.say("durable: skipped, it reads /proc")
        return []
    seconds, runs = (5.0, 1) if quick else (10.0, 3)
    ways = [over for over in OVER if over != "MQTT" or processes.mosquitto()]
    load = processes.load()
    with processes.other_core():
        turns = [over for _ in range(runs) for over in ways]
        rates = [measured(over, seconds) for over in measure.progress(turns, "durable")]
    best = [
        max((rate for rate in rates if rate.over == over), key=lambda rate: rate.per_s)
        for over in ways
    ]
    return [
        Table(
            f"Durable reports, d = {DIM}, r = {RANK}, {NODES} nodes, {AT_ONCE} at a time",
            {
                "over": "",
                "reports/s": ".0f",
                "µs of the root's core each": ".0f",
                "mean turn": ".0f",
                "MiB resident": ".0f",
            },
            best,
            f"A commit of 4 kB to that disk takes {commit_ms():.2f} ms; `TMPDIR` names a folder on"
            f" another. Load when it began: {load}. MQTT: through Mosquitto, if it is there.",
        )
    ]


if __name__ == "__main__":
    command(room)
