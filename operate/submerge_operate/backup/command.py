"""`submerge backup`: copies of a root's store, made while it runs, and whether one is good."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from submerge.errors import UsageError
from submerge_files.console.admin_client import AdminGroup
from submerge_files.console.options import (
    FILE,
    AggregatorOptions,
    aggregator_options,
    flag_option,
    json_option,
)

if TYPE_CHECKING:
    from submerge_aggregator.backup.copy_file import CopyIdentity

CONFIG = click.option("--config", required=True, type=FILE, help="The configuration of the root.")


@click.group(
    cls=AdminGroup,
    invoke_without_command=True,
    epilog="""\b
Example: submerge backup --config root.toml --to root.backup
         submerge backup --config root.toml --to /backup --keep 14
         submerge backup check root.backup --config root.toml""",
)
@aggregator_options(None)
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    help="A new file; or a folder, in which the copy gets a dated name.",
)
@click.option(
    "--keep",
    type=click.IntRange(1),
    help="Copies of this root that stay in the folder; older ones are removed.",
)
@flag_option("--anyway", "Replace a file that exists.")
@json_option("Print what was copied, as JSON.")
def command(
    at: AggregatorOptions, to: Path | None, keep: int | None, anyway: bool, as_json: bool
) -> None:
    """Copy the store of a running root, while it goes on.

    The copy is one file, there whole or not at all, and for you alone. `check` says whether one is
    good, and `submerge backup restore` puts one in place. Status 1 if the root does not answer,
    or has no room for a copy.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    if to is None:
        raise UsageError("expected --to FILE or --to FOLDER, got neither")
    from submerge_operate.backup.fetching import fetch
    from submerge_operate.backup.keeping import dated, remove_older

    admin, folder = at.admin(), to.is_dir()
    if keep is not None and not folder:
        raise UsageError(
            f"--keep is for a folder of dated copies, got --to {to}: create the folder"
        )
    node = str(json.loads(admin.get())["node"])
    path = dated(to, node) if folder else to
    identity = fetch(admin, path, anyway=anyway)
    gone = [] if keep is None else remove_older(path, node, keep)
    if as_json:
        click.echo(json.dumps({**_facts(path, identity), "removed": [str(each) for each in gone]}))
    else:
        click.echo(f"{path}: {_text(identity)}")


@command.command(epilog="Example: submerge backup check root.backup --config root.toml")
@click.argument("file", type=FILE)
@CONFIG
@json_option("Print each group's finding, as JSON.")
def check(file: Path, config: Path, as_json: bool) -> None:
    """Say whether FILE is good: open it offline, and compute its models again.

    Each has to be the one that the root had at that moment, byte for byte. FILE is only read, no
    node is spoken to, and the root may run. Status 1 if FILE is damaged, or gives another model;
    2 if it is no copy, or of another root.
    """
    from submerge_aggregator.backup.checking import check_models, read_copy
    from submerge_aggregator.backup.copy_file import CopyDamaged
    from submerge_files.console.progress import advancing
    from submerge_operate.root_config import root_config

    loaded = root_config(config)
    try:
        with advancing("reading", file.stat().st_size if file.exists() else 0) as read:
            copy = read_copy(file, read)
        found = check_models(copy, loaded)
    except CopyDamaged as error:
        click.echo(f"submerge: {error}", err=True)
        sys.exit(1)
    if as_json:
        groups = {each.group: {"learnt": each.learnt, "differs": each.differs} for each in found}
        click.echo(json.dumps({**_facts(file, copy.identity), "groups": groups}))
    else:
        click.echo(f"{file}: {_text(copy.identity)}")
        for each in found:
            says = each.differs or "the model is the one that the root had"
            click.echo(f"{each.group}: {each.learnt:,} readings; {says}")
    if any(each.differs for each in found):
        sys.exit(1)


def _facts(path: Path, identity: CopyIdentity) -> dict[str, object]:
    return {
        "file": str(path),
        "node": identity.node,
        "incarnation": identity.incarnation,
        "at": identity.wall,
        "bytes": identity.bytes,
        "learnt": sum(each.learnt for each in identity.groups.values()),
    }


def _text(identity: CopyIdentity) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(identity.wall))
    learnt = sum(each.learnt for each in identity.groups.values())
    return f"{identity.node} at {moment}, {learnt:,} readings, {identity.bytes:,} bytes"
