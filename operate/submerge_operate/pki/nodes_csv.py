"""nodes.csv: the nodes that need kits, a line each, checked as a whole."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from submerge import UsageError
from submerge.protocol.permission import Permission
from submerge_operate.pki.hosts import hosts_of
from submerge_operate.pki.issued import check_node
from submerge_operate.pki.roles import check_serving, permission_of

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
    """Return the nodes in a file: columns `node` and `role`, `hosts` and `groups` with blanks.

    Raises UsageError if anything in it is wrong, with the file, the line and the column.
    """
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
