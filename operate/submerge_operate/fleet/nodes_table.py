"""Nodes for a person: one line each on a terminal of 80 columns, with what is unusual about it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from submerge_files.console.tables import Column, table
from submerge_files.console.units import ago, moment, printable
from submerge_operate.fleet.alarms_table import several_groups, status_words
from submerge_operate.fleet.watch import differences

if TYPE_CHECKING:
    from rich.table import Table

    from submerge_aggregator.questions.views import NodeView, RowView, SealedView

ORDINARY = 20  # most characters of a name that stays on one line

STATES = """\b
In the column state:
  learning         it has no alarm limits yet; armed: it has
  ALARM            see `submerge alarms`
  paused           an operator has it learn nothing
  quarantined      its rows stay out of the model: an operator set it, or it
                   contradicted itself (it shrank, or equivocated twice),
                   or its rows made a model unreadable
  banned           its messages are refused until it is released
  far              far from the others of a robust group: left out while it is
  old schema       readings under an earlier schema are kept, in no model
  2 incarnations   it began again without a final report (a crash, a lost store)
  2 at once        two machines run with one kit: give one of them another
  sealed           its incarnations are over; what they learnt still counts"""


def table_of(
    views: Sequence[NodeView], *, now: float, wide: bool = False, under: Sequence[str] = ()
) -> Table:
    newest: dict[str, int] = {}
    for view in views:
        for row in view.rows:
            newest[view.group] = max(newest.get(view.group, 0), row.model_version)
    certified = any(row.certified_until_s for view in views for row in view.rows)
    ranked = any(row.rank for view in views for row in view.rows)
    below = dict(zip(map(id, views), under, strict=bool(under)))

    def total(what: str) -> Callable[[NodeView], str]:
        return lambda view: f"{sum(getattr(each, what) for each in (*view.rows, *view.sealed)):,}"

    def last(cell: Callable[[NodeView, RowView], str]) -> Callable[[NodeView], str]:
        return lambda view: cell(view, view.rows[0]) if view.rows else "-"

    # A name longer than most may take a second line. It is never cut.
    long = any(len(view.node) > ORDINARY for view in views)
    long_groups = any(len(view.group) > ORDINARY for view in views)
    columns: list[Column[NodeView]] = [
        Column("group", lambda view: view.group, shown=several_groups(views), folds=long_groups),
        Column("node", lambda view: view.node, folds=long),
        Column("under", lambda view: below[id(view)] or "-", shown=bool(under), folds=True),
        Column("kind", lambda view: view.kind or "-"),
        Column("readings", total("learnt"), right=True),
        Column("withheld", total("withheld"), shown=wide, right=True),
        Column("lost", total("lost"), right=True),
        Column("silent", last(lambda _, row: ago(row.silent_s)), right=True),
        Column("model", last(lambda view, row: _in_use(row.model_version, newest[view.group]))),
        Column(
            "cert", last(lambda _, row: _left(row.certified_until_s - now, row)), shown=certified
        ),
        Column("rank", last(lambda _, row: str(row.rank or "-")), shown=ranked, right=True),
        Column("own", last(lambda _, row: f"{row.own_share:.0%}"), shown=wide, right=True),
        Column("unlike", last(lambda _, row: f"{row.unlike:.2g}"), shown=wide, right=True),
        Column("algorithm", last(lambda _, row: row.algorithm or "-"), shown=wide),
        Column("software", last(lambda _, row: row.software), shown=wide),
        # All of the state can be read, on as many lines as that takes.
        Column("state", lambda view: ", ".join(state_words(view)), folds=True),
    ]
    return table(views, columns)


def _in_use(version: int, newest: int) -> str:
    if not version:
        return "none"
    return "newest" if version == newest else "older"


def _left(seconds: float, row: RowView) -> str:
    """Return how long a certificate is still valid, as the node last reported."""
    if not row.certified_until_s:
        return "none"
    return ago(seconds) if seconds > 0 else "ended"


def state_words(view: NodeView) -> list[str]:
    states = [*status_words(view), *(["banned"] if view.banned else [])]
    if view.quarantined:
        since = "" if view.since_s is None else f" since {moment(view.since_s)}"
        states.append(f"quarantined ({view.cause}){since}")
    if view.outlier:
        states.append(f"far from the others ({view.outlier})")
    if view.bounded:
        states.append(view.bounded)
    # An incarnation whose readings another one has taken over is nothing to look at.
    rows = [row for row in view.rows if not row.moved]
    if any(row.schema == "old" for row in rows):
        states.append("old schema")
    if len(rows) > 1:
        states += _incarnations(len(rows), view.at_once)
    if view.sealed and not view.rows:
        states.append("sealed")
    return states


def _incarnations(rows: int, at_once: int) -> list[str]:
    """Return how many incarnations there are, and how many run at once."""
    if at_once == rows:
        return [f"{at_once} incarnations at once"]
    return [f"{rows} incarnations", *([f"{at_once} at once"] if at_once else [])]


def changes(
    before: Sequence[NodeView] | None, after: Sequence[NodeView], *, as_json: bool
) -> list[str]:
    """Return a line for each node that is new, other than before, or gone; at first for all."""
    # That time has passed is no change.
    views = {f"{each.group}/{each.node}": each for each in after}
    old = None if before is None else {f"{each.group}/{each.node}": _facts(each) for each in before}
    changed = differences(old, {name: _facts(each) for name, each in views.items()})
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return [
        _json(at, name, views.get(name)) if as_json else _text(at, name, facts)
        for name, facts in changed
    ]


def _facts(view: NodeView) -> dict[str, Any]:
    parts: list[RowView | SealedView] = [*view.rows, *view.sealed]
    return {
        "kind": view.kind or "-",
        "readings": sum(each.learnt for each in parts),
        "withheld": sum(each.withheld for each in parts),
        "lost": sum(each.lost for each in parts),
        "model": view.rows[0].model_version if view.rows else 0,
        "state": ", ".join(state_words(view)),
    }


def _text(at: str, name: str, facts: dict[str, Any] | None) -> str:
    if facts is None:
        return printable(f"{at} {name} gone")
    said = " ".join(f"{key}={value}" for key, value in facts.items() if key != "state")
    return printable(f"{at} {name} {said} {facts['state']}".rstrip())


def _json(at: str, name: str, view: NodeView | None) -> str:
    import msgspec

    if view is None:
        group, _, node = name.partition("/")
        return json.dumps({"at": at, "event": "gone", "group": group, "node": node})
    return json.dumps({"at": at, "event": "is"} | msgspec.to_builtins(view))
