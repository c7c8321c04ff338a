"""`submerge alarms`: what is wrong at nodes below an aggregator, and what a person makes of it."""

from __future__ import annotations

import functools
import json
import time
from typing import TYPE_CHECKING, Any

import click

from submerge.errors import UsageError
from submerge_fleet.console.admin_client import AdminClient, AdminGroup
from submerge_fleet.console.options import (
    AggregatorOptions,
    aggregator_options,
    flag_option,
    json_option,
)
from submerge_fleet.operate.alarms_table import CAUSES, line_of, lines_of, table_of, table_of_nodes
from submerge_fleet.operate.orders import node_order, when_applied

if TYPE_CHECKING:
    from submerge_aggregator.questions.alarm_views import AlarmView
    from submerge_fleet.operate.alarms_follow import Event

WIDE = 160
"""Columns where nobody says how many there are, or wants all: nothing is cut."""

NARROW = 120
"""Columns below which an alarm may take several lines."""


class ListedFirst(AdminGroup):
    """Commands of which the first is meant where none is named: `submerge alarms --follow`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put it in front of its options."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=ListedFirst, epilog="Example: submerge alarms --follow --config root.toml")
def command() -> None:
    """See the alarms of all nodes below an aggregator, and say what they are.

    Any aggregator will do: reports carry alarms up to the root. It is reached through the
    socket beside its store, as the user that it runs as. Without a command: list, with its
    options (--follow, --open, --nodes, --wide, --json, --group).
    """


@command.command(
    "list", epilog=f"{CAUSES}\n\nExample: submerge alarms list --open --config root.toml"
)
@aggregator_options("Of this group only.")
@flag_option("--open", "Without those that are over.", "open_only")
@flag_option("--nodes", "What was promised of each node here.", "of_nodes")
@flag_option("--follow", "Print each start and end, until Ctrl-C.")
@flag_option("--wide", "With node, model, readings withheld, who told.")
@json_option("Print JSON; with --follow, a line each.")
def list_alarms(
    at: AggregatorOptions,
    open_only: bool,
    of_nodes: bool,
    follow: bool,
    wide: bool,
    as_json: bool,
) -> None:
    """List alarms, open ones first.

    Of those that are over each node tells of its last eight. `over` is the worst score over its
    limit, `channels` who is to blame. Above them, how each group is watched: what was promised,
    and what was raised. `--nodes` has that of each node that reports here, instead of alarms.
    """
    admin, query = at.admin(), at.query
    if follow:
        if open_only or of_nodes:
            raise UsageError("--follow tells of starts and ends: leave out --open and --nodes")
        _follow(admin, query, as_json=as_json)
    elif as_json and of_nodes:
        groups, nodes = (json.loads(admin.get(each, **query)) for each in ("alarm-status", "nodes"))
        click.echo(json.dumps({"groups": groups, "nodes": nodes}))
    elif as_json:
        click.echo(json.dumps(json.loads(_asked(admin, query, open_only=open_only))))
    else:
        _show(admin, query, open_only=open_only, of_nodes=of_nodes, wide=wide)


_judge_command = functools.partial(
    node_order,
    command,
    target=click.argument("ids", metavar="ID...", nargs=-1, required=True),
    group_help="Its group; needed if it is not told here, and there are several.",
    anyway="Also if nobody tells of it here.",
    json="Print what is wanted of the nodes, as JSON.",
)


@_judge_command("alarms accept pump-3-19aa41f2c30")
def accept(at: AggregatorOptions, ids: tuple[str, ...], anyway: bool, as_json: bool) -> None:
    """Say that ID is no fault: it is normal from now on, and learnt.

    The alarm is then over, and readings as they are now raise no other. Of an alarm that is
    over, it is noted: what was withheld for it is not learnt. This cannot be taken back.
    """
    _judge(at, ids, "accept", anyway=anyway, as_json=as_json)


@_judge_command("alarms reject pump-3-19aa41f2c30")
def reject(at: AggregatorOptions, ids: tuple[str, ...], anyway: bool, as_json: bool) -> None:
    """Say that ID is a fault: it is never learnt, however long it lasts.

    It stays open until readings come back, and counts as confirmed. Without a verdict they are
    learnt after `max_withheld`, a day, and the alarm is still judged by what was normal before.
    """
    _judge(at, ids, "reject", anyway=anyway, as_json=as_json)


# -- inside ----------------------------------------------------------------------------


def _asked(admin: AdminClient, query: dict[str, str], *, open_only: bool = False) -> bytes:
    return admin.get("alarms", **query, **({"open": "1"} if open_only else {}))


def _alarms(answer: bytes) -> list[AlarmView]:
    import msgspec

    from submerge_aggregator.questions.alarm_views import AlarmView

    return msgspec.json.decode(answer, type=list[AlarmView])


def _show(
    admin: AdminClient, query: dict[str, str], *, open_only: bool, of_nodes: bool, wide: bool
) -> None:
    import msgspec
    from rich.console import Console

    from submerge_aggregator.questions.alarm_views import GroupWatch
    from submerge_aggregator.questions.views import NodeView

    groups = msgspec.json.decode(admin.get("alarm-status", **query), type=list[GroupWatch])
    for each in groups:
        click.echo("\n".join(lines_of(each)))
    console = Console()
    console = console if console.is_terminal and not wide else Console(width=WIDE)
    if of_nodes:
        nodes = msgspec.json.decode(admin.get("nodes", **query), type=list[NodeView])
        console.print(table_of_nodes(nodes) if nodes else "no node has reported yet")
        return
    views = _alarms(_asked(admin, query, open_only=open_only))
    if not views:
        click.echo("no alarm is open" if open_only else "no alarm is told of")
        return
    narrow = console.width < NARROW
    console.print(table_of(views, now=time.time(), wide=wide, narrow=narrow))


def _follow(admin: AdminClient, query: dict[str, str], *, as_json: bool) -> None:
    from submerge_fleet.operate.alarms_follow import follow

    def tell(event: Event, view: AlarmView) -> None:
        if as_json:
            import msgspec

            from submerge_client.alarms.event import stamp

            at = stamp(view.began if event == "start" else view.ended or view.began)
            whole: dict[str, Any] = {"event": event, "at": at} | msgspec.to_builtins(view)
            click.echo(json.dumps(whole))
        else:
            click.echo(line_of(event, view))

    known = [b""]

    def look() -> list[AlarmView] | None:
        mark = admin.get("alarms", "mark", **query)
        if mark == known[0]:
            return None
        views, known[0] = _alarms(_asked(admin, query)), mark
        return views

    follow(
        look,
        tell,
        lambda words: click.echo(f"submerge: {words}", err=True),
    )


def _judge(
    at: AggregatorOptions, ids: tuple[str, ...], verb: str, *, anyway: bool, as_json: bool
) -> None:
    import msgspec

    from submerge.protocol.alarm_status import parted
    from submerge_aggregator.questions.alarm_views import DesiredStateView

    admin = at.admin()
    for each in ids:
        parted(each)
    views = _alarms(_asked(admin, at.query))
    known = {each: [view for view in views if view.id == each] for each in ids}
    groups = {each: _group_of(admin, each, found, at.group) for each, found in known.items()}
    desired_states = []
    # What is not known first: it is refused before anything is done.
    for each in sorted(ids, key=lambda each: bool(known[each])):
        anyhow = {"anyway": "1"} if anyway else {}
        answer = admin.post("alarms", groups[each], each, verb, **anyhow)
        desired_states.append(json.loads(answer))
        if not as_json:
            desired = msgspec.json.decode(answer, type=DesiredStateView)
            open_ = any(view.open for view in known[each])
            click.echo(
                f"{_reported(each, desired.node, verb, is_open=open_)}. {when_applied(desired)}"
            )
    if as_json:
        click.echo(json.dumps(desired_states))


def _reported(name: str, node: str, verb: str, *, is_open: bool) -> str:
    if verb == "reject":
        never = f": {node} does not learn it, however long it lasts" if is_open else ""
        return f"{name} is rejected, a fault{never}"
    return f"{name} is accepted{f': {node} takes it for normal, and learns it' if is_open else ''}"


def _group_of(admin: AdminClient, name: str, found: list[AlarmView], group: str | None) -> str:
    groups = sorted({view.group for view in found})
    if len(groups) == 1:
        return groups[0]
    if group is not None:
        return group
    if groups:
        raise UsageError(f"expected --group: {name} is in several, {', '.join(groups)}")
    return admin.group(None)
