"""`submerge model`: show, save, compare and export what is normal; push histories."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from submerge.errors import UsageError
from submerge_files.console.admin_client import AdminGroup
from submerge_files.console.options import (
    FILE,
    AggregatorOptions,
    aggregator_options,
    json_option,
)
from submerge_operate.fleet.model_histories import forget, histories, push
from submerge_operate.fleet.watching import WATCH, LiveView, watch

if TYPE_CHECKING:
    from submerge.protocol.summaries import Summary
    from submerge_files.model_file import SavedModel

AGGREGATOR = aggregator_options("Whose model; needed where there are several groups.")


@click.group(cls=AdminGroup, epilog="Example: submerge model show --config root.toml")
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
        found = figures(named, shown=shown)
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
    from submerge_operate.fleet import model_comparison

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
    lines, comparable = model_comparison.schema_differences(first.schema, second.schema)
    found = None
    if comparable:
        found = model_comparison.compare_summaries(_learnt(first), _learnt(second), rank=rank)
    if as_json:
        click.echo(json.dumps(model_comparison.as_dict(found, lines)))
    elif found is not None:
        click.echo(model_comparison.comparison_text(first, second, found, lines))
    else:
        for line in lines:
            click.echo(line)
    if found is None:
        sys.exit(1)


def _watch(at: AggregatorOptions, *, as_json: bool) -> None:
    """Show the newest model until Ctrl-C; where there is no terminal, a line for each."""
    from rich.text import Text

    from submerge_files.console.units import moment
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
