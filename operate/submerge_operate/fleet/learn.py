"""`submerge nodes learn`: whether a node learns, and a group's landmarks chosen again."""

from __future__ import annotations

import functools
import json
from contextlib import suppress

import click

from submerge.errors import UsageError
from submerge_files.console.admin_client import AdminClient, AdminGroup, confirm, say_back
from submerge_files.console.options import (
    AggregatorOptions,
    aggregator_options,
    flag_option,
    json_option,
)
from submerge_operate.fleet.node_places import desired_state_command, find, only_group, when_applied


@click.group(cls=AdminGroup, epilog="Example: submerge nodes learn pause pump-3 --config root.toml")
def command() -> None:
    """Pause what a node learns, and resume it; have a fleet choose its landmarks again.

    Any aggregator above the node takes the command. It is reached through the socket beside its
    store, as the user that it runs as, or with --at from another machine.
    """


_learn_command = functools.partial(
    desired_state_command,
    command,
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


@command.command(epilog="Example: submerge nodes learn landmarks --config root.toml --group pumps")
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
