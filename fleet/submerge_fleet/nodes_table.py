"""Nodes for a person: a line each, on a terminal of 80 columns, and what is unusual about each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from submerge_fleet.asking import ago, printable

if TYPE_CHECKING:
    from rich.table import Table

    from submerge_aggregator.views import NodeView, RowView


ORDINARY = 20
"""Letters of a name."""


def table_of(views: Sequence[NodeView], *, now: float, wide: bool = False) -> Table:
    """Return nodes as a table, at a wall time; `wide`: with what most people do not need."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    several = len({view.group for view in views}) > 1
    newest: dict[str, int] = {}
    for view in views:
        for row in view.rows:
            newest[view.group] = max(newest.get(view.group, 0), row.model_version)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in [*(["group"] if several else []), "node"]:
        # A name that is longer than most others may take a second line, but is never cut.
        whole = all(len(getattr(view, heading)) <= ORDINARY for view in views)
        table.add_column(heading, no_wrap=whole, overflow="fold")
    table.add_column("kind", no_wrap=True)
    for heading in ("readings", *(["withheld"] if wide else []), "lost", "silent"):
        table.add_column(heading, justify="right", no_wrap=True)
    certified = any(row.certified_until_s for view in views for row in view.rows)
    for heading in ("model", *(["cert"] if certified else []), *(["software"] if wide else [])):
        table.add_column(heading, no_wrap=True)
    # What is in it is all to be read, on as many lines as that takes.
    table.add_column("state", overflow="fold")
    for view in views:
        parts = [*view.rows, *view.sealed]
        last = view.rows[0] if view.rows else None
        cells = [view.group] if several else []
        cells += [view.node, view.kind or "-"]
        for what in ("learnt", *(["withheld"] if wide else []), "lost"):
            cells.append(f"{sum(getattr(each, what) for each in parts):,}")
        cells.append("-" if last is None else ago(last.silent_s))
        cells.append("-" if last is None else _in_use(last.model_version, newest[view.group]))
        if certified:
            cells.append("-" if last is None else _left(last.certified_until_s - now, last))
        if wide:
            cells.append("-" if last is None else printable(last.software))
        table.add_row(*map(Text, [*cells, ", ".join(_state(view))]))
    return table


def _in_use(version: int, newest: int) -> str:
    if not version:
        return "none"
    return "newest" if version == newest else "older"


def _left(seconds: float, row: RowView) -> str:
    """How long a certificate still holds, as the node said when it was last heard."""
    if not row.certified_until_s:
        return "none"
    return ago(seconds) if seconds > 0 else "ended"


def _state(view: NodeView) -> list[str]:
    """What is not as usual about a node."""
    states = ["banned"] if view.banned else []
    if view.quarantined:
        since = ""
        if view.since_s is not None:
            since = time.strftime(" since %Y-%m-%d %H:%M UTC", time.gmtime(view.since_s))
        states.append(f"quarantined ({view.cause}){since}")
    if view.far:
        states.append(f"far from the others ({view.far})")
    if any(row.schema == "old" for row in view.rows):
        states.append("old schema")
    if len(view.rows) > 1:
        states.append(f"{len(view.rows)} lives")
    if view.sealed and not view.rows:
        states.append("sealed")
    return states
