"""`submerge learn`: whether a node learns what it reads."""

from __future__ import annotations

import functools
import json

import click

from submerge.errors import UsageError
from submerge_fleet.console.admin_client import AdminClient, AdminGroup, say_back
from submerge_fleet.console.options import AggregatorOptions
from submerge_fleet.operate.orders import node_order, when_applied


@click.group(cls=AdminGroup, epilog="Example: submerge learn pause pump-3 --config root.toml")
def command() -> None:
    """Have a node learn nothing for a while, and learn again.

    Say it at any aggregator above the node. It is reached through the socket beside its store,
    as the user that it runs as.
    """


_order_command = functools.partial(
    node_order,
    command,
    target=click.argument("node"),
    group_help="Its group; needed if it is in several, or not known here.",
    anyway="Also if nothing was ever heard of it here.",
    json="Print what is wanted of it, as JSON.",
)


@_order_command("learn pause pump-3")
def pause(at: AggregatorOptions, node: str, anyway: bool, as_json: bool) -> None:
    """Have NODE learn nothing until it is resumed: for a test, or while it is mended.

    It goes on reading, scoring and alarming; what it reads meanwhile is counted as withheld.
    """
    _order(at, node, "pause", anyway=anyway, as_json=as_json)


@_order_command("learn resume pump-3")
def resume(at: AggregatorOptions, node: str, anyway: bool, as_json: bool) -> None:
    """Have NODE learn again what it reads from now on; what came in between is not learnt."""
    _order(at, node, "resume", anyway=anyway, as_json=as_json)


def _order(at: AggregatorOptions, node: str, verb: str, *, anyway: bool, as_json: bool) -> None:
    import msgspec

    from submerge_aggregator.questions.alarm_views import DesiredStateView

    admin = at.admin()
    group = at.group or _group_of(admin, node)
    answer = admin.post("nodes", group, node, verb, **({"anyway": "1"} if anyway else {}))
    desired = msgspec.json.decode(answer, type=DesiredStateView)
    done = "is to learn nothing until it is resumed" if verb == "pause" else "is to learn again"
    say_back(answer, f"{node} of group {group} {done}. {when_applied(desired)}", as_json=as_json)


def _group_of(admin: AdminClient, node: str) -> str:
    """Return the group that a node is known in: by its reports, or by an alarm of its own."""
    reported = [json.loads(admin.get(what, node=node)) for what in ("nodes", "alarms")]
    groups = sorted({str(each["group"]) for views in reported for each in views})
    if len(groups) > 1:
        raise UsageError(f"expected --group: {node} is in several, {', '.join(groups)}")
    return groups[0] if groups else admin.group(None)
