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
from submerge_files.console.options import FILE, flag_option
from submerge_operate.pki import issuance
from submerge_operate.pki.authority import hosts_of
from submerge_operate.pki.directory import PkiDirectory
from submerge_operate.pki.issuance import AS_JSON, LASTS, check_serving, permission_of, pki_options
from submerge_operate.pki.issued import Entry, check_node

COLUMNS = ("node", "hosts", "role", "groups")


class NodeList(NamedTuple):
    """The kits that a list asks for, in its order; nodes whose role it names; ignored columns."""

    # Without a role an entry is an aggregator's if it has hosts, else a client's.
    nodes: dict[str, Entry]
    named: set[str]
    ignored: list[str]

    def wanted(self, entry: Entry) -> Entry:
        """Return what the list asks of a node that has a kit; without a role, its own stays."""
        listed = self.nodes[entry.node]
        allowed = listed.permission if entry.node in self.named else entry.permission
        return entry._replace(hosts=listed.hosts, permission=allowed)

    def differs(self, entry: Entry) -> bool:
        """Return whether it says something else of a node than its kit."""
        kits = (entry, self.wanted(entry))
        return len({(frozenset(e.hosts), e.role, frozenset(e.groups)) for e in kits}) > 1


def read_nodes(path: Path, lasts: timedelta) -> NodeList:
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
    found = NodeList({}, set(), [each or "(unnamed)" for each in heading if each not in COLUMNS])
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
        found.nodes[node] = _listed(fields, lasts, f"{path}, line {line}, column")
        if fields.get("role"):
            found.named.add(node)
    if not found.nodes:
        raise UsageError(f"expected nodes in {path}, got only a heading")
    return found


def _listed(fields: dict[str, str], lasts: timedelta, at: str) -> Entry:
    """Return the kit that a line asks for; `at` is for errors."""
    try:
        hosts = hosts_of(fields.get("hosts", "").split())
    except UsageError as error:
        raise UsageError(f"{at} hosts: {error}") from error
    try:
        groups = fields.get("groups", "").split()
        allowed = permission_of(fields.get("role", ""), groups, hosts=hosts)
        wanted = Entry(fields["node"], hosts, lasts, allowed)
        check_serving(wanted)
    except UsageError as error:
        raise UsageError(f"{at} role or groups: {error}") from error
    return wanted


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
@pki_options()
@LASTS
@flag_option("--renew", "Also renew kits with another role, other groups or hosts than the list.")
@AS_JSON
def command(pki: PkiDirectory, file: Path, lasts: timedelta, renew: bool, as_json: bool) -> None:
    """Make a kit for each node of NODES.csv that has none.

    Columns: `node`; `hosts` of nodes with children, `role` and `groups` (see `submerge pki issue
    --help`). Several hosts or groups are separated by blanks. Without a role, a node with hosts
    is an aggregator, and another is a client. Other columns are ignored. The whole file is
    checked before anything is made. Run it again when nodes were added. `submerge pki renew` is
    for nodes that have a kit.
    """
    listed = read_nodes(file, lasts)
    if listed.ignored:
        click.echo(f"{file}: ignored columns: {', '.join(listed.ignored)}", err=True)
    at = issuance.now()
    with pki.issuing() as entries:
        out = pki.revocations().nodes
        nodes = [each for node, each in listed.nodes.items() if node not in out]
        left = [entries[each.node] for each in nodes if each.node in entries]
        moved = [entry for entry in left if listed.differs(entry)]
        wanted = [each for each in nodes if each.node not in entries]
        if renew:
            left = [entry for entry in left if entry not in moved]
            wanted += map(listed.wanted, moved)
            moved = []
        made = issuance.make(pki, wanted, entries, at=at)
    for entry in moved:
        click.echo(_note(entry, listed.wanted(entry)), err=True)
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


def _note(entry: Entry, wanted: Entry) -> str:
    """Return a note that a node's kit has other hosts, or another role, than the list."""
    node, options, kept = entry.node, [], []
    if set(wanted.hosts) != set(entry.hosts):
        if not wanted.hosts:
            return f"{node} keeps its hosts, {' '.join(entry.hosts)}: the list has none"
        kept.append(f"hosts, {' '.join(entry.hosts) or 'none'}")
        options += [f"--host {host}" for host in wanted.hosts]
    if wanted.permission != entry.permission:
        groups = " ".join(entry.groups) or "all"
        kept.append(f"role, {entry.role or 'none'} in groups {groups}")
        options.append(f"--role {wanted.role}")
        options += [f"--group {group}" for group in wanted.groups]
        if not wanted.groups and entry.groups:
            options.append("--every-group")
    return (
        f"{node} keeps its {' and its '.join(kept)}: for those in the list,"
        f" submerge pki renew {node} {' '.join(options)}"
    )
