"""`submerge nodes`: list the nodes of a running aggregator, and change what it holds of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from submerge.errors import SubmergeError, UsageError
from submerge_client.kit import read_kit
from submerge_client.uplink.tls import Tls, identity
from submerge_files.console.admin_client import (
    AdminClient,
    AdminCommand,
    AdminGroup,
    ListedFirst,
    agrees,
    confirm,
    console_of,
    say_back,
    value_in,
)
from submerge_files.console.options import (
    FILE,
    AggregatorOptions,
    aggregator_options,
    flag_option,
    json_option,
)
from submerge_files.console.tables import Column, table
from submerge_files.console.units import figure, moment, name_text, printable
from submerge_operate.fleet.node_places import (
    FoundNode,
    desired_state_command,
    find,
    nodes_below,
    only_group,
    order,
    when_applied,
)
from submerge_operate.fleet.nodes_table import STATES, changes, table_of
from submerge_operate.fleet.watch import WATCH, LiveView, watch

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from submerge_aggregator.questions.views import NodeView, RelationView
    from submerge_client.replies import RecentReply

ITS_GROUP = aggregator_options("Its group; needed if it is in several.")


def setting_lines(said: Mapping[str, Any]) -> Iterator[str]:
    yield f"# {said['node']}, {said['kind']}, {said['software']}"
    if said["cut"]:
        yield "# long lists and texts are cut"
    yield from _lines(said["settings"], "")


def _lines(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _lines(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for i, inner in enumerate(value):
            yield from _lines(inner, f"{name}[{i}]")
    elif value is not None:  # a setting that is left out has no value in TOML
        yield f"{name} = {json.dumps(value, ensure_ascii=False)}"


class ScoredRow(NamedTuple):
    at: float  # Unix seconds
    scores: dict[str, tuple[float, float | None]]  # of each kind: its value, and its limit or None
    blame: dict[str, float]  # channels and their shares


def rows_of(reply: RecentReply) -> Iterator[ScoredRow]:
    for i, at in enumerate(reply.at):
        yield ScoredRow(
            at,
            {each.kind: (each.values[i], each.limit) for each in reply.kinds},
            {reply.channels[each.channel]: each.share for each in reply.blame[i]},
        )


def rows_table(reply: RecentReply, *, most: int | None) -> Table:
    """Return the newest rows as a table, the newest at its end."""
    limits = "provisional limits" if reply.provisional else "limits"

    def score(kind: str) -> Callable[[ScoredRow], str]:
        return lambda row: _over(*row.scores[kind])

    columns: list[Column[ScoredRow]] = [
        Column("time", lambda row: moment(row.at)),
        *(Column(each.kind, score(each.kind), right=True) for each in reply.kinds),
        Column("channels to blame", _blame, folds=True),
    ]
    rows = list(rows_of(reply))
    title = f"{reply.node}: scores over {limits}, model {reply.version}"
    return table(rows if most is None else rows[-most:], columns, title)


def new_rows(before: RecentReply | None, after: RecentReply, *, as_json: bool) -> list[str]:
    """Return a line for each row that came since the look before; at first for all."""
    last = before.at[-1] if before is not None and before.at else float("-inf")
    return [_line(row, as_json=as_json) for row in rows_of(after) if row.at > last]


def _line(row: ScoredRow, *, as_json: bool) -> str:
    if as_json:
        scores = {
            kind: {"value": value, "limit": limit} for kind, (value, limit) in row.scores.items()
        }
        return json.dumps({"at": row.at, "scores": scores, "blame": row.blame})
    scores_text = ", ".join(f"{kind} {_over(*score)}" for kind, score in row.scores.items())
    return printable(f"{moment(row.at)}  {scores_text}  {_blame(row)}".rstrip())


def _over(value: float, limit: float | None) -> str:
    """Return a statistic over its limit; without one itself, in brackets."""
    return f"({value:.3g})" if not limit else f"{value / limit:.2f}"


def _blame(row: ScoredRow) -> str:
    return ", ".join(f"{name_text(name)} {100 * share:.0f} %" for name, share in row.blame.items())


class AskedNode:
    def __init__(self, admin: AdminClient, node: str, group: str | None) -> None:
        self._admin, self._query = admin, dict[str, str]()
        if node == json.loads(admin.get())["node"]:
            self._group = admin.groups()[0] if group is None else group
            return
        found = find(admin, node, group)
        self._group = found.group
        self._query = {"path": f"{found.under}/{node}" if found.under else node}

    def ask(self, topic: str) -> bytes:
        return self._admin.get(topic, self._group, **self._query)


@click.command(
    "settings",
    cls=AdminCommand,
    epilog="Example: submerge nodes settings pump-3 --config root.toml",
)
@click.argument("node")
@ITS_GROUP
@json_option("Print what it says, as JSON.")
def settings(at: AggregatorOptions, node: str, as_json: bool) -> None:
    """Print the settings that NODE runs with, without its secrets.

    NODE is a client or an aggregator, here or further down: it is asked. Settings that another
    machine must not read, as a webhook's url, are shown as (hidden). It needs scope judge.
    """
    body = AskedNode(at.admin(), node, at.group).ask("settings")
    if as_json:
        say_back(body)
        return
    for line in setting_lines(json.loads(body)):
        click.echo(printable(line))


@click.command(
    "scores", cls=AdminCommand, epilog="Example: submerge nodes scores pump-3 --config root.toml"
)
@click.argument("node")
@ITS_GROUP
@WATCH
@flag_option("--all", "All rows that it has in memory, 256 at most; else the newest 20.", "every")
@json_option("Print what it says, as JSON; with --watch, an object a row.")
def scores(at: AggregatorOptions, node: str, watched: bool, every: bool, as_json: bool) -> None:
    """Show how close the newest rows of NODE came to an alarm, and by which channels.

    NODE is a client, here or further down: it is asked. A number is a statistic over its limit: an
    alarm is raised above 1. Without a limit it is the statistic itself, in brackets.
    """
    from submerge_client.replies import RecentReply

    asked = AskedNode(at.admin(), node, at.group)
    if as_json and not watched:
        say_back(asked.ask("recent"))
        return

    def look() -> RecentReply:
        return value_in(asked.ask("recent"), RecentReply)

    draw = partial(rows_table, most=None if every else 20)
    if watched:
        watch(LiveView(look, draw, partial(new_rows, as_json=as_json)), as_json=as_json)
    else:
        console_of(wide=False).print(draw(look()))


TOLD = 3.0
"""Times what is usual from machine to machine, of less than that no machine is named."""


@click.command(
    "unlike", cls=AdminCommand, epilog="Example: submerge nodes unlike --config root.toml"
)
@aggregator_options("The group; needed if there are several.")
@json_option("Print every machine that can be compared, as JSON.")
def unlike(at: AggregatorOptions, as_json: bool) -> None:
    """List machines whose channels follow one another otherwise than on the others, worst first.

    No alarm is needed: what each machine has learnt is compared, of those that report here. A
    level, or how much a machine is used, changes no relation. `times` is how much further off it
    is than is usual from machine to machine.
    """
    from submerge_aggregator.questions.views import UnlikeView

    admin = at.admin()
    answer = admin.get("unlike", admin.group(at.group))
    if as_json:
        say_back(answer)
        return
    view = value_in(answer, UnlikeView)
    odd = [each for each in view.nodes.items() if each[1].times >= TOLD]
    if view.differs is not None:
        rest = len(view.nodes) - len(view.second)
        click.echo(
            f"two kinds of machines: on {', '.join(view.second)} {printable(view.differs.words)}"
            f" as on the other {rest:,}; each is compared with its kind"
        )
    if odd:
        columns: list[Column[tuple[str, RelationView]]] = [
            Column("node", lambda each: each[0], folds=True),
            Column("times", lambda each: figure(each[1].times), right=True),
            Column("what differs", lambda each: name_text(each[1].words), folds=True),
        ]
        console_of(wide=False).print(table(odd, columns))
    elif view.nodes:
        click.echo(f"of {len(view.nodes):,} machines none is unlike the others")
    else:
        click.echo("too few machines to say: four that have reported enough rows are needed")
    if view.left_out and view.nodes:
        click.echo(f"too few rows to say: {', '.join(view.left_out)}")
    if view.aggregators:
        click.echo(f"machines below {', '.join(view.aggregators)} are compared there")


YES = flag_option("--yes", "Do not ask first.")

BANS_GO_DOWN = "Aggregators below are sent the order at once."

FOR_GOOD = "This cannot be undone. A node that still reports to it begins again from zero."


@click.group(cls=ListedFirst, epilog="Example: submerge nodes --watch --config root.toml")
def command() -> None:
    """List and change what a running aggregator holds of its nodes.

    It is reached through the socket beside its store, as the user that it runs as, or with --at
    from another machine. Without a command: list, with its options (--watch, --wide, --json,
    --group).
    """


@command.command(
    "list", epilog=f"{STATES}\n\nExample: submerge nodes list --config root.toml --group pumps"
)
@aggregator_options("Of this group only.")
@WATCH
@flag_option("--below", "With --json: also the nodes of all aggregators below, as the table has.")
@flag_option("--wide", "With withheld readings and each node's software.")
@json_option("Print one JSON array: all that is known; with --watch, an object a line.")
def list_nodes(
    at: AggregatorOptions, watched: bool, below: bool, wide: bool, as_json: bool
) -> None:
    """List the nodes that report here or to an aggregator below, and those that are kept out.

    An aggregator below is one of them, with the readings of all below it; each is asked. `silent`
    is the time since a node was heard, `state` what is unusual about it.
    """
    admin = at.admin()
    if below and watched:
        raise UsageError("expected --below or --watch, got both: watch where nodes report")
    if not watched and (below or not as_json):
        _list_below(admin, at.group, wide=wide, as_json=as_json)
        return
    if not watched:
        say_back(admin.get("nodes", **at.query))
        return
    from submerge_aggregator.questions.views import NodeView

    def look() -> list[NodeView]:
        return admin.read(list[NodeView], "nodes", **at.query)

    def draw(views: list[NodeView]) -> RenderableType:
        return table_of(views, now=time.time(), wide=wide) if views else "no node has reported yet"

    watch(LiveView(look, draw, partial(changes, as_json=as_json)), as_json=as_json)


def _list_below(admin: AdminClient, group: str | None, *, wide: bool, as_json: bool) -> None:
    """List the nodes here and at all aggregators below; those that say nothing are warnings."""
    tree = nodes_below(admin, admin.groups() if group is None else [group])
    if as_json:
        import msgspec

        nodes = [{"under": each.under} | msgspec.to_builtins(each.view) for each in tree.nodes]
        click.echo(json.dumps(nodes))
    elif tree.nodes:
        views, under = [each.view for each in tree.nodes], [each.under for each in tree.nodes]
        under = under if any(under) else []
        console_of(wide=wide).print(table_of(views, now=time.time(), wide=wide, under=under))
    else:
        click.echo("no node has reported yet")
    for line in tree.silent:
        click.echo(printable(f"warning: {line}"), err=True)


@command.command(epilog="Example: submerge nodes forget pump-3 --config root.toml")
@click.argument("node")
@ITS_GROUP
@flag_option("--ban", "Refuse it from now on in every group, as `nodes ban` does.")
@YES
@json_option("Print what is left of it, as JSON.")
def forget(at: AggregatorOptions, node: str, ban: bool, yes: bool, as_json: bool) -> None:
    """Take NODE out of the model, as if it had never been.

    Exact here and, with the next report, above. The report of an aggregator that is dead stays
    in its row above until that aggregator is forgotten as well. A node that still runs begins
    again from zero.
    """
    admin = at.admin()
    found = find(admin, node, at.group)
    if not yes:
        confirm(_warning(node, found.group, _view(admin, found), ban=ban), "Forget it?")
    flags = {"ban": "1" if ban else "0"}
    answer, where = order(admin, found, "forget", lambda view: not (view and view.rows), **flags)
    left = ", and refused until it is released" if ban else ""
    done = f"{node} of group {found.group} is forgotten{left}{where}"
    say_back(answer, done, as_json=as_json)


@command.command(epilog="Example: submerge nodes drop site-2 --old --config root.toml")
@click.argument("node")
@ITS_GROUP
@click.option("--incarnation", help="The row to take out, or the first letters of its name.")
@flag_option("--old", "All of its readings under earlier schemas.")
@YES
@json_option("Print what is left of it, as JSON.")
def drop(
    at: AggregatorOptions, node: str, incarnation: str | None, old: bool, yes: bool, as_json: bool
) -> None:
    """Take a part of what NODE reported out for good.

    Either one incarnation's row: the last of a dead aggregator, or a copy's. Or what it reported
    under earlier schemas: that is in no model, and takes space. `submerge nodes forget` takes
    all.
    """
    admin = at.admin()
    group, known = _find(admin, node, at.group)
    if (incarnation is None) != old:
        got = "both" if old else "neither"
        raise UsageError(f"expected --incarnation ID or --old, got {got}; {_rows_of(known)}")
    query = (
        {"old": "1"} if incarnation is None else {"incarnation": _incarnation(known, incarnation)}
    )
    what, readings = _part_of(known, query.get("incarnation"))
    if not yes:
        confirm(f"{node} of group {group}: {what}, {readings:,} readings.\n{FOR_GOOD}", "Drop it?")
    answer = admin.post("nodes", group, node, "drop", **query)
    say_back(answer, f"{node} of group {group}: {what} is dropped", as_json=as_json)


@command.command(epilog="Example: submerge nodes renew pki/kits/*.kit --at https://root:8472")
@click.argument("kits", nargs=-1, required=True, type=FILE, metavar="KIT...")
@ITS_GROUP
@json_option("Print what was sent, as JSON.")
def renew(at: AggregatorOptions, kits: tuple[Path, ...], as_json: bool) -> None:
    """Send the certificate of each KIT to its node, which puts it into its own kit.

    For kits by `submerge pki renew --same-key`: the key stays on the device, and a certificate is
    no secret. The node takes it if its authority has signed it for its key, and it ends no earlier
    than the one in use; `submerge nodes list` shows when. A root gets its own by hand.
    """
    known = [(read_kit(path), identity(Tls(kit=path)).permission) for path in kits]
    admin, sent, failed = at.admin(), list[str](), dict[str, str]()
    for kit, allowed in known:
        try:
            if allowed is not None and allowed.role not in ("client", "aggregator"):
                raise UsageError(f"nodes alone take theirs so, got a kit of role {allowed.role}")
            found = find(admin, kit.node, at.group)
            below = {"anyway": "1"} if found.under else {}
            admin.send(kit.cert, "nodes", found.group, kit.node, "certificate", **below)
        except SubmergeError as error:
            failed[kit.node] = str(error)
        else:
            sent.append(kit.node)
    if as_json:
        click.echo(json.dumps({"sent": sent, "not_sent": failed}))
    else:
        click.echo(f"certificates sent: {len(sent)}")
        for node, why in failed.items():
            click.echo(f"not sent: {node}: {why}", err=True)
    if failed:
        raise SystemExit(1)


@command.command(epilog="Example: submerge nodes quarantine pump-3 --config root.toml")
@click.argument("node")
@ITS_GROUP
@json_option("Print the node, as JSON.")
def quarantine(at: AggregatorOptions, node: str, as_json: bool) -> None:
    """Keep NODE's rows out of the model.

    Its reports are still taken; `submerge nodes release` lets them count again.
    """
    admin = at.admin()
    found = find(admin, node, at.group)
    answer, where = order(
        admin, found, "quarantine", lambda view: view is not None and view.quarantined
    )
    kept = "its rows are kept, out of the model"
    done = f"{node} of group {found.group} is quarantined: {kept}{where}"
    say_back(answer, done, as_json=as_json)


@command.command(epilog="Example: submerge nodes release pump-3 --config root.toml")
@click.argument("node")
@ITS_GROUP
@json_option("Print the node, as JSON.")
def release(at: AggregatorOptions, node: str, as_json: bool) -> None:
    """Let NODE count again: it is neither quarantined nor banned any more, in any group.

    The reason for its quarantine is forgotten. If it contradicted itself, find out first whether
    two processes run as one node, or a machine was restored together with its memory.
    """
    admin = at.admin()
    found = find(admin, node, at.group)
    answer, where = order(
        admin, found, "release", lambda view: not (view and (view.quarantined or view.banned))
    )
    say_back(answer, f"{node} of group {found.group} is released{where}", as_json=as_json)


@command.command(epilog=f"{BANS_GO_DOWN}\n\nExample: submerge nodes ban pump-3 --config root.toml")
@click.argument("node")
@aggregator_options(None)
@YES
@json_option("Print the ban, as JSON.")
def ban(at: AggregatorOptions, node: str, yes: bool, as_json: bool) -> None:
    """Refuse NODE in every group, here and at every aggregator below.

    Its joins and reports are refused, and what it watches ends. What it has reported stays in the
    model unless it is quarantined as well, as it asks; `submerge nodes forget --ban` takes it out
    for good. NODE need not be known here.
    """
    admin, done = at.admin(), "is banned in every group"
    placed = [each for each in nodes_below(admin, admin.groups()).nodes if each.view.node == node]
    held = [each for each in placed if _learnt(each.view) and not each.view.quarantined]
    stays = f"its {sum(_learnt(each.view) for each in held):,} readings stay in the model"
    if not yes:
        confirm(
            f"{node} is refused in every group, here and below, until `submerge nodes unban`."
            " If it is an aggregator, all below it is cut off.",
            "Ban it?",
        )
    if held and not yes and agrees(f"{stays}: quarantine as well?"):
        for each in held:
            found = FoundNode(node, each.view.group, each.under, each.view)
            order(admin, found, "quarantine", lambda view: bool(view and view.quarantined))
        done += ", and its rows are quarantined"
    elif held:
        done += f"; {stays}: `submerge nodes quarantine {node}` takes them out"
    _set_ban(at, node, "ban", done, as_json=as_json)


@command.command(
    epilog=f"{BANS_GO_DOWN}\n\nExample: submerge nodes unban pump-3 --config root.toml"
)
@click.argument("node")
@aggregator_options(None)
@json_option("Print the ban, as JSON.")
def unban(at: AggregatorOptions, node: str, as_json: bool) -> None:
    """Take NODE in again, in every group, here and at every aggregator below."""
    _set_ban(at, node, "unban", "is no longer banned", as_json=as_json)


command.add_command(settings)
command.add_command(scores)
command.add_command(unlike)


def _set_ban(at: AggregatorOptions, node: str, verb: str, done: str, *, as_json: bool) -> None:
    answer = at.admin().post("bans", node, verb)
    late = json.loads(answer)["on_its_way"]
    rest = f"; the order is on its way to {', '.join(late)}" if late else ""
    say_back(answer, f"{node} {done}{rest}", as_json=as_json)


def _find(admin: AdminClient, node: str, group: str | None) -> tuple[str, NodeView]:
    """Return the group of a node that reports here, and what the aggregator shows of it."""
    found = find(admin, node, group)
    if found.under:
        raise UsageError(f"{node} reports to {found.under}: give this order there")
    return found.group, _view(admin, found)


def _view(admin: AdminClient, found: FoundNode) -> NodeView:
    from submerge_aggregator.questions.views import NodeView

    if found.view is not None:
        return found.view
    return admin.read(NodeView, "nodes", found.group, found.node)


def _incarnation(known: NodeView, letters: str) -> str:
    found = [row.incarnation for row in known.rows if row.incarnation.startswith(letters)]
    if len(found) != 1:
        raise UsageError(f"expected one of its incarnations, got {letters!r}; {_rows_of(known)}")
    return found[0]


def _part_of(known: NodeView, incarnation: str | None) -> tuple[str, int]:
    """Return what to drop, in words, and how many readings that is."""
    if incarnation is not None:
        rows = [row.learnt for row in known.rows if row.incarnation == incarnation]
        return f"incarnation {incarnation}", sum(rows)
    rows = [row.learnt for row in known.rows if row.schema == "old"]
    rows += [each.learnt for each in known.sealed if each.schema == "old"]
    if not rows:
        raise UsageError(
            f"{known.node} of group {known.group} has nothing under an old schema here"
        )
    return "what it reported under earlier schemas", sum(rows)


def _rows_of(known: NodeView) -> str:
    rows = (f"{row.incarnation} ({row.learnt:,} readings)" for row in known.rows)
    return f"it has {', '.join(rows) or 'no live rows'}"


def _learnt(known: NodeView) -> int:
    return sum(row.learnt for row in known.rows) + sum(each.learnt for each in known.sealed)


def _warning(node: str, group: str, known: NodeView, *, ban: bool) -> str:
    leave = f"{_learnt(known):,} readings leave the model, here and, with the next report, above."
    lines = [
        f"{node} of group {group}: {leave}",
        "This cannot be undone, and does not change the row of a dead aggregator above.",
    ]
    below = known.kind == "aggregator"
    if ban:
        whom = "It, and all below it, are" if below else "It is"
        lines.append(f"{whom} refused from then on, until it is released.")
    else:
        whom = "it and all below it begin" if below else "it begins"
        lines.append(f"If it still runs, {whom} again from zero.")
    return "\n".join(lines)


@command.group(
    "learn", cls=AdminGroup, epilog="Example: submerge nodes learn pause pump-3 --config root.toml"
)
def learn() -> None:
    """Pause what a node learns, and resume it; have a fleet choose its landmarks again.

    Any aggregator above the node takes the command. It is reached through the socket beside its
    store, as the user that it runs as, or with --at from another machine.
    """


_learn_command = partial(
    desired_state_command,
    learn,
    target=click.argument("node"),
    group_help="Its group; needed if it is in several, or unknown here.",
    anyway="Also for a node that never reported here.",
    json="Print the node's desired state, as JSON.",
)


@_learn_command("nodes learn pause pump-3")
def pause(at: AggregatorOptions, node: str, anyway: bool, as_json: bool) -> None:
    """Have NODE learn nothing until it is resumed: for a test, or during a repair.

    It goes on reading, scoring and alarming. Readings meanwhile count as withheld.
    """
    _set_paused(at, node, "pause", anyway=anyway, as_json=as_json)


@_learn_command("nodes learn resume pump-3")
def resume(at: AggregatorOptions, node: str, anyway: bool, as_json: bool) -> None:
    """Have NODE learn again, from its next reading on; those before are not learnt."""
    _set_paused(at, node, "resume", anyway=anyway, as_json=as_json)


@learn.command(epilog="Example: submerge nodes learn landmarks --config root.toml --group pumps")
@aggregator_options("The group; needed if there are several.")
@flag_option("--yes", "Do not ask first.")
@json_option("Print the job that chooses, as JSON.")
def landmarks(at: AggregatorOptions, yes: bool, as_json: bool) -> None:
    """Have the fleet choose a group's landmarks again, at the root.

    Readings leave devices for it, as far as their own configurations say (share_points). The group
    then has another schema, and its model begins again: what was learnt under the landmarks before
    is in no model any more. `submerge jobs` lists the choice.
    """
    admin = at.admin()
    group = admin.group(at.group)
    if not yes:
        confirm(
            f"Group {group} gets other landmarks, and learns its model from the beginning.",
            "Choose again?",
        )
    answer = admin.post("landmarks", group)
    job = json.loads(answer)["id"]
    say_back(answer, f"{job} chooses landmarks of group {group}", as_json=as_json)


def _set_paused(
    at: AggregatorOptions, node: str, verb: str, *, anyway: bool, as_json: bool
) -> None:
    admin = at.admin()
    group, below = at.group or _group_of(admin, node), anyway
    if not anyway:
        with suppress(UsageError):  # a node that is known by an alarm alone
            found = find(admin, node, at.group)
            group, below = found.group, bool(found.under)
    answer = admin.post("nodes", group, node, verb, **({"anyway": "1"} if below else {}))
    done = "is to learn nothing until it is resumed" if verb == "pause" else "is to learn again"
    say_back(answer, f"{node} of group {group} {done}. {when_applied(answer)}", as_json=as_json)


def _group_of(admin: AdminClient, node: str) -> str:
    """Return the group that a node is known in: by its reports, or by an alarm of it."""
    views = [json.loads(admin.get(what, node=node)) for what in ("nodes", "alarms")]
    groups = [str(each["group"]) for listed in views for each in listed]
    return only_group(groups, node) if groups else admin.group(None)
