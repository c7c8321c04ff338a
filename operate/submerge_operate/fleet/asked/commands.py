"""The commands that ask one node."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import click

from submerge_files.console.admin_client import AdminCommand, console_of
from submerge_files.console.options import (
    AggregatorOptions,
    aggregator_options,
    flag_option,
    json_option,
)
from submerge_files.console.printable import printable
from submerge_operate.fleet.asked.one_node import AskedNode
from submerge_operate.fleet.asked.scores_table import new_rows, table_of
from submerge_operate.fleet.asked.settings_lines import setting_lines
from submerge_operate.fleet.watching import WATCH, LiveView, watch

if TYPE_CHECKING:
    from submerge_client.asked.shapes import RecentReply

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
        click.echo(json.dumps(json.loads(body)))
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
    import msgspec

    from submerge_client.asked.shapes import RecentReply

    asked = AskedNode(at.admin(), node, at.group)
    if as_json and not watched:
        click.echo(json.dumps(json.loads(asked.ask("recent"))))
        return

    def look() -> RecentReply:
        return msgspec.json.decode(asked.ask("recent"), type=RecentReply)

    draw = partial(table_of, most=None if every else 20)
    if watched:
        watch(LiveView(look, draw, partial(new_rows, as_json=as_json)), as_json=as_json)
    else:
        console_of(wide=False).print(draw(look()))
