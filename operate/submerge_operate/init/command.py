"""`submerge init`: a configuration of one machine, from what its source has."""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from submerge import UsageError
from submerge.protocol.names import is_name
from submerge_client.config.links import BROKERS
from submerge_client.files import atomic_write


def check_place(path: Path, *, replace: bool) -> None:
    """Refuse a file that could not be written, before anything is listened to."""
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"--config must be a file, got the folder {path}: add a name, box.toml")
    if path.exists() and not replace:
        raise UsageError(
            f"{path} is there already: expected a new file; add --replace to write over it,"
            " or name another with --config"
        )
    if not folder.is_dir():
        raise UsageError(f"expected the folder of {path}, got none: make it (mkdir -p {folder})")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            f"expected to write {path}, got no permission in {folder.absolute()}:"
            " change to a folder of yours, or name one with --config"
        )


def save(path: Path, text: str) -> None:
    """Write a configuration that `submerge up` loads, whole or not at all."""
    _check(text)
    try:
        atomic_write(path, text.encode())
    except OSError as error:
        raise UsageError(
            f"expected to write {path}, got: {error.strerror}: name another place with --config"
        ) from error


def _check(text: str) -> None:
    """Load it from a file of its own, without the environment, which may not be that of `up`."""
    from submerge_operate.up.config import load

    with tempfile.TemporaryDirectory(prefix="submerge-init-") as folder:
        path = Path(folder) / "box.toml"
        path.write_text(text, encoding="utf-8")
        try:
            load(path, {})
        except UsageError as error:
            why = str(error).replace(f"{path}: ", "")
            raise UsageError(f"this cannot be configured: {why}") from error


FOLDER = "kept"  # where a machine keeps what it knows, beside its configuration

FILE = click.Path(path_type=Path, dir_okay=False)

LONGEST_NODE = 59  # characters: its root's name is longer

QUESTION = """\
Where do readings come from? host: this machine's own figures; mqtt://broker; recorded readings;
or a program that prints lines of JSON, with its arguments"""


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
@click.option(
    "--topics",
    metavar="PATTERN",
    multiple=True,
    help="With a broker: where devices publish, as in 'zigbee2mqtt/#'. Several times for several;"
    " left out, all topics are listened to.",
)
@click.option("--username", metavar="NAME", help="With a broker that asks for one.")
@click.option("--password-file", type=FILE, help="A file that holds the password.")
@click.option("--ca", type=FILE, help="With mqtts://: certificates of trusted authorities.")
@click.option("--cert", type=FILE, help="With mqtts://: this machine's certificate.")
@click.option("--key", type=FILE, help="With mqtts://: the certificate's key.")
@click.option("--states", is_flag=True, help="With a broker: take on and off, true and false, too.")
@click.option("--rebirth", is_flag=True, help="With Sparkplug B: ask edge nodes for their names.")
@click.option(
    "--listen",
    "listen_s",
    metavar="SECONDS",
    type=click.FloatRange(0.1, 86400.0),
    help="How long a broker or a program is listened to; left out, a broker until nothing new came"
    " for 20 s, a program for 10 s.",
)
@click.option("--yes", is_flag=True, help="Take what it proposes, and ask nothing.")
@click.option("--replace", is_flag=True, help="Replace a file that is there.")
def command(
    source: str | None, path: Path, node: str | None, *, yes: bool, replace: bool, **settings: Any
) -> None:
    """Write the configuration of a machine that watches its own sensors, for `submerge up`.

    It looks at the source, lists its channels and what it would leave out, and asks before it
    writes. Without --from it asks for the source as well.
    """
    from submerge_operate.init.mqtt import BrokerOptions
    from submerge_operate.init.proposal import box_text, lines_of
    from submerge_operate.init.sources import check_source, propose

    if source is not None:
        check_source(source)
    check_place(path, replace=replace)
    asks = not yes and sys.stdin.isatty()
    if not asks and not yes:
        raise UsageError(
            "expected --yes, since there is no terminal to ask at: it takes what is proposed"
        )
    if source is None:
        if not asks:
            raise UsageError(
                "expected --from SOURCE beside --yes: host, mqtt://broker, a file or a program"
            )
        source = click.prompt(QUESTION, default="host")
        if source.partition("://")[0] in BROKERS and not settings["topics"]:
            settings["topics"] = (click.prompt("Topics to listen to", default="#"),)
    if node is None:
        node = click.prompt("This machine's name", default=_host_name()) if asks else _host_name()
    if not is_name(node) or len(node) > LONGEST_NODE:
        raise UsageError(
            f"--node: expected a name of at most {LONGEST_NODE} of A-Z a-z 0-9 . _ -, got {node!r}"
        )
    options = BrokerOptions("", **settings)
    if source.partition("://")[0] not in BROKERS:
        _check_unused(settings)
    proposal = propose(source, options)
    for line in lines_of(proposal):
        click.echo(line)
    page = find_spec("jinja2") is not None
    text = box_text(proposal, node=node, folder=FOLDER, path=str(path), page=page)
    if asks and not click.confirm(f"Write {path}?", default=True):
        click.echo("nothing is written")
        return
    save(path, text)
    pipe = f"{proposal.pipe} | " if proposal.pipe else ""
    click.echo(f"{path} is written. Next: {pipe}submerge up --config {shlex.quote(str(path))}")


def _check_unused(settings: Mapping[str, Any]) -> None:
    """Refuse options of a broker beside another source."""
    for name, value in settings.items():
        if name != "listen_s" and value:
            option = name.replace("_", "-")
            raise UsageError(
                f"--{option}: expected a broker with it, --from mqtt://...: leave it out"
            )


def _host_name() -> str:
    """Return this machine's name, as a node may have it."""
    name = re.sub("[^A-Za-z0-9-]+", "-", socket.gethostname().split(".")[0]).strip("-")[
        :LONGEST_NODE
    ]
    return name or "box"
