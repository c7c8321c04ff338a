"""What a client and an aggregator weigh: memory, and a client's work for a row.

Real processes, and what the kernel says of them: VmRSS, which counts shared libraries in
full, and processor time, system calls included. Clients are fed lines of 54 channels on
standard input, and write a score for each row to /dev/null, three channels named with each.
One is fed as fast as it reads, and reports every second, so that what a report leaves behind
would show; another at 10 rows a second, with the timing that holds if none is configured.

Growth: the slope of a line through what it holds over the second half of the rows.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import numpy as np

import measure
import processes
from report import Table, command
from speakers import root_config, schema_of, speakers
from submerge.protocol.machine import Now
from submerge.protocol.messages import Answer, Joined, Reason
from submerge_proto.wire import codec
from wires import FLEET, GROUP, ROOT, OverGrpc, OverMqtt, Wire

CHANNELS, RANK = 54, 8
LINES = 1000
"""Different rows, fed in turn: to write them anew would take longer than to learn them."""

SLOW_PER_S = 10
SAMPLES = 100

CHILDREN, CHILD_DIM = 1000, 64

CONFIG = """\
node = "{name}"
group = "{group}"
parent = "{root}"
state = "{folder}/{name}.state"
[uplink]
url = "{url}"
fleet = "{fleet}"
insecure = true
[schema]
channels = [{channels}]
center = "{center}"
[summary]
rank = {rank}
[timing]
report_every_s = {report_every_s}
[sensor]
kind = "ndjson"
[scores]
to = "stdout"
"""


def lines(count: int, width: int) -> list[bytes]:
    """Return rows as a sensor's program writes them, of a few directions and noise."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((count, 6)) @ rng.standard_normal((6, width)) * 3
    rows += 0.1 * rng.standard_normal(rows.shape)
    return [(json.dumps(row) + "\n").encode() for row in rows.round(4).tolist()]


class Client(NamedTuple):
    """A row of the table."""

    over: str
    rows: int
    started: float
    most: float
    growth: float
    per_row: float
    per_row_slowly: float
    threads: int


@contextmanager
def running(
    over: str, dim: int, model_every_s: float
) -> Iterator[tuple[processes.Site, Wire, processes.Process, int]]:
    """Start a root that listens on a wire; hand over its status port, too."""
    with processes.site() as site:
        wire = WIRES[over](site)
        config = root_config(
            site.folder, wire.listen(), dim=dim, rank=RANK, model_every_s=model_every_s
        )
        yield site, wire, *site.aggregator(config)


WIRES: dict[str, Callable[[processes.Site], Wire]] = {
    "MQTT": OverMqtt,
    "gRPC": lambda _: OverGrpc(),
}


def client(over: str, rows: int, slowly_s: float) -> Client:
    """Feed one client as fast as it reads, and another slowly, as it would run for years."""
    fed, slow = lines(LINES, CHANNELS), int(slowly_s * SLOW_PER_S)
    with running(over, CHANNELS, 1.0) as (site, wire, _, status):
        with fed_client(site, wire, "quick", report_every_s=1) as (process, pipe):
            # What is loaded with the first model belongs to what it weighs.
            while not processes.numbers(status)[f'submerge_clients{{group="{GROUP}"}}']:
                _feed(pipe, fed, 50, per_s=50)
            _feed(pipe, fed, 200, per_s=50)
            _rest(process)
            started, spent, seen = process.resident, process.cpu_s, []
            for _ in range(SAMPLES):
                _feed(pipe, fed, rows // SAMPLES)
                seen.append(process.resident)
            _rest(process)
            seen.append(process.resident)
            quickly, threads = (process.cpu_s - spent) / rows, process.threads
        with fed_client(site, wire, "slow", report_every_s=300) as (process, pipe):
            _feed(pipe, fed, 200, per_s=50)
            spent = process.cpu_s
            _feed(pipe, fed, slow, per_s=SLOW_PER_S)
            slowly = (process.cpu_s - spent) / slow
    half = seen[len(seen) // 2 :]
    growth = np.polyfit(np.arange(len(half)) * (rows / SAMPLES), half, 1)[0]
    mebibytes = started / 2**20, max(seen) / 2**20
    return Client(over, rows, *mebibytes, float(growth), quickly * 1e6, slowly * 1e6, threads)


@contextmanager
def fed_client(
    site: processes.Site, wire: Wire, name: str, *, report_every_s: float
) -> Iterator[tuple[processes.Process, IO[bytes]]]:
    """Start a client; hand it over with its pipe, and see that it ends well."""
    path = site.folder / f"{name}.toml"
    path.write_text(
        CONFIG.format(
            name=name,
            group=GROUP,
            root=ROOT,
            folder=site.folder,
            url=wire.url,
            fleet=FLEET,
            channels=", ".join(f'"c{i}"' for i in range(CHANNELS)),
            center=schema_of(CHANNELS).center,
            rank=RANK,
            report_every_s=report_every_s,
        )
    )
    process = site.run(processes.SUBMERGE, "client", "--config", path, name=name, stdin=-1)
    pipe = process.popen.stdin
    yield process, pipe
    pipe.close()
    if process.popen.wait(processes.WITHIN_S):
        raise RuntimeError(f"the client failed:\n{process.said()}")


def _feed(pipe: Any, fed: list[bytes], rows: int, *, per_s: float | None = None) -> int:
    """Write so many rows, at a rate if one is given, else as fast as they are read."""
    if per_s is None:
        whole, rest = divmod(rows, len(fed))
        for _ in range(whole):
            pipe.write(b"".join(fed))
        pipe.write(b"".join(fed[:rest]))
        pipe.flush()
        return rows
    began = time.perf_counter()
    for i in range(rows):
        pipe.write(fed[i % len(fed)])
        pipe.flush()
        time.sleep(max(0.0, began + (i + 1) / per_s - time.perf_counter()))
    return rows


def _rest(process: processes.Process) -> None:
    """Wait until it has read what it was given, and has reported."""
    spent = -1.0
    while process.cpu_s > spent + 0.02:
        spent = process.cpu_s
        time.sleep(2.5)


class Aggregator(NamedTuple):
    """A row of the table."""

    over: str
    children: int
    alone: float
    joined: float
    reported: float
    descriptors: int
    threads: int


def aggregator(over: str, children: int) -> Aggregator:
    """Let so many nodes join, report, and report again until a model counts them all."""
    with running(over, CHILD_DIM, 2.0) as (_, wire, root, _):
        alone = root.resident
        nodes = speakers(children, CHILD_DIM, RANK, since_ms=int(time.time() * 1000))
        by_name = {node.name: node for node in nodes}
        waiting: set[str] = set()

        def hear(_: object, kind: codec.Kind, data: bytes) -> None:
            match codec.decode(kind, data):
                case Joined(stamp, Reason.ACK, pinned=parent):
                    by_name[stamp.node].parent = parent
                    waiting.discard(stamp.node)
                case Answer(stamp, Reason.ACK):
                    waiting.discard(stamp.node)

        async def all_answered() -> None:
            ends = time.monotonic() + 10 * processes.WITHIN_S
            while waiting:
                if time.monotonic() > ends:
                    raise RuntimeError(f"{len(waiting)} nodes were not answered:\n{root.said()}")
                await asyncio.sleep(0.05)

        async def reported() -> tuple[int, int, int, int]:
            await wire.open(list(by_name), hear)
            waiting.update(by_name)
            for node in nodes:
                wire.send(node.name, "join", node.join())
            await all_answered()
            joined = root.resident
            for _ in range(10):
                waiting.update(by_name)
                now = Now(time.monotonic(), time.time(), True)
                for node in nodes:
                    wire.send(node.name, "report", node.report(now, 0))
                await all_answered()
            await asyncio.sleep(5.0)
            seen = root.resident, root.descriptors, root.threads
            await wire.close()
            return joined, *seen

        joined, reported, descriptors, threads = asyncio.run(reported())
    return Aggregator(
        over, children, alone / 2**20, joined / 2**20, reported / 2**20, descriptors, threads
    )


def room(quick: bool) -> list[Table]:
    """Weigh clients and aggregators; `quick`: fewer rows, and 100 children."""
    rows, slowly_s = (100_000, 10.0) if quick else (1_000_000, 60.0)
    load = processes.load()
    clients = [client(over, rows, slowly_s) for over in measure.progress(WIRES, "clients")]
    children = CHILDREN // 10 if quick else CHILDREN
    parents = [aggregator(over, children) for over in measure.progress(WIRES, "aggregators")]
    return [
        Table(
            f"A client, {CHANNELS} channels, r = {RANK}, with scores",
            {
                "over": "",
                "rows": ",d",
                "MiB, started": ".1f",
                "MiB, most": ".1f",
                "growth, B/row": ".1f",
                "µs/row, flat out": ".0f",
                f"µs/row at {SLOW_PER_S}/s": ".0f",
                "threads": "d",
            },
            clients,
            f"Load when it began: {load}.",
        ),
        Table(
            f"A root, d = {CHILD_DIM}, r = {RANK}",
            {
                "over": "",
                "children": ",d",
                "MiB, alone": ".0f",
                "all joined": ".0f",
                "ten reports of each later": ".0f",
                "descriptors": "d",
                "threads": "d",
            },
            parents,
        ),
    ]


if __name__ == "__main__":
    command(room)
