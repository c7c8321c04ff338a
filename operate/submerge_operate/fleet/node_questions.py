"""The commands that ask one node."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from submerge_files.console.admin_client import (
    AdminClient,
    AdminCommand,
    console_of,
    say_back,
    value_in,
)
from submerge_files.console.options import (
    AggregatorOptions,
    aggregator_options,
    flag_option,
    json_option,
)
from submerge_files.console.tables import Column, table
from submerge_files.console.units import moment, name_text, printable
from submerge_operate.fleet.node_places import find
from submerge_operate.fleet.watch import WATCH, LiveView, watch

if TYPE_CHECKING:
    from rich.table import Table

    from submerge_client.replies import RecentReply


def setting_lines(said: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of what a node says of its settings."""
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
    """A row.

    at : Unix seconds
    scores : of each kind: its value, and its limit or None
    blame : channels and their shares
    """

    at: float
    scores: dict[str, tuple[float, float | None]]
    blame: dict[str, float]


def rows_of(reply: RecentReply) -> Iterator[ScoredRow]:
    """Yield the rows of a reply, oldest first."""
    for i, at in enumerate(reply.at):
        yield ScoredRow(
            at,
            {each.kind: (each.values[i], each.limit) for each in reply.kinds},
            {reply.channels[each.channel]: each.share for each in reply.blame[i]},
        )


def table_of(reply: RecentReply, *, most: int | None) -> Table:
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
    """A node that is asked, again and again if need be."""

    def __init__(self, admin: AdminClient, node: str, group: str | None) -> None:
        self._admin, self._query = admin, dict[str, str]()
        if node == json.loads(admin.get())["node"]:
            self._group = admin.groups()[0] if group is None else group
            return
        found = find(admin, node, group)
        self._group = found.group
        self._query = {"path": f"{found.under}/{node}" if found.under else node}

    def ask(self, topic: str) -> bytes:
        """Return what it says to a topic, as JSON."""
        return self._admin.get(topic, self._group, **self._query)


ITS_GROUP = aggregator_options("Its group; needed if it is in several.")


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

    draw = partial(table_of, most=None if every else 20)
    if watched:
        watch(LiveView(look, draw, partial(new_rows, as_json=as_json)), as_json=as_json)
    else:
        console_of(wide=False).print(draw(look()))
