"""`submerge kits`: kits for the nodes in a file."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from submerge_fleet.console.options import FILE
from submerge_fleet.console.progress import advancing
from submerge_fleet.pki import issuing
from submerge_fleet.pki.issued import Entry
from submerge_fleet.pki.issuing import AS_JSON, DIRECTORY, LASTS, PASSPHRASE, KitRequest, open_pki


@click.command(epilog="Example: submerge kits nodes.csv")
@click.argument("file", type=FILE, metavar="NODES.csv")
@DIRECTORY
@LASTS
@PASSPHRASE
@AS_JSON
def command(
    file: Path, directory: Path, lasts: timedelta, passphrase_file: Path | None, as_json: bool
) -> None:
    """Make a kit for each node of NODES.csv that has none.

    Columns: `node`, and `hosts` (separated by blanks) of nodes with children. Other columns are
    ignored. The whole file is checked before anything is made. Run it again when nodes were
    added. `submerge pki renew` is for nodes that have a kit.
    """
    pki = open_pki(directory, passphrase_file)
    from submerge_fleet.pki.nodes_csv import read_nodes

    listed = read_nodes(file)
    if listed.ignored:
        click.echo(f"{file}: ignored columns: {', '.join(listed.ignored)}", err=True)
    at = issuing.now()
    with pki.issuing() as entries:
        left = [entries[node] for node in listed.hosts if node in entries]
        wanted = [
            KitRequest(node, hosts, lasts)
            for node, hosts in listed.hosts.items()
            if node not in entries
        ]
        made: list[Entry] = []
        if wanted:
            with advancing("kits", len(wanted)) as advance:
                made = issuing.make(pki, wanted, entries, at=at, advance=advance)
    for entry in left:
        if set(hosts := listed.hosts[entry.node]) != set(entry.hosts):
            click.echo(_hosts_note(entry, hosts), err=True)
    if as_json:
        issuing.print_json(pki, at, {"made": made, "left": left})
        return
    click.echo(f"{pki.kits}: kits made: {len(made)}, left as they were: {len(left)}")
    ending = sum(1 for entry in left if entry.state(at))
    if ending:
        click.echo(f"ending soon, or ended: {ending} (submerge pki renew --all)")
    gone = sum(1 for entry in left if not pki.kit(entry.node).exists())
    if gone:
        click.echo(f"no longer there: {gone} (submerge pki renew NODE makes a new one)")


def _hosts_note(entry: Entry, hosts: tuple[str, ...]) -> str:
    """Return a note that a node's kit has other hosts than the list."""
    if not hosts:
        return f"{entry.node} keeps its hosts, {' '.join(entry.hosts)}: the list has none"
    has = " ".join(entry.hosts) or "none"
    options = " ".join(f"--host {host}" for host in hosts)
    return (
        f"{entry.node} keeps its hosts, {has}: for those in the list,"
        f" submerge pki renew {entry.node} {options}"
    )
