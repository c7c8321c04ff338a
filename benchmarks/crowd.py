"""A thousand clients against one root for ten minutes: is nothing lost, and does nothing grow?

The root is a real process, with its store on disk; half of the clients reach it over gRPC, each
by a connection and a watch of its own, the other half through Mosquitto. The clients are real
`ClientNode`s, each with its own random generator, which learn and score real rows; one event
loop drives them all, in place of a thousand processes, and says what they say on the real wire.
They report every 5 to 10 s, and keep nothing: none of them is killed (benchmarks/kills.py).

`python benchmarks/crowd.py --minutes 10` prints what it saw, and exits 1 unless

* every reading that was fed is acknowledged, and no life has ended;
* the root's model counts exactly those;
* over the second half the root's memory grew by no more than 1 %, by a line through it, and
  the last quarter has never more descriptors or threads than there had been before: gRPC keeps
  a pool of threads that comes and goes.
"""

import asyncio
import heapq
import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import click
import numpy as np

import blas  # noqa: F401 (before numpy: it sets one thread)
import processes
from measure import Array, say
from speakers import root_config, schema_of
from submerge.client.node import ClientNode
from submerge.protocol.machine import (
    Event,
    Flush,
    Linked,
    Note,
    Reading,
    Received,
    Send,
    Start,
    Tick,
)
from submerge.protocol.messages import Model
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge_client import clock
from submerge_proto.wire import codec
from submerge_proto.wire.codec import Kind
from wires import GROUP, ROOT, OverGrpc, OverMqtt, Wire

DIM, RANK = 64, 8
ROWS, ROWS_EVERY_S = 10, 2.0
"""Rows in one block from a sensor, and the time between two."""

REPORT_EVERY_S = 5.0, 10.0
MODEL_EVERY_S = 10.0
SAMPLE_EVERY_S = 5.0
END_S = 60.0
"""How long all of it may take to come to rest."""

REFUSED = "submerge_refused_messages_total{"
"""What there is of each reason."""

GROWTH = 0.01
"""Of memory, over the second half: what an allocator's moods come to."""


class Member:
    """One client, and the wire that it speaks by."""

    def __init__(self, name: str, wire: Wire, schema: object, seed: np.random.SeedSequence) -> None:
        rng = np.random.default_rng(seed)
        settings = ClientSettings(
            name, GROUP, ROOT, report_every_s=rng.uniform(*REPORT_EVERY_S), min_rows=ROWS
        )
        self.name, self._wire = name, wire
        self.node = ClientNode(settings, schema, Subspaces(RANK), rng)
        self.notes: Counter[str] = Counter()

    def step(self, event: Event) -> float:
        """Let the node take an event, and send what it says; return when it is due again."""
        for effect in self.node.step(event, clock.now()):
            match effect:
                case Send(_, message):
                    self._wire.send(self.name, codec.kind_of(message), codec.encode(message))
                case Note(what):
                    self.notes[what] += 1
        return self.node.wakes_at


class Crowd:
    """All members, driven by one event loop."""

    def __init__(self, members: Sequence[Member], rows: Array) -> None:
        self.members = members
        self.model: Model | None = None
        self.fed = self.failures = 0
        self._by_name = {member.name: i for i, member in enumerate(members)}
        self._rows = itertools.cycle(np.split(rows, len(rows) // ROWS))
        self._due: list[tuple[float, int]] = []

    def hear(self, names: Sequence[str], kind: Kind, data: bytes) -> None:
        """Let those who hear it take in a message."""
        message = codec.decode(kind, data)
        if isinstance(message, Model):
            self.model = message
        for name in names:
            self.step(self._by_name[name], Received(message))

    def step(self, i: int, event: Event) -> None:
        """Let one member take an event."""
        heapq.heappush(self._due, (self.members[i].step(event), i))

    async def tick(self) -> None:
        """Wake members when they are due, for ever."""
        while True:
            now = time.monotonic()
            while self._due and self._due[0][0] <= now:
                _, i = heapq.heappop(self._due)
                if self.members[i].node.wakes_at <= now:
                    self.step(i, Tick())
            await asyncio.sleep(0.02)

    async def feed(self) -> None:
        """Give each member a block of rows every so often, one after the other, for ever."""
        pause, began = ROWS_EVERY_S / len(self.members), time.monotonic()
        for n in itertools.count():
            self.step(n % len(self.members), Reading(next(self._rows)))
            self.fed += ROWS
            await asyncio.sleep(max(0.0, began + n * pause - time.monotonic()))

    @property
    def reported(self) -> bool:
        """Whether the parent holds all that they have seen."""
        return all(member.node.all_delivered for member in self.members)

    @property
    def acknowledged(self) -> int:
        """Readings that the parent is known to hold."""
        return sum(member.node.current.delivered for member in self.members)


class Sample(NamedTuple):
    """What the kernel says of the root."""

    at: float
    resident: int
    descriptors: int
    threads: int


async def run(
    crowd: Crowd, wires: dict[Wire, list[str]], root: processes.Process, seconds: float
) -> list[Sample]:
    """Let them live for some seconds, and come to rest; return what was seen of the root."""
    for i in range(len(crowd.members)):
        crowd.step(i, Start({}))
    for wire, names in wires.items():
        await wire.open(names, crowd.hear)
    for i in range(len(crowd.members)):
        crowd.step(i, Linked())
    ticking, feeding = asyncio.create_task(crowd.tick()), asyncio.create_task(crowd.feed())
    samples, began = list[Sample](), time.monotonic()
    while time.monotonic() < began + seconds:
        await asyncio.sleep(SAMPLE_EVERY_S)
        if ticking.done() or feeding.done() or not root.runs:
            raise RuntimeError(f"it stopped: {ticking}, {feeding}\n{root.said()}")
        at = time.monotonic() - began
        samples.append(Sample(at, root.resident, root.descriptors, root.threads))
        if len(samples) % 6 == 0:
            say(f"{at:5.0f} s  {root.resident / 2**20:6.1f} MiB  {crowd.acknowledged:,} readings")
    feeding.cancel()
    for i in range(len(crowd.members)):
        crowd.step(i, Flush())
    ends = time.monotonic() + END_S
    while time.monotonic() < ends and not (crowd.reported and _counted(crowd) == crowd.fed):
        await asyncio.sleep(0.1)
    ticking.cancel()
    for wire in wires:
        crowd.failures += wire.failures
        await wire.close()
    return samples


def _counted(crowd: Crowd) -> int:
    return 0 if crowd.model is None else crowd.model.counts.generated


def violations(crowd: Crowd, samples: Sequence[Sample]) -> list[str]:
    """Return what must not be, in words."""
    found = []
    if crowd.acknowledged != crowd.fed:
        found.append(f"fed {crowd.fed:,} readings, acknowledged {crowd.acknowledged:,}")
    if _counted(crowd) != crowd.fed:
        found.append(f"fed {crowd.fed:,} readings, the model counts {_counted(crowd):,}")
    notes = sum((member.notes for member in crowd.members), Counter())
    found += [f"{count} times: {what}" for what, count in notes.items()]
    if crowd.failures:
        found.append(f"{crowd.failures} calls without an answer, or watches that ended")
    half = samples[len(samples) // 2 :]
    if (grown := growth(half)) > GROWTH * half[0].resident:
        found.append(f"memory grew by {grown / 1024:,.0f} KiB over the second half")
    for what in ("descriptors", "threads"):
        before, last = most(samples, what)
        if last > before:
            found.append(f"{what}: at most {before}, and {last} in the last quarter")
    return found


def most(samples: Sequence[Sample], what: str) -> tuple[int, int]:
    """Return the most that there were at a time, before the last quarter and in it."""
    counts, cut = [getattr(sample, what) for sample in samples], len(samples) * 3 // 4
    return max(counts[:cut]), max(counts[cut:])


def figures(
    crowd: Crowd, samples: Sequence[Sample], reported: dict[str, float], cpu_s: float
) -> dict[str, str]:
    """Return what there is to tell, in words."""
    half = samples[len(samples) // 2 :]
    first, last = half[0], half[-1]
    heard = [
        f"{reported[f'submerge_{what}_total']:,.0f}" for what in ("joins", "reports", "commits")
    ]
    refused = sum(count for name, count in reported.items() if name.startswith(REFUSED))
    return {
        "readings fed": f"{crowd.fed:,}",
        "acknowledged": f"{crowd.acknowledged:,}",
        "counted by the model": f"{_counted(crowd):,}",
        "joins, reports, commits": ", ".join(heard),
        "refused, unwritten": f"{refused:.0f}, {reported['submerge_failed_writes_total']:.0f}",
        "the root's core": f"{cpu_s / last.at:.0%} busy",
        "MiB, middle and end": f"{first.resident / 2**20:.1f} and {last.resident / 2**20:.1f}",
        "growth, by a line": f"{growth(half) / 1024:+,.0f} KiB",
        **{
            f"most {what}, before and last": "{} and {}".format(*most(samples, what))
            for what in ("descriptors", "threads")
        },
    }


def growth(samples: Sequence[Sample]) -> float:
    """Return by how many bytes memory grew, by a line through all samples."""
    times = np.array([sample.at for sample in samples])
    slope = np.polyfit(times, [sample.resident for sample in samples], 1)[0]
    return float(slope * (times[-1] - times[0]))


def readings(count: int, seed: int) -> Array:
    """Return rows of a few directions, and noise."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, RANK)) * 4.0 / np.arange(1, RANK + 1)
    rows = rows @ np.linalg.qr(rng.standard_normal((DIM, RANK)))[0].T
    return rows + 0.1 * rng.standard_normal((count, DIM))


@click.command(help=__doc__)
@click.option("--minutes", default=10.0, show_default=True)
@click.option("--clients", default=1000, show_default=True)
@click.option("--over", type=click.Choice(["both", "grpc", "mqtt"]), default="both")
def main(minutes: float, clients: int, over: str) -> None:
    """Run it, and print the figures."""
    core, other = processes.cores()
    if other is not None:
        os.sched_setaffinity(0, {other})
    load = processes.load()
    with processes.site() as site:
        ways: list[Wire] = []
        if over != "mqtt":
            ways.append(OverGrpc())
        if over != "grpc":
            ways.append(OverMqtt(site))
        schema, seeds = schema_of(DIM), np.random.SeedSequence().spawn(clients)
        members = [
            Member(f"n{i:05}", ways[i % len(ways)], schema, seed) for i, seed in enumerate(seeds)
        ]
        listen = "".join(way.listen() for way in ways)
        config = root_config(site.folder, listen, dim=DIM, rank=RANK, model_every_s=MODEL_EVERY_S)
        root, status = site.aggregator(config, core=core)
        crowd = Crowd(members, readings(50_000, seed=1))
        names = {
            way: [member.name for member in members[n :: len(ways)]] for n, way in enumerate(ways)
        }
        samples = asyncio.run(run(crowd, names, root, 60 * minutes))
        reported, cpu_s = processes.numbers(status), root.cpu_s
    click.echo(f"{clients:,} clients over {over}, {minutes:g} minutes, load at first {load}")
    for what, value in figures(crowd, samples, reported, cpu_s).items():
        click.echo(f"{what:<38}{value}")
    found = violations(crowd, samples)
    for each in found:
        click.echo(f"VIOLATION: {each}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
