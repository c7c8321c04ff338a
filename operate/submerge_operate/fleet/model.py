"""`submerge model`: show, save, compare and export what is normal; push histories."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import click

from submerge.errors import UsageError
from submerge_files.console import admin_client
from submerge_files.console.options import (
    FILE,
    AggregatorOptions,
    aggregator_options,
    flag_option,
    json_option,
)
from submerge_files.console.tables import Column, table
from submerge_files.console.units import ago, figure, moment, name_text, printable
from submerge_operate.fleet.watch import WATCH, LiveView, watch

if TYPE_CHECKING:
    from rich.table import Table

    from submerge.protocol.summaries import Summary
    from submerge_aggregator.questions.histories import HistoryView, PushedView
    from submerge_files.model_file import SavedModel

LITTLE = 0.1  # share of a weight: of less, a push warns


def pushed_text(file: str, done: PushedView) -> str:
    history = done.history
    cap = "" if history.most_rows is None else f", counted as at most {history.most_rows:,.0f}"
    text = f"{printable(file)}: history {history.name} of group {history.group}, "
    text += f"{history.rows:,} rows{cap}"
    if done.replaces:
        text += f", in place of {', '.join(done.replaces)}"
    if not done.limits:
        return f"{text}; it has no limits: nodes learn theirs as they report"
    return f"{text}; its limits hold for nodes from their first rows on"


def weight_warning(done: PushedView) -> str:
    """Return a warning if the group's half-life leaves little of a history; empty if not."""
    history, half = done.history, done.half_life_s
    if history.left >= LITTLE or not half:
        return ""
    age = -math.log2(history.left) * half if history.left > 0 else math.inf
    old = f"{ago(age)} old" if age < math.inf else "too old"
    return (
        f"warning: its last row is {old}, and the group has a half-life of {ago(half)}:"
        f" {figure(100 * history.left)}% of its weight is left"
    )


def table_of(views: Sequence[HistoryView]) -> Table:
    capped = any(view.most_rows is not None for view in views)
    columns: list[Column[HistoryView]] = [
        Column("group", lambda view: view.group, shown=len({view.group for view in views}) > 1),
        Column("name", lambda view: view.name),
        Column("rows", lambda view: f"{view.rows:,}", right=True),
        Column("weight cap", _cap, shown=capped, right=True),
        Column("span", _span, folds=True),
        Column("machines", lambda view: _named(view.machines), folds=True),
        Column("files", lambda view: _named([PurePath(f).name for f in view.files]), folds=True),
        Column("pushed", lambda view: _day(view.pushed_s), folds=True),
        Column(
            "state",
            lambda view: "" if view.current else "old schema",
            shown=not all(view.current for view in views),
            folds=True,
        ),
    ]
    return table(views, columns)


def _cap(view: HistoryView) -> str:
    return "-" if view.most_rows is None else f"{view.most_rows:,.0f}"


def _span(view: HistoryView) -> str:
    if view.origin:
        return f"of fleet {name_text(view.origin.partition(' ')[0])}"
    if view.first_s is None or view.last_s is None:
        return "-"
    return f"{_day(view.first_s)} to {_day(view.last_s)}"


def _named(names: Sequence[str]) -> str:
    return name_text(names[0]) if len(names) == 1 else f"{len(names)}" if names else "-"


def _day(seconds: float) -> str:
    return moment(seconds).partition(" ")[0]


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
    from submerge_aggregator.questions.histories import PushedView

    data = _bytes_of(file)
    admin = at.admin()
    query = {} if weight is None else {"weight": str(weight)}
    query |= {"anyway": "1"} if anyway else {}
    answer = admin.send(data, "histories", admin.group(at.group), **query)
    done = admin_client.value_in(answer, PushedView)
    admin_client.say_back(answer, pushed_text(file.name, done), as_json=as_json)
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
        admin_client.say_value(found)
        return
    none = "no history has been pushed: the model is of what nodes report"
    admin_client.console_of(wide=False).print(table_of(found) if found else none)


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
        admin_client.confirm(
            f"history {name} of group {group}: {rows:,} rows leave the model.\n"
            "Only its model file can bring them back (submerge model push).",
            "Forget it?",
        )
    answer = admin.post("histories", group, name, "forget")
    done = f"history {name} of group {group} is forgotten: {rows:,} rows have left the model"
    admin_client.say_back(answer, done, as_json=as_json)


def _bytes_of(file: Path) -> bytes:
    """Return a model file that a root can merge; raises UsageError if it is none."""
    from submerge_aggregator.questions.histories import MOST_PUSHED_BYTES
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


def _histories(admin: admin_client.AdminClient, group: str) -> list[HistoryView]:
    from submerge_aggregator.questions.histories import HistoryView

    return admin.read(list[HistoryView], "histories", group)


AGGREGATOR = aggregator_options("Whose model; needed where there are several groups.")


@click.group(cls=admin_client.AdminGroup, epilog="Example: submerge model show --config root.toml")
def command() -> None:
    """Show, save, compare and export models: of a running aggregator, or saved ones.

    A root takes models of files or of other fleets as histories: `push`, `histories`, `forget`.
    """


for each in (push, histories, forget):
    command.add_command(each)


@command.command(epilog="Example: submerge model show --config root.toml --group pumps")
@click.argument("file", required=False, type=FILE)
@AGGREGATOR
@WATCH
@json_option()
def show(at: AggregatorOptions, file: Path | None, watched: bool, as_json: bool) -> None:
    """Show a model: FILE, or the newest of a running aggregator."""
    from submerge_operate.fleet.model_figures import figures, figures_text

    if watched:
        if file is not None:
            raise UsageError("--watch is for a running aggregator, got FILE as well")
        _watch(at, as_json=as_json)
        return
    if file is not None:
        at.refuse("files")
        from submerge_files.model_file import read

        saved = read(file)
        found = figures(saved, shown=None if saved.shown is None else saved.shown.rank)
    else:
        named, shown = _running_model(at, instead="FILE, ")
        found = replace(figures(named, shown=shown), verdicts=_by_verdicts(at, named.model.group))
    click.echo(json.dumps(found.as_dict()) if as_json else figures_text(found))


@command.command(epilog="Example: submerge model save monday.model --config root.toml")
@click.argument("file", type=FILE)
@AGGREGATOR
@json_option("Print what was saved, as JSON.")
def save(at: AggregatorOptions, file: Path, as_json: bool) -> None:
    """Write the newest model of a running aggregator to FILE, whole or not at all.

    Of a root also what merges. `show`, `compare` and `submerge score` read it again. FILE may be
    new, or an older model.
    """
    from submerge.history.knowledge import Learnt
    from submerge_files.model_file import decoded, save

    admin = at.admin()
    group = admin.group(at.group)
    # An aggregator of an earlier version answers with the model alone.
    found = decoded(admin.get("model", group, whole="1"), "the aggregator's answer", sent=True)
    learnt = found.learnt or Learnt(found.model, origin=group)
    size = save(file, learnt, found.shown or admin.shown(group))
    version = learnt.model.version
    if as_json:
        click.echo(
            json.dumps({"file": str(file), "group": group, "version": version, "bytes": size})
        )
    else:
        click.echo(f"{file}: {group}, version {version}, {size:,} bytes")


@command.command(epilog="Example: submerge model compare monday.model --config root.toml")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FIRST [SECOND]")
@AGGREGATOR
@click.option("--rank", type=click.IntRange(1), help="Directions to compare.  [default: all held]")
@json_option()
def compare(
    at: AggregatorOptions, files: tuple[Path, ...], rank: int | None, as_json: bool
) -> None:
    """Compare two models: two files, or a file and the running aggregator's.

    Status 1 if their vectors differ in meaning: the differences are printed.
    """
    from submerge_files.model_file import read
    from submerge_operate.fleet import model_figures

    if len(files) > 2:
        raise UsageError(f"expected one model or two, got {len(files)}")
    first = read(files[0])
    if len(files) == 2:
        at.refuse("files")
        second = read(files[1])
    else:
        at = at._replace(group=at.group or first.model.group)
        second, shown = _running_model(at, instead="a second FILE, ")
        rank = rank or shown
    lines, comparable = model_figures.schema_differences(first.schema, second.schema)
    found = None
    if comparable:
        found = model_figures.compare_summaries(_learnt(first), _learnt(second), rank=rank)
    if as_json:
        click.echo(json.dumps(model_figures.as_dict(found, lines, first.schema.names)))
    elif found is not None:
        click.echo(model_figures.comparison_text(first, second, found, lines))
    else:
        for line in lines:
            click.echo(line)
    if found is None:
        sys.exit(1)


def _watch(at: AggregatorOptions, *, as_json: bool) -> None:
    """Show the newest model until Ctrl-C; where there is no terminal, a line for each."""
    from rich.text import Text

    from submerge_operate.fleet.model_figures import Figures, figures, figures_text

    def look() -> Figures:
        named, shown = _running_model(at, instead="")
        return figures(named, shown=shown)

    def lines(before: Figures | None, after: Figures) -> list[str]:
        if before is not None and before.version == after.version:
            return []
        if as_json:
            return [json.dumps(after.as_dict())]
        made, readings = moment(after.created_s), f"{after.learnt:,} readings"
        said = f"{after.group}: version {after.version}, made {made}, {readings}"
        nodes = f"{after.nodes:,} node{'s' * (after.nodes != 1)}"
        return [f"{said} of {nodes}, rank {after.rank}"]

    watch(LiveView(look, lambda found: Text(figures_text(found)), lines), as_json=as_json)


def _by_verdicts(at: AggregatorOptions, group: str) -> tuple[str, ...]:
    from submerge_aggregator.questions.views import GroupWatch

    watches = at.admin().read(list[GroupWatch], "alarm-status", group=group)
    return tuple(
        said for each in watches if each.watch is not None for said in each.watch.by_verdicts
    )


def _learnt(named: SavedModel) -> Summary:
    summary = named.model.summary
    if summary is None:
        raise UsageError(f"{named.whence} has learnt nothing yet: compare a later one")
    return summary


def _running_model(at: AggregatorOptions, *, instead: str) -> tuple[SavedModel, int | None]:
    """Return the newest model of a running aggregator, and the rank that nodes score with."""
    from submerge_files.model_file import decoded

    admin = at.admin(instead=instead)
    group = admin.group(at.group)
    whence, shown = f"the aggregator on {admin.way.name}", admin.shown(group)
    rank = None if shown is None else shown.rank
    return decoded(admin.get("model", group), whence, sent=True), rank
