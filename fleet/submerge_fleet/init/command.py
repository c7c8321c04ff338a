"""`submerge init`: a configuration of one machine, from what its source has."""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path

import click

from submerge import UsageError

FOLDER = "kept"
"""Where a machine keeps what it knows, beside its configuration."""


@click.command(
    epilog="""\b
Example: submerge init --from host --yes
         submerge init --from mqtt://192.168.1.5 --topics 'zigbee2mqtt/#'
         submerge init --from 'rtl_433 -F json'"""
)
@click.option(
    "--from",
    "source",
    metavar="SOURCE",
    help="host: this machine's own figures; mqtt://broker[:port] or mqtts://; recorded readings (a"
    " file, folder or pattern, or a model of `submerge fit`); or a program that prints lines of"
    " JSON, in quotes with its arguments.",
)
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    default=Path("box.toml"),
    show_default=True,
    help="The file to write.",
)
@click.option("--node", metavar="NAME", help="This machine's name; left out, its host name.")
@click.option("--yes", is_flag=True, help="Take what it proposes, and ask nothing.")
@click.option("--replace", is_flag=True, help="Write a file anew that is there.")
def command(source: str | None, path: Path, node: str | None, *, yes: bool, replace: bool) -> None:
    """Write the configuration of a machine that watches its own sensors, for `submerge up`.

    It looks at the source, lists its channels and what it would leave out, and asks before it
    writes. Without --from it asks for the source as well.
    """
    from submerge_fleet.init.listing import lines_of
    from submerge_fleet.init.saving import check_place, save
    from submerge_fleet.init.text import box_text

    check_place(path, replace=replace)
    asks = not yes and sys.stdin.isatty()
    if not asks and not yes:
        raise UsageError(
            "expected --yes, since there is no terminal to ask at: it takes what is proposed"
        )
    if source is None:
        raise UsageError("expected --from SOURCE with --yes: host, a broker, a file or a program")
    from submerge_fleet.init.host import propose_host

    proposal = propose_host()
    text = box_text(proposal, node=node or _host_name(), folder=FOLDER, path=str(path))
    for line in lines_of(proposal):
        click.echo(line)
    if asks and not click.confirm(f"Write {path}?", default=True):
        return
    save(path, text)
    pipe = f"{proposal.pipe} | " if proposal.pipe else ""
    click.echo(f"{path} is written. Next: {pipe}submerge up --config {path}")


def _host_name() -> str:
    """Return this machine's name, as a node may have it."""
    name = re.sub("[^A-Za-z0-9-]+", "-", socket.gethostname().split(".")[0]).strip("-")[:58]
    return name or "box"
