"""nodes.csv: who is to have a kit, a line each, all judged before anything is made of them."""

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


class Listed(NamedTuple):
    """What a list says.

    Attributes
    ----------
    hosts : dict
        Of each node, in the order of the list; none for a client.
    ignored : list of str
        Columns that say nothing to us.
    """

    hosts: dict[str, tuple[str, ...]]
    ignored: list[str]


def read_nodes(path: Path) -> Listed:
    """Return the nodes that a file lists: column `node`, and `hosts` with blanks between.

    Raises
    ------
    UsageError
        If anything in it is wrong; it names the file, the line and the column.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")  # as spreadsheets write it, too
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
            f"{path}, line {line}: expected a heading with a column `node`, commas between,"
            f" got {got}"
        )
    found: dict[str, tuple[str, ...]] = {}
    seen: dict[str, str] = {}
    for line, cells in rows:
        if len(cells) > len(heading):
            raise UsageError(
                f"{path}, line {line}: expected {len(heading)} cells, got {len(cells)}:"
                " several hosts stand in one cell, blanks between"
            )
        reported = dict(zip(heading, cells, strict=False))
        node = reported.get("node", "")
        try:
            check_names(node)
            twin = seen.setdefault(node.lower(), f"{node} in line {line}")
            if twin != f"{node} in line {line}":
                raise UsageError(f"expected each node once, got {node}, and {twin}")
        except UsageError as error:
            raise UsageError(f"{path}, line {line}, column node: {error}") from error
        try:
            found[node] = hosts_of(reported.get("hosts", "").split())
        except UsageError as error:
            raise UsageError(f"{path}, line {line}, column hosts: {error}") from error
    if not found:
        raise UsageError(f"expected nodes in {path}, got a heading alone")
    return Listed(found, [name or "(unnamed)" for name in heading if name not in COLUMNS])


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield what is not blank, with its line."""
    lines = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    try:
        for row in lines:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield lines.line_num, cells
    except csv.Error as error:
        raise UsageError(f"{path}, line {lines.line_num}: {error}") from error
