"""Nodes for a person: a line each, on a terminal of 80 columns, and what is unusual about each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from submerge_fleet.console.admin_client import printable
from submerge_fleet.console.units import ago, moment
from submerge_fleet.operate.alarms_table import watching

if TYPE_CHECKING:
    from rich.table import Table

    from submerge_aggregator.questions.views import NodeView, RowView


ORDINARY = 20
"""Letters of a name."""

STATES = """\b
In the column state:
  learning         it does not know yet what to alarm at; armed: it does
  ALARM            see `submerge alarms`
  paused           it learns nothing, for an operator said so
  quarantined      kept out of the model: by an operator, or because it
                   contradicted itself (it shrank, or equivocated twice)
  banned           refused until it is released
  far              far from the others of a robust group: left out while it is
  old schema       what it said under an earlier schema is kept, in no model
  2 lives          it began anew without a farewell: a crash, a lost store
  2 lives at once  two machines have one kit: give one of them another
  sealed           its lives are over; what they have learned still counts"""

NEAR_S, MARGIN_S = 420.0, 60.0
"""Two lives are led at once if their last words are no further apart than this, and each was
told of readings so long after the other began: a clock that is a little off is no second life.
Reports come every 300 s, give or take 20 %, unless a configuration says otherwise."""


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
    """How a node watches, and what is not as usual about it."""
    states = [*watching(view), *(["banned"] if view.banned else [])]
    if view.quarantined:
        since = "" if view.since_s is None else f" since {moment(view.since_s)}"
        states.append(f"quarantined ({view.cause}){since}")
    if view.outlier:
        states.append(f"far from the others ({view.outlier})")
    if any(row.schema == "old" for row in view.rows):
        states.append("old schema")
    if len(view.rows) > 1:
        states += _incarnations(view.rows)
    if view.sealed and not view.rows:
        states.append("sealed")
    return states


def _incarnations(rows: Sequence[RowView]) -> list[str]:
    """How many lives there are, and how many of them are led at once."""
    at_once = sum(any(_are_at_once(row, other) for other in rows) for row in rows)
    if at_once == len(rows):
        return [f"{at_once} lives at once"]
    return [f"{len(rows)} lives", *([f"{at_once} at once"] if at_once else [])]


def _are_at_once(one: RowView, other: RowView) -> bool:
    """Whether two rows are of two machines; after a restart the older falls silent.

    That an aggregator begins anew breaks everybody's silence, so what a row speaks of
    has to be younger than both as well.
    """
    if one is other or any(row.final or row.schema == "old" for row in (one, other)):
        return False
    both_began = max(one.created_s, other.created_s)
    both_spoke = min(one.as_of_s, other.as_of_s) > both_began + MARGIN_S
    return both_spoke and abs(one.silent_s - other.silent_s) <= NEAR_S
