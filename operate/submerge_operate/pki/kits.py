"""`submerge pki kits`: kits for the nodes in a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import click

from submerge import UsageError
from submerge.protocol.permission import Permission
from submerge_files.console.options import FILE, flag_option
from submerge_operate.pki import issuance
from submerge_operate.pki.issuance import (
    AS_JSON,
    DIRECTORY,
    LASTS,
    PASSPHRASE,
    KitRequest,
    check_serving,
    open_pki,
    permission_of,
)
from submerge_operate.pki.issued import Entry, check_node, groups_of, role_of

COLUMNS = ("node", "hosts", "role", "groups")


class ListedNode(NamedTuple):
    """What a list says of a node.

    hosts : None for a client.
    permission : An aggregator's if the list has hosts and no role, else a client's.
    named : Whether the list names its role; a list from before there were roles names none.
    """

    hosts: tuple[str, ...]
    permission: Permission
    named: bool


class NodeList(NamedTuple):
    """What is said of each node, in the order of the list; ignored columns."""

    nodes: dict[str, ListedNode]
    ignored: list[str]


def read_nodes(path: Path) -> NodeList:
    """Return the nodes in a file: columns `node` and `role`, `hosts` and `groups` with blanks."""
    try:
        text = path.read_bytes().decode("utf-8-sig")  # spreadsheets write a byte order mark
    except OSError as error:
        raise UsageError(f"expected a list of nodes in {path}, got: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"expected text in UTF-8 in {path}, got other bytes") from error
    rows = _rows(path, text)
    line, heading = next(rows, (1, []))
    heading = [name.lower() for name in heading]  # as a spreadsheet may begin them
    for name in COLUMNS:
        if heading.count(name) > 1:
            raise UsageError(f"{path}, line {line}: expected one column {name}, got several")
    for name in heading:
        meant = get_close_matches(name, COLUMNS, 1, 0.75)
        if name not in COLUMNS and meant:
            # Ignored, `group` would give each node a kit that holds for all groups.
            raise UsageError(
                f"{path}, line {line}: expected the column {meant[0]}, got {name}: rename it"
            )
    if "node" not in heading:
        got = ", ".join(heading)[:80] or "nothing"
        raise UsageError(
            f"{path}, line {line}: expected a heading with a column `node`, comma-separated,"
            f" got {got}"
        )
    found: dict[str, ListedNode] = {}
    seen: dict[str, str] = {}
    for line, cells in rows:
        if len(cells) > len(heading):
            raise UsageError(
                f"{path}, line {line}: expected {len(heading)} cells, got {len(cells)}:"
                " write several hosts or groups in one cell, separated by blanks"
            )
        fields = dict(zip(heading, cells, strict=False))
        node = fields.get("node", "")
        try:
            check_node(node)
            twin = seen.setdefault(node.lower(), f"{node} in line {line}")
            if twin != f"{node} in line {line}":
                raise UsageError(f"expected each node once, got {node}, and {twin}")
        except UsageError as error:
            raise UsageError(f"{path}, line {line}, column node: {error}") from error
        found[node] = _listed(fields, f"{path}, line {line}, column")
    if not found:
        raise UsageError(f"expected nodes in {path}, got only a heading")
    return NodeList(found, [name or "(unnamed)" for name in heading if name not in COLUMNS])


def _listed(fields: dict[str, str], at: str) -> ListedNode:
    """Return what a line says of its node; `at` is for errors."""
    from submerge_operate.pki.authority import hosts_of

    role = fields.get("role", "")
    try:
        hosts = hosts_of(fields.get("hosts", "").split())
    except UsageError as error:
        raise UsageError(f"{at} hosts: {error}") from error
    try:
        permission = permission_of(role, fields.get("groups", "").split(), hosts=hosts)
        check_serving(fields["node"], hosts, permission)
    except UsageError as error:
        raise UsageError(f"{at} role or groups: {error}") from error
    return ListedNode(hosts, permission, named=bool(role))


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield lines that are not blank, with their numbers."""
    lines = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    try:
        for row in lines:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield lines.line_num, cells
    except csv.Error as error:
        raise UsageError(f"{path}, line {lines.line_num}: {error}") from error


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

    listed = read_nodes(file)
    if listed.ignored:
        click.echo(f"{file}: ignored columns: {', '.join(listed.ignored)}", err=True)
    at = issuance.now()
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
        made = issuance.make(pki, wanted, entries, at=at)
    for entry in moved:
        click.echo(_note(entry, listed.nodes[entry.node]), err=True)
    for node in listed.nodes:
        if node in out:
            click.echo(f"{node} is revoked, and gets no kit: take it out of the list", err=True)
    if as_json:
        issuance.print_json(pki, at, {"made": made, "left": left})
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
