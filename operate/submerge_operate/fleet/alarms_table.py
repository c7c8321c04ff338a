"""Alarms for a person: one line each on a terminal of 80 columns, and how groups are watched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from submerge.protocol.alarm_status import CAUSES, MARKS, State, and_more, excess, stays_at
from submerge_files.console.tables import Column, table
from submerge_files.console.units import ago, figure, moment, name_text, printable

if TYPE_CHECKING:
    from rich.table import Table

    from submerge_aggregator.questions.views import (
        AlarmView,
        GroupWatch,
        NodeView,
        WatchView,
        WhatIfView,
    )

CAUSE_LINES = "\n".join(
    ["\b", "In the column cause:", *(f"  {cause:<9} {words}" for cause, words in CAUSES.items())]
)

NEWS = 2.0  # least evidence that is shown: less is no evidence of anything

ORDINARY = 26
"""Most characters of an alarm's id that stay on one line. An id is there to copy: never cut."""

WEEK_S = 7 * 86400.0

SILENT_S = 900.0
"""If the node that reports an alarm is silent for longer, the table says so: three reports are
missing, unless a configuration says otherwise."""


def table_of(
    views: Sequence[AlarmView], *, now: float, wide: bool = False, narrow: bool = False
) -> Table:
    """Return alarms as a table, at a wall time; if `narrow`, an alarm takes several lines."""
    # One channel on a line, so that no name is broken where there is little room.
    between = "\n" if narrow else ", "
    views = under_incidents(views)
    ids = {view.id: _in_two_lines(view) if narrow else view.id for view in views}
    ids |= {view.id: f"  {ids[view.id]}" for view in views if view.incident in ids}
    lengths = (len(line) for name in ids.values() for line in name.split("\n"))
    columns: list[Column[AlarmView]] = [
        Column("group", lambda a: a.group, shown=several_groups(views), folds=True),
        Column("id", lambda a: ids[a.id], folds=narrow and max(lengths) > ORDINARY, lines=True),
        Column("node", lambda a: a.node, shown=wide, folds=True),
        Column("since", lambda a: ago(max(0.0, now - a.began)), right=True),
        Column("lasted", lambda a: duration_text(a) or "-", right=True),
        Column("over", lambda a: excess_text(a) or "-", right=True),
        Column("cause", lambda a: a.cause),
        Column("channels", lambda a: channels_text(a, between) or "-", folds=True, lines=True),
        Column("at onset", lambda a: shares_text(a.first) or "-", shown=wide, folds=True),
        Column("values", lambda a: values_text(a) or "-", shown=wide, folds=True),
        Column("model", lambda a: str(a.model), shown=wide),
        Column("withheld", lambda a: f"{a.withheld:,}", shown=wide),
        Column("reported by", lambda a: a.reported_by, shown=wide, folds=True),
        Column("state", lambda a: f",{between[-1]}".join(_state(a)), folds=True, lines=True),
    ]
    return table(views, columns)


def under_incidents(views: Sequence[AlarmView]) -> list[AlarmView]:
    """Return alarms in their order, but parts below their incident, in the order of onsets."""
    parts: dict[tuple[str, str], list[AlarmView]] = {
        (view.group, view.id): [] for view in views if view.parts
    }
    rest: list[AlarmView] = []
    for view in sorted(views, key=lambda each: each.began):
        parts.get((view.group, view.incident), rest).append(view)
    alone = {id(view) for view in rest}
    return [
        each
        for view in views
        if id(view) in alone
        for each in (view, *parts.get((view.group, view.id), ()))
    ]


def table_of_nodes(views: Sequence[NodeView]) -> Table:
    """Return what was promised for each node, beside what was raised."""

    def watched(cell: Callable[[WatchView], str]) -> Callable[[NodeView], str]:
        return lambda view: "-" if view.watch is None else cell(view.watch)

    def state(view: NodeView) -> str:
        none = "no model yet, or alarms are off"
        return none if view.watch is None else ", ".join(status_words(view))

    columns: list[Column[NodeView]] = [
        Column("group", lambda view: view.group, shown=several_groups(views), folds=True),
        Column("node", lambda view: view.node, folds=True),
        Column("watched", watched(lambda w: f"{w.watched_s / 3600:,.0f} h"), right=True),
        Column("promised", watched(lambda w: _count_text(w.allowed)), right=True),
        Column("raised", watched(lambda w: f"{w.raised:,}"), right=True),
        Column("faults", watched(lambda w: f"{w.confirmed:,}"), right=True),
        Column("evidence", watched(_odds), right=True),
        Column("state", state, folds=True),
    ]
    return table(views, columns)


def several_groups(views: Sequence[AlarmView | NodeView]) -> bool:
    return len({view.group for view in views}) > 1


def lines_of(group: GroupWatch) -> list[str]:
    """Return how a group is watched, what was promised, and what was raised."""
    watch = group.watch
    if watch is None or not watch.nodes:
        return [f"{group.group}: no node reports an alarm status", *left_out_lines(group)]
    states = _state_counts(watch, "alarm", "armed", "learning", "paused", "stale")
    if group.clients > watch.nodes:
        silent = group.clients - watch.nodes
        states.append(f"{silent:,} {'reports' if silent == 1 else 'report'} no alarm status")
    lines = [f"{group.group}: {', '.join(states)}"]
    if group.waiting:
        lines.append(f"  {printable(group.waiting)}")
    if watch.watched_s:
        rate = watch.allowed / watch.watched_s * WEEK_S
        faults = "a fault" if watch.confirmed == 1 else "faults"
        lines.append(
            f"  promised {rate:.3g} per week and node: at most {_count_text(watch.allowed)} false"
            f" alarms in {watch.watched_s / 3600:,.0f} hours\n"
            f"  watched; {watch.raised:,} raised, {watch.confirmed:,} confirmed as {faults}"
        )
        lines += [f"  {said}" for said in watch.by_verdicts]
        if watch.evidence >= NEWS:
            lines.append(f"  {_odds(watch)} that more alarms come than promised")
    if group.widened > 1:
        lines.append(
            f"  limits are {group.widened - 1:.0%} wider, for more alarms came than promised and"
            " they were not confirmed"
        )
    return lines + left_out_lines(group)


def left_out_lines(group: GroupWatch) -> list[str]:
    """Return which children report alarms that are not believed: a line for each, and why."""
    lines = []
    for by in sorted({each.by for each in group.left_out}):
        several = [each for each in group.left_out if each.by == by]
        first = several[0]
        more = f" and {len(several) - 1:,} more" if len(several) > 1 else ""
        state = "open" if first.open else "over"
        lines.append(f"  not believed: {by} reports {first.id} ({state}){more}\n    {first.why}")
    return lines


def line_of(event: str, view: AlarmView) -> str:
    """Return an event of an alarm as a line; `event`: start, end or gone."""
    cause = f"{view.cause} {excess_text(view)}".strip()
    if event == "start":
        facts = [cause, channels_text(view), *marks(view)]
        return f"{moment(view.began)} ALARM {view.id}: {', '.join(filter(None, facts))}"
    if event == "gone":
        return f"{moment(view.began)} gone  {view.id}: no node reports it any more"
    settled, verdict = MARKS["settled"] if view.settled else "", VERDICTS.get(view.verdict, "")
    facts = [f"lasted {duration_text(view)}", cause, settled, verdict]
    return f"{moment(view.ended or 0.0)} over  {view.id}: {', '.join(filter(None, facts))}"


def status_words(view: NodeView) -> list[str]:
    """Return the alarm status of a node, or of those below it; nothing if it has none."""
    watch, words = view.watch, list[str]()
    if watch is not None and view.kind == "client":
        state = max(watch.states, key=lambda each: watch.states[each])
        said = {"alarm": "ALARM", "stale": "its model has expired", "armed": "armed"}
        if watch.nodes and state != "paused":
            words = [said.get(state) or f"learning: {_when(watch)}"]
        if view.paused or (state == "paused" and watch.nodes):
            words.append("paused")
    elif watch is not None:
        words = _state_counts(watch, "alarm", "learning", "paused", "stale")
    if view.wanted:
        words.append(f"to {view.wanted} with its next report")
    return words


def excess_text(view: AlarmView) -> str:
    """Return the worst score over its limit; nothing if no score was over."""
    return f"{excess(view.worst)}x" if view.worst else ""


def channels_text(view: AlarmView, between: str = ", ") -> str:
    """Return the channels to blame, their shares, and how far each is off in its unit."""
    if view.parts:
        nodes = len({part["node"] for part in view.parts})
        each = view.top.items()
        return between.join(
            f"{name_text(c)} on {share * nodes:.0f} of {nodes}" for c, share in each
        )
    off = {name: f" ({figure(each['difference'], '+')})" for name, each in view.deviations.items()}
    said = (f"{name_text(name)} {share:.0%}{off.get(name, '')}" for name, share in view.top.items())
    return between.join(said) + and_more(view.cause, view.top, len(view.top))


def shares_text(shares: dict[str, float]) -> str:
    return ", ".join(f"{name_text(channel)} {share:.0%}" for channel, share in shares.items())


def values_text(view: AlarmView) -> str:
    each = view.deviations.items()
    return ", ".join(
        f"{name_text(name)} {off['value']:.6g}, expected {off['expected']:.6g}"
        for name, off in each
    )


def value_lines(views: Sequence[AlarmView]) -> list[str]:
    """Return a line for each open alarm: what the channel most to blame reads, and what not."""
    lines = [f"{view.id}: {printable(view.words)}" for view in views if view.words]
    for view in views:
        name = next((each for each in view.top if each in view.deviations), None)
        if view.open and name is not None and not view.parts:
            off = view.deviations[name]
            value, expected = off["value"], off["expected"]
            what = "where it was" if view.cause == "jump" else "where the others say"
            said = f"reads {figure(value)}, {what} {figure(expected)}"
            if view.cause == "duty":
                said = f"{stays_at(value, expected)} at {figure(value)}, {view.worst:.2g} times its"
                said += f" longest run; else {figure(expected)}"
            lines.append(f"{view.id}: {name_text(name)} {said}")
        if view.open and view.looks:
            lines.append(f"{view.id}: looks like a {view.looks}, {printable(view.evidence)}")
    return lines


def what_if_lines(view: WhatIfView, at_most: str) -> list[str]:
    """Return what another rate of false alarms would have done, in sentences."""
    lines = [f"{at_most}, in place of {view.promised_per_s * WEEK_S:.3g} per week and node:"]
    words = {"rejected": "confirmed as faults", "accepted": "said to be normal", "": "not judged"}
    for verdict, said in words.items():
        of = [each for each in view.alarms if each.verdict == verdict]
        counted = Counter(each.outcome for each in of)
        if of:
            parts = (f"{n:,} {outcome}" for outcome, n in sorted(counted.items(), reverse=True))
            lines.append(f"  of {len(of):,} {said}: {', '.join(parts)}")
        if verdict == "rejected":
            lines += [f"    {each.id}: {each.outcome}" for each in of if each.outcome != "raised"]
    if not view.alarms:
        lines.append("  no alarm is known")
    if view.more > 0 and view.span_s:
        weeks = view.span_s / WEEK_S
        lines.append(f"  and about {view.more:.3g} more in {weeks:.3g} weeks of single machines")
    return lines


def duration_text(view: AlarmView) -> str:
    """Return how long an alarm lasted; nothing while it is open."""
    return "" if view.ended is None else ago(max(0.0, view.ended - view.began))


def marks(view: AlarmView) -> list[str]:
    return [words for mark, words in MARKS.items() if getattr(view, mark)]


VERDICTS = {"accepted": "normal", "rejected": "a fault"}


def _in_two_lines(view: AlarmView) -> str:
    if len(view.id) <= ORDINARY:
        return view.id
    return f"{view.node}-\n{view.id[len(view.node) + 1 :]}"


def _state(view: AlarmView) -> list[str]:
    states = ["OPEN" if view.open else "over", *filter(None, [VERDICTS.get(view.verdict)])]
    states += marks(view)
    if view.wanted:
        states.append(f"to be {VERDICTS[view.wanted]}")
    if view.open and view.silent_s > SILENT_S:
        states.append(f"{view.reported_by} silent for {ago(view.silent_s)}")
    if view.denied_by:
        states.append(f"denied by {', '.join(view.denied_by)}: not believed")
    return states


def _state_counts(watch: WatchView, *states: State) -> list[str]:
    words = {
        "alarm": "in ALARM",
        "learning": f"learning ({_when(watch)})",
        "stale": "whose model has expired",
    }
    counted = ((watch.states[each], words.get(each, each)) for each in states)
    return [f"{count:,} {said}" for count, said in counted if count]


def _when(watch: WatchView) -> str:
    if watch.waiting:
        armed = f", armed in {ago(watch.armed_in_s)}" if watch.armed_in_s else ""
        return printable(watch.waiting) + armed
    if watch.armed_in_s is None:
        armed = "" if watch.provisional_rows else "no limits yet"
    else:
        # Its limits are known. It still measures its own mean.
        armed = f"armed in {ago(watch.armed_in_s)}" if watch.armed_in_s else "armed soon"
    if not watch.provisional_rows:
        return armed
    often = f"provisional: about 1 in {_rounded(watch.provisional_rows):,} rows"
    return f"{often}, {armed}" if armed else often


def _rounded(rows: float) -> int:
    """Return a number of rows with two digits that are not zero."""
    return int(float(f"{rows:.2g}"))


def _odds(watch: WatchView) -> str:
    """Return the evidence that more alarms come than promised, as odds; "-" if there is none."""
    return f"{watch.evidence:,.0f} to 1" if watch.evidence >= NEWS else "-"


def _count_text(allowed: float) -> str:
    return f"{allowed:,.{2 if allowed < 10 else 0}f}"
