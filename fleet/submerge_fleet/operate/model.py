"""`submerge model`: what a fleet considers normal; kept, looked at, and held against another."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from submerge.errors import UsageError
from submerge_fleet.console.admin_client import AdminGroup, admin_client_of, with_admin_client

if TYPE_CHECKING:
    from submerge.protocol.summaries import Summary
    from submerge_fleet.operate.model_file import SavedModel

FILE = click.Path(path_type=Path, dir_okay=False)
GROUP = click.option("--group", help="Whose model; needed where there are several groups.")


@click.group(cls=AdminGroup, epilog="Example: submerge model show --config root.toml")
def command() -> None:
    """See, keep and compare models: of a running aggregator, or saved ones."""


@command.command(epilog="Example: submerge model show --config root.toml --group pumps")
@click.argument("file", required=False, type=FILE)
@with_admin_client
@GROUP
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(
    file: Path | None, config: Path | None, store: Path | None, group: str | None, as_json: bool
) -> None:
    """Show a model: FILE, or the newest of a running aggregator."""
    from submerge_fleet.operate.model_figures import figures, figures_text

    if file is not None:
        _refuse_socket(config, store, group)
        from submerge_fleet.operate.model_file import read

        saved = read(file)
        found = figures(saved, shown=None if saved.shown is None else saved.shown.rank)
    else:
        named, shown = _running(config, store, group, instead="FILE, ")
        found = figures(named, shown=shown)
    click.echo(json.dumps(found.as_dict()) if as_json else figures_text(found))


@command.command(epilog="Example: submerge model save monday.model --config root.toml")
@click.argument("file", type=FILE)
@with_admin_client
@GROUP
@click.option("--json", "as_json", is_flag=True, help="Print what was saved, as JSON.")
def save(
    file: Path, config: Path | None, store: Path | None, group: str | None, as_json: bool
) -> None:
    """Write the newest model of a running aggregator to FILE, whole or not at all.

    `show`, `compare` and `submerge score` read it again. FILE may be an older model, and nothing
    else.
    """
    from submerge_fleet.operate.model_file import decoded, save

    admin = admin_client_of(config, store)
    group = admin.group(group)
    data = admin.get("model", group)
    model = decoded(data, "the aggregator's answer").model
    save(file, data, admin.shown(group))
    if as_json:
        saved = {"file": str(file), "group": group, "version": model.version, "bytes": len(data)}
        click.echo(json.dumps(saved))
    else:
        click.echo(f"{file}: {group}, version {model.version}, {len(data):,} bytes")


@command.command(epilog="Example: submerge model compare monday.model --config root.toml")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FIRST [SECOND]")
@with_admin_client
@GROUP
@click.option("--rank", type=click.IntRange(1), help="Directions to compare.  [default: all held]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(
    files: tuple[Path, ...],
    config: Path | None,
    store: Path | None,
    group: str | None,
    rank: int | None,
    as_json: bool,
) -> None:
    """Hold one model against another: two files, or a file and the running aggregator's.

    Status 1 if the two are of different vectors: then it says what sets them apart.
    """
    from submerge_fleet.operate import model_comparison
    from submerge_fleet.operate.model_file import read

    if len(files) > 2:
        raise UsageError(f"expected one model or two, got {len(files)}")
    first = read(files[0])
    if len(files) == 2:
        _refuse_socket(config, store, group)
        second = read(files[1])
    else:
        group = group or first.model.group
        second, shown = _running(config, store, group, instead="a second FILE, ")
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


def _learnt(named: SavedModel) -> Summary:
    summary = named.model.summary
    if summary is None:
        raise UsageError(f"{named.whence} has learnt nothing yet: compare a later one")
    return summary


def _running(
    config: Path | None, store: Path | None, group: str | None, *, instead: str
) -> tuple[SavedModel, int | None]:
    """Return the newest model of a running aggregator, and how much nodes show of it."""
    from submerge_fleet.operate.model_file import decoded

    admin = admin_client_of(config, store, instead=instead)
    group = admin.group(group)
    whence = f"the aggregator on {admin.path}"
    return decoded(admin.get("model", group), whence), admin.ranks.get(group)


def _refuse_socket(config: Path | None, store: Path | None, group: str | None) -> None:
    """An option that would be passed over in silence is a question without an answer."""
    for name, value in (("--config", config), ("--store", store), ("--group", group)):
        if value is not None:
            raise UsageError(f"{name} is for the model of a running aggregator, got files as well")
