"""The live display of a running demo: one line for each process, and a progress bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from submerge_lab.demo.fleet import Node
from submerge_lab.demo.run import Demo
from submerge_lab.plants.room import DAY

REDRAW_S = 0.25
"""Seconds between redraws, so that drawing does not delay the run."""

ROOMY = 100
"""Terminal columns from which there is room for the top channel."""

STYLE = {"starting": "yellow", "running": "green", "killed": "bold red", "ended": "dim"}


@contextmanager
def show_live(demo: Demo) -> Iterator[Callable[[], None]]:
    """Show the fleet while the body runs; yield what the body calls to redraw."""
    bar = Progress(
        TextColumn("day {task.fields[day]:.1f} of {task.fields[days]:g}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    task = bar.add_task("", total=demo.room.n_snapshots, day=0.0, days=demo.settings.days)
    # No thread of its own: the loop that feeds the fleet has time for it.
    with Live(auto_refresh=False, transient=True) as live:
        drawn = 0.0

        def show() -> None:
            nonlocal drawn
            if time.monotonic() - drawn < REDRAW_S:
                return
            bar.update(task, completed=demo.dealer.dealt, day=demo.dealer.dealt / DAY)
            live.update(Group(fleet_table(demo, width=live.console.width), bar), refresh=True)
            drawn = time.monotonic()

        yield show


def fleet_table(demo: Demo, *, width: int) -> Table:
    """Return the state of the fleet, a line for each process, at most `width` columns wide."""
    title = f"{demo.settings.clients} clients learn one room, over {demo.site.wire.name}"
    if demo.settings.features:
        title += f"; a kernel, {demo.settings.features} features"
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("process", no_wrap=True)
    table.add_column("state", no_wrap=True)
    kernel = bool(demo.settings.features)
    score = "anomaly score" if kernel else "SPE"
    for heading in ("rows", "acknowledged", "MiB", "kB sent", score):
        table.add_column(heading, justify="right", no_wrap=True)
    if width >= ROOMY:
        table.add_column("top channel", no_wrap=True)
    cells = len(table.columns)
    limit = demo.watch.limits.spe if demo.watch.limits else None
    if kernel:
        limit = 1.0  # by the definition of an anomaly score
    clients = demo.fleet.of("client")
    for node in clients:
        table.add_row(
            *(*_cells(node), f"{node.acknowledged:,}", *_used(node), *_most_anomalous(node, limit))[
                :cells
            ]
        )
    table.add_section()
    for node in demo.fleet.nodes.values():
        if node not in clients:
            below = [child.acknowledged for child in clients if child.member.parent == node.name]
            acknowledged = f"{sum(below):,}" if below else ""
            table.add_row(*_cells(node), acknowledged, *_used(node))
    alarms = [f"mote{out.mote:02d} {out.quantity}" for out in demo.alarms.out]
    table.caption = f"out of service: {', '.join(alarms) or 'none'}"
    if limit is not None:
        table.caption += f"; limit of {score}: {limit:.1f}"
    return table


def _cells(node: Node) -> tuple[str, str, str]:
    """Return name, state, and rows that it was given."""
    state = f"[{STYLE[node.state]}]{node.state}[/]"
    return node.name, state, f"{node.rows:,}" if node.stints else ""


def _used(node: Node) -> tuple[str, str]:
    memory = "" if node.memory is None else f"{node.memory.now / 2**20:.0f}"
    return memory, f"{node.sent / 1000:,.0f}" if node.sent else ""


def _most_anomalous(node: Node, limit: float | None) -> tuple[str, str]:
    """Return the newest row's score, red if it is over the limit, and the top channel."""
    if node.anomaly_score is None:
        return "-", ""
    size = f"{node.anomaly_score.size:.1f}"
    if limit is not None and node.anomaly_score.size > limit:
        size = f"[bold red]{size}[/]"
    return size, f"{node.anomaly_score.channel} {node.anomaly_score.share:.0%}"
