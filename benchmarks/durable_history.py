"""What a history costs the reports that a root makes durable: with one, and without, in turns.

    python benchmarks/durable_history.py --turns 60

Two roots on one core, one with `[history] max_bytes = 0` and one with the default; the load and the
nodes are those of `durable.py`, and each report has the trail of 32 minutes. The load goes to one
root for a second, then to the other, so that both meet the same other work on this machine. Each
node reports once a second or so, some hundred times as often as a real one: so much the more does
the history have to merge. The shares are what is reached with a history over what is without.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import click

import durable
import measure
import processes
from durable import AT_ONCE, CHANNELS, DIM, MODEL_EVERY_S, NODES, RANK, WARM_S
from report import Table
from speakers import Speaker, root_config, speakers
from wires import OverGrpc, Wire

NONE = "\n[history]\nmax_bytes = 0\n"


class Clerk(durable.Clerk):
    """One that falls silent, and goes on."""

    def __init__(self, nodes: Sequence[Speaker], wire: Wire) -> None:
        super().__init__(nodes, wire)
        self._silent = False

    def pause(self) -> None:
        """Have no node report any more, until it goes on."""
        self._silent = True

    def go_on(self) -> None:
        """Have as many nodes report as may wait for an answer."""
        self._silent = False
        for _ in range(min(AT_ONCE, len(self._idle))):
            self._speak()

    def _speak(self) -> None:
        if not self._silent:
            super()._speak()


class Rates(NamedTuple):
    """A row of the table."""

    history: str
    reports: int
    per_s: float
    microseconds: float
    share: float | None
    share_of_time: float | None


class Root:
    """A root, those who speak to it, and what came of it in its turns."""

    def __init__(self, site: processes.Site, more: str) -> None:
        self._wire, core = OverGrpc(CHANNELS, streams=True), processes.cores()[0]
        listen = self._wire.listen()
        config = root_config(site.folder, listen, dim=DIM, rank=RANK, model_every_s=MODEL_EVERY_S)
        self.process, _ = site.aggregator(config + more, core=core)
        self.nodes = speakers(NODES, DIM, RANK, since_ms=int(time.time() * 1000))
        self.clerk = Clerk(self.nodes, self._wire)
        self.rates: list[float] = []
        self.reports, self.cpu_s = 0, 0.0

    async def begin(self) -> None:
        """Have all nodes join, and report for a while."""
        await self._wire.open([node.name for node in self.nodes], self.clerk.hear)
        self.clerk.begin()
        await asyncio.sleep(WARM_S)
        self.clerk.pause()
        await asyncio.sleep(1.0)

    async def turn(self, seconds: float) -> None:
        """Have nodes report for so long, and wait until the last has its answer."""
        clerk = self.clerk
        done, spent, began = clerk.acknowledged, self.process.cpu_s, time.perf_counter()
        clerk.go_on()
        await asyncio.sleep(seconds)
        clerk.pause()
        self.rates.append((clerk.acknowledged - done) / (time.perf_counter() - began))
        await asyncio.sleep(0.2)
        self.reports += clerk.acknowledged - done
        self.cpu_s += self.process.cpu_s - spent

    async def end(self) -> None:
        """Close the connections."""
        self.clerk.end()
        await self._wire.close()


async def compared(turns: int, seconds: float) -> tuple[Root, Root]:
    """Let both take turns; return them, the one without a history first."""
    with processes.site() as one, processes.site() as other:
        roots = Root(one, NONE), Root(other, "")
        for root in roots:
            await root.begin()
        for turn in measure.progress(range(turns), "durable"):
            for root in roots if turn % 2 else reversed(roots):
                await root.turn(seconds)
        for root in roots:
            await root.end()
    return roots


@click.command(help=__doc__)
@click.option("--turns", default=60, show_default=True)
@click.option("--seconds", default=1.0, show_default=True, help="Of each turn.")
def main(turns: int, seconds: float) -> None:
    """Print the table."""
    load = processes.load()
    with processes.other_core():
        without, kept = asyncio.run(compared(turns, seconds))
    each = [1e6 * root.cpu_s / root.reports for root in (without, kept)]
    # Of the medians: on a busy machine a root may get nothing for a turn.
    share = median(kept.rates) / median(without.rates)
    rows = [
        Rates("none", without.reports, median(without.rates), each[0], None, None),
        Rates("kept", kept.reports, median(kept.rates), each[1], share, each[0] / each[1]),
    ]
    columns = {
        "history": "",
        "reports": ",d",
        "reports/s": ".0f",
        "µs of the root's core each": ".0f",
        "share of reports/s": ".3f",
        "by the core's time": ".3f",
    }
    title = f"Durable reports with a history over gRPC, {turns} turns of {seconds:g} s each"
    notes = f"Load when it began: {load}. Medians over turns; the time is of all of them."
    click.echo(Table(title, columns, rows, notes).markdown)


if __name__ == "__main__":
    sys.exit(main())
