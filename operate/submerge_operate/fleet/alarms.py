"""`submerge alarms`: list the alarms below an aggregator, and say what they are."""

from __future__ import annotations

import functools
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from submerge.errors import UsageError
from submerge.protocol.alarm_changes import diff
from submerge.protocol.alarm_status import Alarm, parse_alarm_name
from submerge_client.alarms.event import alarm_of, stamp
from submerge_files.console.admin_client import (
    AdminClient,
    ListedFirst,
    console_of,
    say_back,
    value_in,
)
from submerge_files.console.options import (
    AggregatorOptions,
    aggregator_options,
    default_option,
    flag_option,
    json_option,
    together,
)
from submerge_operate.fleet import alarms_table
from submerge_operate.fleet.node_places import desired_state_command, find, only_group, when_applied
from submerge_operate.fleet.watch import (
    WATCH,
    LiveView,
    answered,
    complain,
    until_interrupted,
    watch,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from submerge_aggregator.questions.views import AlarmView


@click.command("past", epilog="Example: submerge alarms past --number 20 --config root.toml")
@aggregator_options("Of this group only.")
@default_option("--number", 50, "At most so many.", type=click.IntRange(min=1))
@flag_option("--wide", "With node, onset, values, model, readings withheld, and who reported it.")
@json_option("Print JSON, the newest first.")
def past(at: AggregatorOptions, number: int, wide: bool, as_json: bool) -> None:
    """List alarms that have ended or are judged, the newest first.

    Nodes report the last eight of theirs; an aggregator keeps more, for as long as its history has
    room ([history] max_bytes).
    """
    admin = at.admin()
    groups = [at.group] if at.group is not None else admin.groups()
    found = [alarm for group in groups for alarm in _newest(admin, group, number)]
    found = sorted(found, key=lambda each: -_time_of(each))[:number]
    if as_json:
        click.echo(json.dumps(found))
        return
    if not found:
        click.echo("no alarm is over")
        return
    import msgspec

    from submerge_aggregator.questions.views import AlarmView

    views = msgspec.convert(found, type=list[AlarmView])
    console = console_of(wide=wide)
    narrow = console.width < NARROW
    console.print(alarms_table.table_of(views, now=time.time(), wide=wide, narrow=narrow))


def _newest(admin: AdminClient, group: str, number: int) -> list[dict[str, Any]]:
    found, before, more = list[dict[str, Any]](), dict[str, str](), True
    while more and len(found) < number:
        page = json.loads(admin.get("past-alarms", group, **before))
        found += page["alarms"]
        more = page["more"] and bool(page["alarms"])
        if found:
            before = {"before": repr(_time_of(found[-1])), "after": str(found[-1]["id"])}
    return found[:number]


def _time_of(alarm: dict[str, Any]) -> float:
    """Return what the history sorts by: when an alarm ended, or began, if it is open."""
    return float(alarm["ended"] or alarm["began"])


EVERY_S = 1.5

MOST = 10_000  # alarms that are remembered, so that none is shown twice

Event = Literal["start", "end", "gone"]
"""It began; it is over; no node reports it any more while it was open: its node was forgotten."""


class Followed:
    def __init__(self) -> None:
        self._known: dict[str, tuple[Alarm, AlarmView]] | None = None
        self._gone: frozenset[str] = frozenset()

    def news(self, views: Sequence[AlarmView]) -> list[tuple[Event, AlarmView]]:
        """Return what happened since the last look; at the first, the open alarms."""
        seen = {each[0].name: each for each in zip(map(_alarm, views), views, strict=True)}
        if self._known is None:
            # What ended before the first look is not shown.
            self._known = {name: each for name, each in seen.items() if not each[1].open}
        known = self._known
        changes = diff((each for each, _ in known.values()), (each for each, _ in seen.values()))
        gone = frozenset(alarm.name for kind, alarm in changes if kind == "gone")
        events: list[tuple[Event, AlarmView]] = []
        for kind, alarm in changes:
            if kind == "start" or kind == "end":
                events.append((kind, seen[alarm.name][1]))
            elif kind == "gone" and alarm.is_open and alarm.name not in self._gone:
                events.append((kind, known[alarm.name][1]))
        self._gone = gone
        for name, each in seen.items():
            # As the newest, so that it is dropped last. An alarm that is over stays over.
            was = known.pop(name, each)
            known[name] = each if was[1].open else was
        while len(known) > max(MOST, len(seen)):
            del known[next(iter(known))]
        return sorted(events, key=lambda each: _when(*each))


def follow(
    look: Callable[[], Sequence[AlarmView] | None],
    show: Callable[[Event, AlarmView], None],
    complain: Callable[[str], None],
    *,
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """Show events until Ctrl-C, also where a script's `&` has set SIGINT to be ignored."""
    # For the main thread, as Python's signal handlers are. `look` returns None where no alarm
    # changed since. An aggregator that stops answering is complained of once, and asked again.
    followed = Followed()
    with until_interrupted():
        for found in answered(look, EVERY_S, wait, complain):
            for event, view in [] if found is None else followed.news(found):
                show(event, view)


def _when(event: Event, view: AlarmView) -> float:
    return view.began if event == "start" else view.ended or view.began


def _alarm(view: AlarmView) -> Alarm:
    """Return the alarm of a view; its node has the group's name too, as names may recur."""
    facts = {name: getattr(view, name) for name in view.__slots__}
    return alarm_of(facts | {"node": f"{view.group}/{view.node}"})


NARROW = 120  # on fewer columns an alarm may take several lines


OLD = {"accept": "normal", "reject": "fault"}


class AlarmCommands(ListedFirst):
    """Its commands, by the words of earlier versions as well."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return super().get_command(ctx, OLD.get(name, name))


@click.group(cls=AlarmCommands, epilog="Example: submerge alarms --follow --config root.toml")
def command() -> None:
    """See the alarms of all nodes below an aggregator, and say which are normal, or faults.

    Any aggregator will do: reports carry alarms up to the root. It is reached through the
    socket beside its store, as the user that it runs as, or with --at from another machine.
    Without a command: list, with its options (--watch, --follow, --open, --nodes, --wide, --json,
    --group).
    """


@command.command(
    "list",
    epilog=f"{alarms_table.CAUSE_LINES}\n\nExample: submerge alarms list --open --config root.toml",
)
@aggregator_options("Of this group only.")
@flag_option("--open", "Only open alarms.", "open_only")
@flag_option("--all", "Also provisional and repeated alarms that are over.", "of_all")
@flag_option(
    "--nodes",
    "False alarms allowed, alarms raised and time until armed, for each node here.",
    "of_nodes",
)
@flag_option("--follow", "Print each start and end, until Ctrl-C.")
@WATCH
@flag_option("--wide", "With node, onset, values, model, readings withheld, and who reported it.")
@json_option("Print JSON; with --follow or --watch, a line each.")
def list_alarms(
    at: AggregatorOptions,
    open_only: bool,
    of_all: bool,
    of_nodes: bool,
    follow: bool,
    watched: bool,
    wide: bool,
    as_json: bool,
) -> None:
    """List alarms, open ones first.

    Each node reports the last eight of those that are over. `over` is the worst score over its
    limit, `channels` names those to blame, with the difference of each from what the others say of
    it, in its unit. A line below the table says what the first of them reads, and what was
    expected. The lines above show how each group is watched: what
    was promised, and what was raised. `--nodes` has that for each node that reports here. Where
    there is no terminal, --watch is --follow.
    """
    admin, query = at.admin(), at.query
    if watched and sys.stdout.isatty() and not (as_json or follow):
        if of_nodes:
            raise UsageError("--watch shows alarms: leave out --nodes, or use `nodes --watch`")
        look = functools.partial(
            _listing, admin, query, open_only=open_only, of_all=of_all, wide=wide
        )
        watch(LiveView(look, _drawn, lambda *_: []), as_json=False)
    elif follow or watched:
        if open_only or of_all or of_nodes:
            raise UsageError("--follow prints starts and ends: leave out --open, --all and --nodes")
        _follow(admin, query, as_json=as_json)
    elif as_json and of_nodes:
        groups, nodes = (json.loads(admin.get(each, **query)) for each in ("alarm-status", "nodes"))
        click.echo(json.dumps({"groups": groups, "nodes": nodes}))
    elif as_json:
        say_back(admin.get("alarms", **query, **({"open": "1"} if open_only else {})))
    elif of_nodes:
        from submerge_aggregator.questions.views import NodeView

        click.echo("".join(f"{line}\n" for line in _group_lines(admin, query)), nl=False)
        nodes = admin.read(list[NodeView], "nodes", **query)
        shown = alarms_table.table_of_nodes(nodes) if nodes else "no node has reported yet"
        console_of(wide=wide).print(shown)
    else:
        listed = _listing(admin, query, open_only=open_only, of_all=of_all, wide=wide)
        _show(listed, wide=wide)


command.add_command(past)

_verdict_command = functools.partial(
    desired_state_command,
    command,
    target=click.argument("ids", metavar="ID...", nargs=-1, required=True),
    group_help="Its group; needed if no node reports it here, and there are several.",
    anyway="Also if no node reports it here.",
    json="Print the desired state of the nodes, as JSON.",
)


@_verdict_command("alarms normal pump-3-19aa41f2c30")
def normal(at: AggregatorOptions, ids: tuple[str, ...], anyway: bool, as_json: bool) -> None:
    """Say that ID is normal: no fault, and learnt from now on (before: accept).

    The alarm ends, and readings like these raise no other. An alarm that is over is only marked:
    what was withheld during it is not learnt. This cannot be taken back.
    """
    _set_verdicts(at, ids, "accept", anyway=anyway, as_json=as_json)


@_verdict_command("alarms fault pump-3-19aa41f2c30")
def fault(at: AggregatorOptions, ids: tuple[str, ...], anyway: bool, as_json: bool) -> None:
    """Say that ID is a fault: never learnt, however long it lasts (before: reject).

    It stays open until readings are normal again, and counts as confirmed. Without a verdict
    it ends as settled once readings have kept to a new level for a day, and for `max_withheld`.
    """
    _set_verdicts(at, ids, "reject", anyway=anyway, as_json=as_json)


@desired_state_command(
    command,
    "alarms missed pump-3 '2026-11-30 02:10' '2026-11-30 04:00' --channel flow",
    target=together(
        click.argument("node"),
        click.argument("begin", metavar="FROM"),
        click.argument("end", metavar="TO"),
        click.option("--channel", default="", help="Which it was of, if that is known."),
        flag_option("--take-back", "There was no fault in this time after all."),
    ),
    group_help="Its group; needed if it is in several, or unknown here.",
    anyway="Also for a node that never reported here.",
    json="Print the node's desired state, as JSON.",
)
def missed(
    at: AggregatorOptions,
    node: str,
    begin: str,
    end: str,
    channel: str,
    take_back: bool,
    anyway: bool,
    as_json: bool,
) -> None:
    """Say that NODE had a fault FROM one time TO another that raised no alarm.

    It counts in the share of faults that are found (alarms list, model show, metrics): the newest
    eight of each node, at this aggregator and those below it. What it learnt meanwhile stays.
    """
    from submerge_files.fit.time_spans import span

    admin, when = at.admin(), span(begin, end, "a fault")
    known = [view for view in _alarms(admin, at.query) if view.node == node and not view.parts]
    raised = [view for view in known if when.first < (view.ended or math.inf)]
    raised = [view for view in raised if view.began < when.last]
    if raised and not take_back:
        name = raised[0].id
        raise UsageError(
            f"{node} raised {name} in this time: say `submerge alarms fault {name}` if it was one"
        )
    group = at.group or (known[0].group if known else find(admin, node, None).group)
    query = {"from": repr(when.first), "to": repr(when.last), "channel": channel}
    query |= {"anyway": "1"} if anyway else {}
    query |= {"withdrawn": "1"} if take_back else {}
    answer = admin.post("nodes", group, node, "missed", **query)
    said = f"{node} had no fault in this time" if take_back else f"a missed fault of {node} counts"
    say_back(answer, f"{said}. {_learnt_meanwhile(answer, node)}", as_json=as_json)


@command.command(
    "what-if",
    epilog='Example: submerge alarms what-if --at-most "1 false per day" --config root.toml',
)
@aggregator_options("The group; needed if there are several.")
@click.option("--at-most", required=True, metavar="RATE", help='Such as "1 false per day".')
@json_option("Print JSON, with each alarm that is known.")
def what_if(at: AggregatorOptions, at_most: str, as_json: bool) -> None:
    """Say which alarms there would have been had each node allowed RATE.

    By the limits that the group's block maxima give at both rates, and how far over its limit each
    of the newest 200 alarms came, as the history of scores has it.
    """
    from submerge_aggregator.questions.views import WhatIfView
    from submerge_files.detect.run import alarms_at

    admin = at.admin()
    group, per_s = admin.group(at.group), alarms_at(at_most).at_most_per_s
    if not per_s:
        raise UsageError(f"expected a rate in time, such as 1 false per day, got {at_most!r}")
    answer = admin.get("what-if", group, per_s=repr(per_s))
    view = value_in(answer, WhatIfView)
    if not view.promised_per_s:
        raise UsageError(f"group {group} has no limits that keep such a promise yet: ask again")
    say_back(answer, "\n".join(alarms_table.what_if_lines(view, at_most)), as_json=as_json)


def _learnt_meanwhile(answer: bytes, node: str) -> str:
    """Say what becomes of the rows of a fault that raised nothing."""
    if json.loads(answer)["paused"]:
        return "Its learning is paused now: what was read since then is in no model"
    return (
        "What was read meanwhile was learnt with its other readings, and cannot be taken out"
        f" alone: `submerge nodes quarantine {node}` takes all of its readings out of the model"
    )


def _alarms(admin: AdminClient, query: dict[str, str]) -> list[AlarmView]:
    from submerge_aggregator.questions.views import AlarmView

    return admin.read(list[AlarmView], "alarms", **query)


def _group_lines(admin: AdminClient, query: dict[str, str]) -> list[str]:
    from submerge_aggregator.questions.views import GroupWatch

    groups = admin.read(list[GroupWatch], "alarm-status", **query)
    return [line for each in groups for line in alarms_table.lines_of(each)]


class Listing(NamedTuple):
    """A list of alarms: lines above, the table if there are any, lines below."""

    head: list[str]
    table: Table | None
    tail: list[str]


def _listing(
    admin: AdminClient, query: dict[str, str], *, open_only: bool, of_all: bool, wide: bool
) -> Listing:
    """Return alarms, without quiet ones that are over unless `of_all` asks for them."""
    head = _group_lines(admin, query)
    known = _alarms(admin, query | ({"open": "1"} if open_only else {}))
    views = [view for view in known if of_all or view.open or not view.is_quiet]
    table, tail = None, ["no open alarms" if open_only else "no alarms"]
    if views:
        narrow = console_of(wide=wide).width < NARROW
        table = alarms_table.table_of(views, now=time.time(), wide=wide, narrow=narrow)
        tail = alarms_table.value_lines(views)
    if left_out := len(known) - len(views):
        what = "provisional or repeated ones that have ended"
        tail.append(f"without {left_out:,} {what}: --all lists them")
    return Listing(head, table, tail)


def _show(listed: Listing, *, wide: bool) -> None:
    click.echo("".join(f"{line}\n" for line in listed.head), nl=False)
    if listed.table is not None:
        console_of(wide=wide).print(listed.table)
    click.echo("".join(f"{line}\n" for line in listed.tail), nl=False)


def _drawn(listed: Listing) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    middle = [] if listed.table is None else [listed.table]
    return Group(Text("\n".join(listed.head)), *middle, Text("\n".join(listed.tail)))


def _follow(admin: AdminClient, query: dict[str, str], *, as_json: bool) -> None:

    def show(event: Event, view: AlarmView) -> None:
        if as_json:
            import msgspec

            at = stamp(_when(event, view))
            whole: dict[str, Any] = {"event": event, "at": at} | msgspec.to_builtins(view)
            click.echo(json.dumps(whole))
        else:
            click.echo(alarms_table.line_of(event, view))

    known = [b""]

    def look() -> list[AlarmView] | None:
        mark = admin.get("alarms", "mark", **query)
        if mark == known[0]:
            return None
        views, known[0] = _alarms(admin, query), mark
        return views

    follow(look, show, complain)


def _set_verdicts(
    at: AggregatorOptions, ids: tuple[str, ...], verb: str, *, anyway: bool, as_json: bool
) -> None:
    admin = at.admin()
    views = _alarms(admin, at.query)
    for each in ids:
        _check_id(each, views)
    parts = {view.id: tuple(part["id"] for part in view.parts) for view in views}
    ids = tuple(name for each in ids for name in parts.get(each) or (each,))
    known = {each: [view for view in views if view.id == each] for each in ids}
    groups = {each: _group_of(admin, each, found, at.group) for each, found in known.items()}
    desired_states = []
    # Unknown alarms come first: one that is refused stops the command before it changes anything.
    for each in sorted(ids, key=lambda each: bool(known[each])):
        if not known[each] and admin.knows(groups[each], each):
            raise UsageError(f"{each} is a node, and it reports no alarm")
        anyhow = {"anyway": "1"} if anyway else {}
        answer = admin.post("alarms", groups[each], each, verb, **anyhow)
        desired_states.append(json.loads(answer))
        if not as_json:
            node, open_ = desired_states[-1]["node"], any(view.open for view in known[each])
            click.echo(f"{_outcome(each, node, verb, is_open=open_)}. {when_applied(answer)}")
    if as_json:
        click.echo(json.dumps(desired_states))


def _check_id(name: str, views: list[AlarmView]) -> None:
    """Refuse what is no alarm's id; for a node's name say which alarm it has."""
    of_node = [view for view in views if view.node == name]
    if of_node:
        which = "open" if of_node[0].open else "last"
        raise UsageError(f"{name} is a node; its {which} alarm is {of_node[0].id}")
    parse_alarm_name(name)


def _outcome(name: str, node: str, verb: str, *, is_open: bool) -> str:
    if verb == "reject":
        never = f": {node} does not learn it, however long it lasts" if is_open else ""
        return f"{name} is a fault{never}"
    return f"{name} is normal{f': {node} learns it' if is_open else ''}"


def _group_of(admin: AdminClient, name: str, found: list[AlarmView], group: str | None) -> str:
    groups = {view.group for view in found}
    if group is not None and len(groups) != 1:
        return group
    return only_group(groups, name) if groups else admin.group(None)
