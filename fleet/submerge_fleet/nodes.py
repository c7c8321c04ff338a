"""`submerge nodes`: who reports to a running aggregator, and what an operator does about one."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from submerge.errors import UsageError
from submerge_fleet.asking import Asking, Door, ago, door_of, printable, with_door

if TYPE_CHECKING:
    from rich.table import Table

    from submerge_aggregator.views import NodeView

WIDE = 160
"""Columns where nobody says how many there are: nothing is cut."""


@click.group(cls=Asking, epilog="Example: submerge nodes list --config root.toml")
def command() -> None:
    """See and amend what a running aggregator holds of its nodes.

    It is reached through the socket beside its store, as the user that it runs as.
    """


@command.command("list", epilog="Example: submerge nodes list --config root.toml --group pumps")
@with_door
@click.option("--group", help="Of this group only.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_nodes(config: Path | None, store: Path | None, group: str | None, as_json: bool) -> None:
    """List the nodes that report here.

    An aggregator below is one of them, with the readings of all below it.
    """
    answer = door_of(config, store).get("nodes", **({} if group is None else {"group": group}))
    if as_json:
        click.echo(json.dumps(json.loads(answer)))
        return
    import msgspec
    from rich.console import Console

    from submerge_aggregator.views import NodeView

    views = msgspec.json.decode(answer, type=list[NodeView])
    console = Console()
    console = console if console.is_terminal else Console(width=WIDE)
    console.print(table_of(views) if views else "no node has reported yet")


@command.command(epilog="Example: submerge nodes forget pump-3 --config root.toml")
@click.argument("node")
@with_door
@click.option("--group", help="Its group; needed if it is in several.")
@click.option("--ban", is_flag=True, help="Refuse it from now on, until it is released.")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@click.option("--json", "as_json", is_flag=True, help="Print what is left of it, as JSON.")
def forget(
    node: str,
    config: Path | None,
    store: Path | None,
    group: str | None,
    ban: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Take NODE out of the model, as if it had never been.

    Exact here and, with the next report, above. What an aggregator that is dead has told
    above is its row there, and stays until that aggregator is forgotten as well. A node
    that still runs begins again from zero.
    """
    door = door_of(config, store)
    group, known = _meant(door, node, group)
    if not yes:
        _confirm(_warning(node, group, known, ban=ban))
    answer = door.post("nodes", group, node, "forget", ban="1" if ban else "0")
    left = ", and refused until it is released" if ban else ""
    _say(answer, f"{node} of group {group} is forgotten{left}", as_json=as_json)


@command.command(epilog="Example: submerge nodes quarantine pump-3 --config root.toml")
@click.argument("node")
@with_door
@click.option("--group", help="Its group; needed if it is in several.")
@click.option("--json", "as_json", is_flag=True, help="Print the node, as JSON.")
def quarantine(
    node: str, config: Path | None, store: Path | None, group: str | None, as_json: bool
) -> None:
    """Keep NODE's rows out of the model.

    Its reports are taken as before; `submerge nodes release` lets them count again.
    """
    door = door_of(config, store)
    group, _ = _meant(door, node, group)
    answer = door.post("nodes", group, node, "quarantine")
    told = f"{node} of group {group} is quarantined: its rows are kept, and leave the model"
    _say(answer, told, as_json=as_json)


@command.command(epilog="Example: submerge nodes release pump-3 --config root.toml")
@click.argument("node")
@with_door
@click.option("--group", help="Its group; needed if it is in several.")
@click.option("--json", "as_json", is_flag=True, help="Print the node, as JSON.")
def release(
    node: str, config: Path | None, store: Path | None, group: str | None, as_json: bool
) -> None:
    """Take NODE in again: neither quarantined nor banned."""
    door = door_of(config, store)
    group, _ = _meant(door, node, group)
    answer = door.post("nodes", group, node, "release")
    _say(answer, f"{node} of group {group} is released", as_json=as_json)


def table_of(views: Sequence[NodeView]) -> Table:
    """Return nodes for a person, a line each."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    several = len({view.group for view in views}) > 1
    newest: dict[str, int] = {}
    for view in views:
        for row in view.rows:
            newest[view.group] = max(newest.get(view.group, 0), row.model_version)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in (*(["group"] if several else []), "node", "kind"):
        table.add_column(heading, no_wrap=True)
    for heading in ("readings", "withheld", "lost", "heard"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("model", "software", "state"):
        table.add_column(heading, no_wrap=True)
    for view in views:
        parts = [*view.rows, *view.sealed]
        last = view.rows[0] if view.rows else None
        cells = [
            view.node,
            view.kind or "-",
            *(f"{sum(getattr(each, what) for each in parts):,}" for what in COUNTED),
            "-" if last is None else f"{ago(last.silent_s)} ago",
            "-" if last is None else _in_use(last.model_version, newest[view.group]),
            "-" if last is None else printable(last.software),
            ", ".join(_state(view)),
        ]
        table.add_row(*(Text(cell) for cell in ([view.group] if several else []) + cells))
    return table


COUNTED = ("learnt", "withheld", "lost")


def _in_use(version: int, newest: int) -> str:
    if not version:
        return "none"
    return "newest" if version == newest else "older"


def _state(view: NodeView) -> list[str]:
    """What is not as usual about a node."""
    states = [state for state in ("banned", "quarantined") if getattr(view, state)]
    if any(row.schema == "old" for row in view.rows):
        states.append("old schema")
    if len(view.rows) > 1:
        states.append(f"{len(view.rows)} lives")
    if view.sealed and not view.rows:
        states.append("sealed")
    return states


def _meant(door: Door, node: str, group: str | None) -> tuple[str, NodeView | None]:
    """Which group's node is meant, and what is to be seen of it."""
    import msgspec

    from submerge_aggregator.views import NodeView

    query = {"node": node} | ({} if group is None else {"group": group})
    found = msgspec.json.decode(door.get("nodes", **query), type=list[NodeView])
    if len(found) > 1:
        groups = ", ".join(view.group for view in found)
        raise UsageError(f"expected --group: {node} is in several, {groups}")
    return (found[0].group, found[0]) if found else (door.group(group), None)


def _warning(node: str, group: str, known: NodeView | None, *, ban: bool) -> str:
    learnt = 0
    if known is not None:
        learnt = sum(row.learnt for row in known.rows) + sum(each.learnt for each in known.sealed)
    leave = f"{learnt:,} readings leave the model, here and, with the next report, above."
    lines = [
        f"{node} of group {group}: {leave}",
        "This cannot be undone, and does not reach into the row of a dead aggregator above.",
    ]
    below = known is not None and known.kind == "aggregator"
    if ban:
        whom = "It, and all below it, are" if below else "It is"
        lines.append(f"{whom} refused from then on, until it is released.")
    else:
        whom = "it and all below it begin" if below else "it begins"
        lines.append(f"If it still runs, {whom} again from zero.")
    return "\n".join(lines)


def _confirm(warning: str) -> None:
    click.echo(warning, err=True)
    try:
        sure = click.confirm("Forget it?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)  # the question stands without a line's end
        raise UsageError("expected an answer, and nobody is here to give one: add --yes") from None
    if not sure:
        click.echo("nothing has changed", err=True)
        sys.exit(1)


def _say(answer: bytes, told: str, *, as_json: bool) -> None:
    click.echo(json.dumps(json.loads(answer)) if as_json else told)
