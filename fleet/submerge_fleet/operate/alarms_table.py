"""Alarms for a person: a line each, on a terminal of 80 columns, and how groups are watched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from submerge_fleet.console.units import ago, moment

if TYPE_CHECKING:
    from rich.table import Table

    from submerge.protocol.alarm_status import State
    from submerge_aggregator.questions.alarm_views import AlarmView, GroupWatch, WatchView
    from submerge_aggregator.questions.views import NodeView

CAUSES = """\b
In the column cause:
  spe      readings are off the model: channels disagree as they never do
  t2       each fits the others, and all of them go further than ever
  linear   as spe, of the readings themselves, where the model is of features
  channel  one sensor is not what all the others make of it: look there first
  stuck    a channel says the same for too long"""

ORDINARY = 26
"""Letters of an alarm's id in a line: it is there to be copied, and is never cut."""

WEEK_S = 7 * 86400.0

SILENT_S = 900.0
"""Of somebody who tells of an alarm and has not been heard for so long, that is said too: three
reports have not come, unless a configuration says otherwise."""


def table_of(
    views: Sequence[AlarmView], *, now: float, wide: bool = False, narrow: bool = False
) -> Table:
    """Return alarms as a table, at a wall time.

    wide : with what most people do not need
    narrow : on a terminal of 80 columns, where one of them takes several lines
    """
    from rich.text import Text

    several = len({view.group for view in views}) > 1
    table = _table()
    if several:
        table.add_column("group", overflow="fold")
    ids = [_torn(view) if narrow else view.id for view in views]
    whole = not narrow or max(len(line) for name in ids for line in name.split("\n")) <= ORDINARY
    table.add_column("id", no_wrap=whole, overflow="fold")
    if wide:
        table.add_column("node", overflow="fold")
    for heading in ("since", "lasted", "over"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("cause", no_wrap=True)
    table.add_column("channels", overflow="fold")
    for heading in ("model", "withheld", "told by") if wide else ():
        table.add_column(heading, no_wrap=heading != "told by", overflow="fold")
    table.add_column("state", overflow="fold")
    for view, name in zip(views, ids, strict=True):
        cells = [view.group] if several else []
        cells += [name, *([view.node] if wide else [])]
        cells += [ago(max(0.0, now - view.began)), lasted(view) or "-", over(view) or "-"]
        # A line each: names are not to be torn apart where there is little room.
        cells += [view.cause, blamed(view, "\n" if narrow else ", ") or "-"]
        if wide:
            cells += [str(view.model), f"{view.withheld:,}", view.reported_by]
        table.add_row(*map(Text, [*cells, (",\n" if narrow else ", ").join(_state(view))]))
    return table


def table_of_nodes(views: Sequence[NodeView]) -> Table:
    """Return what was promised of each node, beside what came of it."""
    from rich.text import Text

    table = _table()
    several = len({view.group for view in views}) > 1
    for heading in (*(["group"] if several else []), "node"):
        table.add_column(heading, overflow="fold")
    for heading in ("watched", "promised", "raised", "faults"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("state", overflow="fold")
    for view in views:
        cells = [view.group] if several else []
        watch = view.watch
        if watch is None:
            cells += [view.node, "-", "-", "-", "-", "says nothing of alarms"]
        else:
            cells += [view.node, f"{watch.watched_s / 3600:,.0f} h", _false(watch.allowed)]
            cells += [f"{watch.raised:,}", f"{watch.confirmed:,}", ", ".join(watching(view))]
        table.add_row(*map(Text, cells))
    return table


def lines_of(group: GroupWatch) -> list[str]:
    """Say how a group is watched, what was promised for it, and what came of that."""
    watch = group.watch
    if watch is None or not watch.nodes:
        return [f"{group.group}: no node says anything of alarms"]
    states = _counted(watch, "alarm", "armed", "learning", "paused", "stale")
    if group.clients > watch.nodes:
        silent = group.clients - watch.nodes
        states.append(f"{silent:,} {'says' if silent == 1 else 'say'} nothing of alarms")
    lines = [f"{group.group}: {', '.join(states)}"]
    if watch.watched_s:
        rate = watch.allowed / watch.watched_s * WEEK_S
        faults = "a fault" if watch.confirmed == 1 else "faults"
        lines.append(
            f"  promised {rate:.3g} per week and node: at most {_false(watch.allowed)} false"
            f" alarms in {watch.watched_s / 3600:,.0f} hours\n"
            f"  watched; {watch.raised:,} raised, {watch.confirmed:,} confirmed as {faults}"
        )
    return lines


def line_of(event: str, view: AlarmView) -> str:
    """Return what has happened to an alarm as a line; `event`: start, end or gone."""
    if event == "start":
        facts = [f"{view.cause} {over(view)}".strip(), blamed(view)]
        return f"{moment(view.began)} ALARM {view.id}: {', '.join(filter(None, facts))}"
    if event == "gone":
        return f"{moment(view.began)} gone  {view.id}: nobody tells of it any more"
    facts = [f"lasted {lasted(view)}", f"{view.cause} {over(view)}".strip(), view.verdict]
    return f"{moment(view.ended or 0.0)} over  {view.id}: {', '.join(filter(None, facts))}"


def watching(view: NodeView) -> list[str]:
    """Say how a node watches, or those below it; nothing where all is as usual there."""
    watch, words = view.watch, list[str]()
    if watch is not None and view.kind == "client":
        state = max(watch.states, key=lambda each: watch.states[each])
        if not watch.nodes:
            words = []
        elif state == "alarm":
            words = ["ALARM"]
        elif state == "learning":
            words = [f"learning: {_when(watch)}"]
        elif state == "stale":
            words = ["its model has expired"]
        elif state == "armed":
            words = ["armed"]
        if view.paused or (state == "paused" and watch.nodes):
            words.append("paused")
    elif watch is not None:
        words = _counted(watch, "alarm", "learning", "paused", "stale")
    if view.wanted:
        words.append(f"to {view.wanted} with its next report")
    return words


def over(view: AlarmView) -> str:
    """Return by how much the worst score passed its limit; nothing if none did."""
    return f"{view.worst:{'.1f' if view.worst < 10 else ',.0f'}}x" if view.worst else ""


def blamed(view: AlarmView, between: str = ", ") -> str:
    """Return the channels to blame, and their shares."""
    return between.join(f"{channel} {share:.0%}" for channel, share in view.top.items())


def lasted(view: AlarmView) -> str:
    """Return how long an alarm was open; nothing while it is."""
    return "" if view.ended is None else ago(max(0.0, view.ended - view.began))


# -- inside ----------------------------------------------------------------------------


def _table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def _torn(view: AlarmView) -> str:
    """An id, on two lines if it is long."""
    if len(view.id) <= ORDINARY:
        return view.id
    return f"{view.node}-\n{view.id[len(view.node) + 1 :]}"


def _state(view: AlarmView) -> list[str]:
    states = ["OPEN" if view.open else "over", *([view.verdict] if view.verdict else [])]
    if view.wanted:
        states.append(f"to be {view.wanted}")
    if view.open and view.silent_s > SILENT_S:
        states.append(f"{view.reported_by} silent for {ago(view.silent_s)}")
    return states


def _counted(watch: WatchView, *states: State) -> list[str]:
    """Say how many are in some states, where any is."""
    words = {
        "alarm": "in ALARM",
        "learning": f"learning ({_when(watch)})",
        "stale": "whose model has expired",
    }
    counted = ((watch.states[each], words.get(each, each)) for each in states)
    return [f"{count:,} {said}" for count, said in counted if count]


def _when(watch: WatchView) -> str:
    if watch.armed_in_s is None:
        return "no limits yet"
    # Its limits are known: what it does not know yet is its own mean.
    return f"armed in {ago(watch.armed_in_s)}" if watch.armed_in_s else "armed soon"


def _false(allowed: float) -> str:
    return f"{allowed:,.{2 if allowed < 10 else 0}f}"
