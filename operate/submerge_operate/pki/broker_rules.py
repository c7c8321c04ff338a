"""`submerge pki acl`: Mosquitto's rules, and the aggregators' roster, from the issued kits."""

from __future__ import annotations

from pathlib import Path

import click

from submerge_files.console.options import FILE
from submerge_operate.pki.acl import acl_text, roster_text
from submerge_operate.pki.files import PUBLIC, replace_file
from submerge_operate.pki.issuing import DIRECTORY, open_pki

FOR_BROKER = 0o640
"""Mosquitto warns of a file that everybody can read; its group is Mosquitto's."""


@click.command(epilog="Example: submerge pki acl --out /etc/mosquitto/acl --roster roster.csv")
@DIRECTORY
@click.option("--out", type=FILE, help="Where to write it.  [default: standard output]")
@click.option(
    "--roster",
    type=FILE,
    help="Also write a list for aggregators ([listen] roster): node, role, groups.",
)
def acl(directory: Path, out: Path | None, roster: Path | None) -> None:
    """Write Mosquitto's access control list: a block for each kit, by its role and groups.

    A client writes below its own name, and reads answers to itself and models of its groups. An
    aggregator also owns the topics below its name. A reader and an operator read models. Kits
    without a role have what deploy/mosquitto/acl grants all nodes. Revoked nodes have nothing.
    Write it again after `issue`, `renew` and `revoke`, and send Mosquitto SIGHUP.
    """
    pki = open_pki(directory)
    record, revoked = pki.record(), pki.revocations().nodes
    entries = [record[node] for node in sorted(record)]
    text = acl_text(entries, revoked)
    if out is None:
        click.echo(text, nl=False)
    else:
        replace_file(out, text.encode(), FOR_BROKER)
    if roster is not None:
        replace_file(roster, roster_text(entries, revoked).encode(), PUBLIC)
