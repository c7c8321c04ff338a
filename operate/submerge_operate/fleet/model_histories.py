"""`submerge model push`, `histories` and `forget`: what a root has learnt of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from submerge.errors import UsageError
from submerge_files.console.admin_client import AdminClient, confirm, console_of, say_back
from submerge_files.console.options import (
    FILE,
    AggregatorOptions,
    aggregator_options,
    flag_option,
    json_option,
)

if TYPE_CHECKING:
    from submerge_aggregator.questions.history_views import HistoryView

ITS_GROUP = aggregator_options("Its group; needed where there are several.")


@click.command(epilog="Example: submerge model push plant.model --config root.toml")
@click.argument("file", type=FILE)
@ITS_GROUP
@click.option(
    "--weight",
    type=click.IntRange(1),
    metavar="ROWS",
    help="It counts for at most so many rows.  [default: for all that were learnt]",
)
@flag_option("--anyway", "Also if a node that reports here may have read the same rows.")
@json_option("Print what has changed, as JSON.")
def push(
    at: AggregatorOptions, file: Path, weight: int | None, anyway: bool, as_json: bool
) -> None:
    """Give a root what is in FILE, so that it is part of its group's model.

    FILE is what `submerge fit` has written, or `submerge model save` of another fleet. Each row
    counts once: a file that holds all that an earlier one held takes its place, and a file that
    holds a part of it is refused. The root keeps it in its store until `submerge model forget`.
    Keep FILE: if that store is lost, it is pushed again.
    """
    from submerge_aggregator.questions.history_views import PushedView
    from submerge_operate.fleet.history_words import pushed_text, weight_warning

    data = _bytes_of(file)
    admin = at.admin()
    query = {} if weight is None else {"weight": str(weight)}
    query |= {"anyway": "1"} if anyway else {}
    answer = admin.send(data, "histories", admin.group(at.group), **query)
    import msgspec

    done = msgspec.json.decode(answer, type=PushedView)
    say_back(answer, pushed_text(file.name, done), as_json=as_json)
    warning = weight_warning(done)
    if warning:
        click.echo(warning, err=True)


@click.command(epilog="Example: submerge model histories --config root.toml")
@aggregator_options("Of this group only.")
@json_option("Print one JSON array: all that is known.")
def histories(at: AggregatorOptions, as_json: bool) -> None:
    """List the histories that a root merges beside the rows of its nodes."""
    admin = at.admin()
    groups = admin.groups() if at.group is None else [at.group]
    found = [each for group in groups for each in _histories(admin, group)]
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(found).decode())
        return
    from submerge_operate.fleet.history_words import table_of

    none = "no history has been pushed: the model is of what nodes report"
    console_of(wide=False).print(table_of(found) if found else none)


@click.command(epilog="Example: submerge model forget 3f1c9a0b77de --config root.toml")
@click.argument("name")
@ITS_GROUP
@flag_option("--yes", "Do not ask first.")
@json_option("Print what was forgotten, as JSON.")
def forget(at: AggregatorOptions, name: str, yes: bool, as_json: bool) -> None:
    """Take history NAME out of the model, as if it had never been pushed.

    NAME is in `submerge model histories`. What nodes have scored meanwhile they have scored by
    the model of that time: limits from these scores stay.
    """
    admin = at.admin()
    group = admin.group(at.group)
    held = {each.name: each for each in _histories(admin, group)}
    if name not in held:
        known = ", ".join(held) or "none"
        raise UsageError(f"expected a history of group {group} ({known}), got {name!r}")
    rows = held[name].rows
    if not yes:
        confirm(
            f"history {name} of group {group}: {rows:,} rows leave the model.\n"
            "Only its model file can bring them back (submerge model push).",
            "Forget it?",
        )
    answer = admin.post("histories", group, name, "forget")
    done = f"history {name} of group {group} is forgotten: {rows:,} rows have left the model"
    say_back(answer, done, as_json=as_json)


def _bytes_of(file: Path) -> bytes:
    """Return a model file that a root can merge.

    Raises
    ------
    UsageError
        If it is none.
    """
    from submerge_aggregator.questions.history_views import MOST_PUSHED_BYTES
    from submerge_files.model_file import bytes_of, decoded

    data = bytes_of(file)
    learnt = decoded(data, str(file)).learnt
    if learnt is None or learnt.summary is None:
        raise UsageError(
            f"expected what merges in {file}, got a model alone: write it with `submerge fit`, or"
            " with `submerge model save` at a root"
        )
    if len(data) > MOST_PUSHED_BYTES:
        raise UsageError(
            f"expected at most {MOST_PUSHED_BYTES:,} bytes in {file}, got {len(data):,}: fit fewer"
            " files together"
        )
    return data


def _histories(admin: AdminClient, group: str) -> list[HistoryView]:
    import msgspec

    from submerge_aggregator.questions.history_views import HistoryView

    return msgspec.json.decode(admin.get("histories", group), type=list[HistoryView])
