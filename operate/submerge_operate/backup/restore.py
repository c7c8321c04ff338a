"""`submerge backup restore`: a copy in the place of a stopped root's store."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from submerge.errors import SubmergeError, UsageError
from submerge_files.console.admin_client import AdminCommand
from submerge_files.console.options import FILE, flag_option
from submerge_operate.backup.command import CONFIG

if TYPE_CHECKING:
    from submerge_aggregator.backup.copy_file import CopyIdentity
    from submerge_aggregator.config import AggregatorConfig


@click.command(
    cls=AdminCommand, epilog="Example: submerge backup restore root.backup --config root.toml"
)
@click.argument("file", type=FILE)
@CONFIG
@flag_option("--anyway", "Also where the models are not those that the root had.")
def command(file: Path, config: Path, anyway: bool) -> None:
    """Make FILE, a copy by `submerge backup`, the store of a stopped root.

    FILE is checked first. The store before is kept beside it under another name. Nodes that run
    report again all that they hold, and no reading counts twice. What nodes had reported since
    FILE was made and hold no more is missing; so are orders given since, bans among them.
    """
    from submerge_aggregator.backup.checking import check_models, read_copy, refuse_different
    from submerge_operate.backup.restoring import put_in_place
    from submerge_operate.root_config import root_config

    loaded = root_config(config)
    copy = read_copy(file)
    found = check_models(copy, loaded)
    if not anyway:
        try:
            refuse_different(found)
        except SubmergeError as error:
            raise UsageError(f"{error}; add --anyway to restore it all the same") from error
    before = put_in_place(copy, loaded.store)
    _record(loaded, copy.identity)
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(copy.identity.wall))
    learnt = sum(each.learnt for each in found)
    click.echo(f"{loaded.store} is the store of {moment}, with {learnt:,} readings")
    if before is not None:
        click.echo(f"the store before is {before}")
    click.echo("start the root; then give again the orders since (submerge aggregator audit)")


def _record(config: AggregatorConfig, identity: CopyIdentity) -> None:
    """Add the order to the audit log, if there is one: it would be the aggregator's file."""
    from submerge_aggregator.audit.config import audit_path
    from submerge_aggregator.audit.entries import line_of
    from submerge_aggregator.audit.files import AuditFiles

    path = audit_path(config.audit, config.store)
    if path is None or not path.exists():
        return
    facts = {"by": f"uid {os.getuid()}", "verb": "restore", "as_of": identity.wall}
    files = AuditFiles(path)
    files.append(line_of("order", time.time(), facts))
    files.close()
