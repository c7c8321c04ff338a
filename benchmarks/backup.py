"""What backups cost durable reports: an acknowledgement's lateness with a copy each second.

A real root on one core, its store on a disk. Nodes report over gRPC at a steady rate, each whether
or not its last report was answered: a root that pauses is late for all that were sent meanwhile.
One run has no backups, and the next has one each second, which takes it as `submerge backup` does.
Late is the time from sending a report to its acknowledgement, which follows the commit.

Afterwards each copy is checked as `submerge backup check` does: opened offline, its models computed
again and compared with those that the root had at that commit.
"""

import asyncio
import os
import threading
import time
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

import click

import measure
import processes
from report import Table
from speakers import Speaker, root_config, speakers
from submerge.errors import SubmergeError
from submerge.protocol.machine import Now
from submerge.protocol.messages import Answer, Joined, Model, Reason
from submerge_aggregator.backup import check_models, read_copy
from submerge_aggregator.config import load
from submerge_aggregator.questions.views import socket_of
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.ways import UnixSocket
from submerge_operate.backup import fetch
from submerge_proto.wire import codec
from wires import OverGrpc

DIM, RANK = 64, 8
CHANNELS = 32
MODEL_EVERY_S = 10.0
WARM_S = 3.0
LAST_S = 10.0
"""After the last report, for answers that are late."""


class Load:
    """Nodes that report in turn, so many a second, and how late their acknowledgements are."""

    def __init__(self, nodes: list[Speaker], wire: OverGrpc) -> None:
        self._nodes, self._wire = {node.name: node for node in nodes}, wire
        self._sent: dict[tuple[str, int], float] = {}
        self._version = self.joined = self.refused = 0
        self.late: list[float] = []

    def hear(self, _: object, kind: codec.Kind, data: bytes) -> None:
        """Take in an answer, or a model."""
        message = codec.decode(kind, data)
        match message:
            case Joined():
                self._nodes[message.stamp.node].parent = message.pinned
                self.joined += 1
            case Answer():
                sent = self._sent.pop((message.stamp.node, message.stamp.seq), None)
                self.refused += message.reason is not Reason.ACK
                if sent is not None:
                    self.late.append(time.perf_counter() - sent)
            case Model():
                self._version = message.version

    async def run(self, per_s: float, seconds: float) -> int:
        """Join, report for some time, and return how many reports have no answer."""
        await self._wire.open(list(self._nodes), self.hear)
        for node in self._nodes.values():
            self._wire.send(node.name, "join", node.join())
        while self.joined < len(self._nodes):
            await asyncio.sleep(0.01)
        turns = list(self._nodes.values())
        began = time.perf_counter()
        for number in range(int(per_s * (WARM_S + seconds))):
            await asyncio.sleep(max(0.0, began + number / per_s - time.perf_counter()))
            if number == int(per_s * WARM_S):
                self.late.clear()
            node = turns[number % len(turns)]
            data = node.report(Now(time.monotonic(), time.time(), True), self._version)
            self._sent[node.name, node.seq] = time.perf_counter()
            self._wire.send(node.name, "report", data)
        until = time.perf_counter() + LAST_S
        while self._sent and time.perf_counter() < until:
            await asyncio.sleep(0.01)
        await self._wire.close()
        return len(self._sent)


class Copies(threading.Thread):
    """Takes a copy each second until it is stopped."""

    def __init__(self, store: Path, folder: Path) -> None:
        super().__init__(daemon=True)
        self._admin, self._folder = AdminClient(UnixSocket(socket_of(store))), folder
        self.stopping = threading.Event()
        self.files: list[Path] = []
        self.took: list[float] = []
        self.failed: list[str] = []

    def run(self) -> None:
        """Copy, and wait for the rest of the second."""
        while not self.stopping.is_set():
            path, began = self._folder / f"{len(self.files):04}.backup", time.perf_counter()
            try:
                fetch(self._admin, path, anyway=False)
                self.files.append(path)
            except SubmergeError as error:
                self.failed.append(str(error))
            self.took.append(time.perf_counter() - began)
            self.stopping.wait(max(0.0, 1.0 - self.took[-1]))


class Run(NamedTuple):
    """A row of the table; times in milliseconds."""

    run: str
    reports: int
    median: float
    p99: float
    worst: float
    over_1_s: int
    unanswered: int
    copies: int
    good: int
    copy_ms: float
    copy_worst: float


def measured(*, backups: bool, seconds: float, nodes: int, per_s: float) -> Run:
    """Measure one run."""
    core, _ = processes.cores()
    with processes.site() as site:
        wire = OverGrpc(CHANNELS, streams=True)
        text = root_config(
            site.folder, wire.listen(), dim=DIM, rank=RANK, model_every_s=MODEL_EVERY_S
        )
        site.aggregator(text, core=core)
        load_ = Load(speakers(nodes, DIM, RANK, since_ms=int(time.time() * 1000)), wire)
        copies = Copies(site.folder / "root.db", site.folder)
        if backups:
            copies.start()
        unanswered = asyncio.run(load_.run(per_s, seconds))
        copies.stopping.set()
        if backups:
            copies.join()
        for each in copies.failed:
            measure.say(f"backup: {each}")
        config = load(site.folder / "root.toml", os.environ)
        good = 0
        for path in measure.progress(copies.files, "checking"):
            found = check_models(read_copy(path), config)
            good += not any(each.differs for each in found)
        if load_.refused:
            raise RuntimeError(f"{load_.refused} reports refused")
        cuts = quantiles(load_.late, n=100)
        took = sorted(copies.took) or [0.0]
        return Run(
            "a copy each second" if backups else "no copies",
            len(load_.late),
            1e3 * cuts[49],
            1e3 * cuts[98],
            1e3 * max(load_.late),
            sum(each > 1.0 for each in load_.late),
            unanswered,
            len(copies.files),
            good,
            1e3 * took[len(took) // 2],
            1e3 * took[-1],
        )


@click.command(help=__doc__)
@click.option("--minutes", default=5.0, help="Of each run.")
@click.option("--nodes", default=300, help="That report.")
@click.option("--per-s", default=100.0, help="Reports in a second, of all nodes together.")
def main(minutes: float, nodes: int, per_s: float) -> None:
    """Print a table."""
    began = processes.load()
    with processes.other_core():
        rows = [
            measured(backups=backups, seconds=60 * minutes, nodes=nodes, per_s=per_s)
            for backups in (False, True)
        ]
    columns = {
        "": "",
        "reports": "d",
        "median ms": ".1f",
        "99 % ms": ".1f",
        "worst ms": ".0f",
        "later than 1 s": "d",
        "unanswered": "d",
        "copies": "d",
        "good": "d",
        "a copy ms": ".0f",
        "worst copy ms": ".0f",
    }
    load_ = f"{nodes} nodes, {per_s:g} reports a second, {minutes:g} minutes each"
    note = f"{load_}. Load when it began: {began}."
    print(Table("Lateness of durable reports", columns, rows, note).markdown)


if __name__ == "__main__":
    main()
