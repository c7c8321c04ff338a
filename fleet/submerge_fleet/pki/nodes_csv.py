"""nodes.csv: the nodes that need kits, a line each, checked as a whole."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from submerge import UsageError
from submerge.protocol.settings import check_names
from submerge_fleet.pki.hosts import hosts_of

COLUMNS = ("node", "hosts")


class NodeList(NamedTuple):
    """Hosts of each node, in the order of the list (none for a client); ignored columns."""

    hosts: dict[str, tuple[str, ...]]
    ignored: list[str]


def read_nodes(path: Path) -> NodeList:
    """Return the nodes in a file: column `node`, and `hosts` separated by blanks.

    Raises
    ------
    UsageError
        If anything in it is wrong, with the file, the line and the column.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")  # spreadsheets write a byte order mark
    except OSError as error:
        raise UsageError(f"expected a list of nodes in {path}, got: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"expected text in UTF-8 in {path}, got other bytes") from error
    rows = _rows(path, text)
    line, heading = next(rows, (1, []))
    for name in COLUMNS:
        if heading.count(name) > 1:
            raise UsageError(f"{path}, line {line}: expected one column {name}, got several")
    if "node" not in heading:
        got = ", ".join(heading)[:80] or "nothing"
        raise UsageError(
            f"{path}, line {line}: expected a heading with a column `node`, comma-separated,"
            f" got {got}"
        )
    found: dict[str, tuple[str, ...]] = {}
    seen: dict[str, str] = {}
    for line, cells in rows:
        if len(cells) > len(heading):
            raise UsageError(
                f"{path}, line {line}: expected {len(heading)} cells, got {len(cells)}:"
                " write several hosts in one cell, separated by blanks"
            )
        fields = dict(zip(heading, cells, strict=False))
        node = fields.get("node", "")
        try:
            check_names(node)
            twin = seen.setdefault(node.lower(), f"{node} in line {line}")
            if twin != f"{node} in line {line}":
                raise UsageError(f"expected each node once, got {node}, and {twin}")
        except UsageError as error:
            raise UsageError(f"{path}, line {line}, column node: {error}") from error
        try:
            found[node] = hosts_of(fields.get("hosts", "").split())
        except UsageError as error:
            raise UsageError(f"{path}, line {line}, column hosts: {error}") from error
    if not found:
        raise UsageError(f"expected nodes in {path}, got only a heading")
    return NodeList(found, [name or "(unnamed)" for name in heading if name not in COLUMNS])


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
