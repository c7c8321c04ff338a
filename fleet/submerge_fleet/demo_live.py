"""What a person sees while the demo runs: every node, a line each, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from submerge import Subspace
from submerge_fleet.demo_client import Client
from submerge_fleet.demo_fleet import Aggregator
from submerge_fleet.demo_run import Demo
from submerge_fleet.room import DAY

REDRAW_S = 0.15
"""A few times a second: learning is not held up by paint."""

ROOMY = 110
"""Columns from which there is room for the channel to blame."""


@contextmanager
def watching(demo: Demo) -> Iterator[Callable[[int], None]]:
    """Show the fleet while the body runs; the body calls what it is given after a round."""
    bar = Progress(
        TextColumn("day {task.fields[day]:.1f} of {task.fields[days]:g}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    task = bar.add_task("", total=demo.room.n_snapshots, day=0.0, days=demo.settings.days)
    # No thread of its own: it would read a fleet in the middle of a round.
    with Live(auto_refresh=False, transient=True) as live:
        drawn = 0.0

        def show(snapshots: int) -> None:
            nonlocal drawn
            bar.update(task, advance=snapshots, day=demo.snapshots / DAY)
            if time.monotonic() - drawn >= REDRAW_S:
                live.update(Group(fleet_table(demo, width=live.console.width), bar), refresh=True)
                drawn = time.monotonic()

        yield show


def fleet_table(demo: Demo, *, width: int) -> Table:
    """Return the fleet as it stands, clients, aggregators, root, `width` columns wide at most."""
    fleet = demo.fleet
    title = f"{len(fleet.clients)} clients learn one room"
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("node", no_wrap=True)
    for heading in ("rows", "rank", "reports", "kB sent", "energy", "kB held", "top SPE"):
        table.add_column(heading, justify="right", no_wrap=True)
    if width >= ROOMY:
        table.add_column("its top channel", no_wrap=True)
    cells = len(table.columns)
    limit = demo.watch.limits.spe if demo.watch.limits else None
    for client in fleet.clients:
        spe, channel = "-", ""
        if client.worst is not None:
            spe = f"{client.worst.spe:.1f}"
            if limit is not None and client.worst.spe > limit:
                spe = f"[bold red]{spe}[/]"
            name = demo.room.channels[client.worst.channel].name
            channel = f"{name} {client.worst.share:.0%}"
        known = client.subspace if client.rows else None
        table.add_row(*(*_cells(client, known, fleet.rank), spe, channel)[:cells])
    table.add_section()
    for node in fleet.aggregators:
        table.add_row(*_cells(node, node.subspace, fleet.rank))
    table.add_section()
    name, rows, rank, _, _, energy, memory = _cells(fleet.root, fleet.model, fleet.rank)
    down = f"{fleet.bytes_down / 1000:,.0f}"
    said = "" if limit is None else f"{limit:.1f}"
    last = (name, rows, rank, "", down, energy, memory, said, said and "is the limit")
    table.add_row(*last[:cells])
    alarms = [f"mote{alarm.mote:02d} {alarm.quantity}" for alarm in demo.watch.alarms]
    table.caption = f"singled out: {', '.join(alarms) or 'none'}"
    return table


def _cells(node: Client | Aggregator, subspace: Subspace | None, rank: int) -> tuple[str, ...]:
    """What every node has: name, rows, rank, reports, bytes sent, energy kept, memory."""
    shown, energy = "-", "-"
    if subspace is not None and subspace.energy > 0:
        seen = subspace.truncated(rank)
        shown = f"{seen.rank}+{subspace.rank - seen.rank}"
        energy = f"{float(seen.sigma @ seen.sigma) / seen.energy:.1%}"
    sent, memory = (f"{n / 1000:,.0f}" for n in (node.bytes_up, node.buffer_bytes))
    return node.name, f"{node.rows:,}", shown, f"{node.reports}", sent, energy, memory
