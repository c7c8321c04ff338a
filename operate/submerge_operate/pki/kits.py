"""`submerge pki kits`: kits for the nodes in a file."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from submerge_files.console.options import FILE, flag_option
from submerge_operate.pki import issuing
from submerge_operate.pki.issued import Entry, groups_of, role_of
from submerge_operate.pki.issuing import AS_JSON, DIRECTORY, LASTS, PASSPHRASE, KitRequest, open_pki

if TYPE_CHECKING:
    from submerge_operate.pki.nodes_csv import ListedNode


@click.command(epilog="Example: submerge pki kits nodes.csv")
@click.argument("file", type=FILE, metavar="NODES.csv")
@DIRECTORY
@LASTS
@flag_option("--renew", "Also renew kits with another role, other groups or hosts than the list.")
@PASSPHRASE
@AS_JSON
def command(
    file: Path,
    directory: Path,
    lasts: timedelta,
    renew: bool,
    passphrase_file: Path | None,
    as_json: bool,
) -> None:
    """Make a kit for each node of NODES.csv that has none.

    Columns: `node`; `hosts` of nodes with children, `role` and `groups` (see `submerge pki issue
    --help`). Several hosts or groups are separated by blanks. Without a role, a node with hosts
    is an aggregator, and another is a client. Other columns are ignored. The whole file is
    checked before anything is made. Run it again when nodes were added. `submerge pki renew` is
    for nodes that have a kit.
    """
    pki = open_pki(directory, passphrase_file)
    from submerge_operate.pki.nodes_csv import read_nodes

    listed = read_nodes(file)
    if listed.ignored:
        click.echo(f"{file}: ignored columns: {', '.join(listed.ignored)}", err=True)
    at = issuing.now()
    with pki.issuing() as entries:
        out = pki.revocations().nodes
        left = [entries[node] for node in listed.nodes if node in entries and node not in out]
        moved = [entry for entry in left if _differs(entry, listed.nodes[entry.node])]
        wanted = [
            KitRequest(node, each.hosts, lasts, each.permission)
            for node, each in listed.nodes.items()
            if node not in entries and node not in out
        ]
        if renew:
            left = [entry for entry in left if entry not in moved]
            wanted += [_as_listed(entry, listed.nodes[entry.node]) for entry in moved]
            moved = []
        made = issuing.make(pki, wanted, entries, at=at)
    for entry in moved:
        click.echo(_note(entry, listed.nodes[entry.node]), err=True)
    for node in listed.nodes:
        if node in out:
            click.echo(f"{node} is revoked, and gets no kit: take it out of the list", err=True)
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


def _differs(entry: Entry, listed: ListedNode) -> bool:
    """Return whether a list says something else of a node than its kit."""
    if set(listed.hosts) != set(entry.hosts):
        return True
    if not listed.named:
        return False  # a list from before there were roles
    return role_of(entry.permission) != listed.permission.role or set(
        groups_of(entry.permission)
    ) != set(listed.permission.groups)


def _as_listed(entry: Entry, listed: ListedNode) -> KitRequest:
    """Return the kit that a list asks for; a line without a role leaves the role as it is."""
    permission = listed.permission if listed.named else entry.permission
    return KitRequest(entry.node, listed.hosts, entry.lasts, permission)


def _note(entry: Entry, listed: ListedNode) -> str:
    """Return a note that a node's kit has other hosts, or another role, than the list."""
    node, options, kept = entry.node, [], []
    if set(listed.hosts) != set(entry.hosts):
        if not listed.hosts:
            return f"{node} keeps its hosts, {' '.join(entry.hosts)}: the list has none"
        kept.append(f"hosts, {' '.join(entry.hosts) or 'none'}")
        options += [f"--host {host}" for host in listed.hosts]
    if listed.named and listed.permission != entry.permission:
        groups = " ".join(groups_of(entry.permission)) or "all"
        kept.append(f"role, {role_of(entry.permission) or 'none'} in groups {groups}")
        options.append(f"--role {listed.permission.role}")
        options += [f"--group {group}" for group in listed.permission.groups]
        if not listed.permission.groups and groups_of(entry.permission):
            options.append("--every-group")
    return (
        f"{node} keeps its {' and its '.join(kept)}: for those in the list,"
        f" submerge pki renew {node} {' '.join(options)}"
    )
