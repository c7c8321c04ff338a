"""The roster, and the list of what is revoked: files of names, as an operator keeps them.

    node,role,groups
    pump-1,client,pumps

An empty role leaves the role open; no groups are all groups (docs/certificates.md).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from typing import NamedTuple

from submerge import UsageError
from submerge.protocol.names import NAME_RULE, is_name
from submerge.protocol.permission import ROLES, Role


class RevokedList(NamedTuple):
    """Serial numbers of certificates, and names of nodes."""

    serials: frozenset[int] = frozenset()
    nodes: frozenset[str] = frozenset()


def parse_revoked(text: str) -> RevokedList:
    """Return the list in a text; UsageError, with its number, at the first line that is wrong."""
    serials, nodes = set[int](), set[str]()
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        words = line.partition("#")[0].split()
        match words:
            case []:
                continue
            case ["serial", digits]:
                if not re.fullmatch(r"[0-9A-Fa-f][0-9A-Fa-f:]{0,58}", digits):
                    why = f"expected a serial number, hexadecimal, got {digits!r}"
                    raise UsageError(f"line {number}: {why}")
                serials.add(int(digits.replace(":", ""), 16))
            case ["node", name]:
                if not is_name(name):
                    raise UsageError(f"line {number}: a name is {NAME_RULE}, got {name!r}")
                nodes.add(name)
            # What cannot be read may be the line that matters.
            case _:
                got = line.strip()[:80]
                raise UsageError(f"line {number}: expected serial HEX or node NAME, got {got!r}")
    return RevokedList(frozenset(serials), frozenset(nodes))


HEADER = ["node", "role", "groups"]


class RosterEntry(NamedTuple):
    """What the roster says of a node; role None: nothing."""

    role: Role | None
    groups: tuple[str, ...] = ()


def parse_roster(text: str) -> Mapping[str, RosterEntry]:
    lines = csv.reader(text.removeprefix("\ufeff").splitlines())
    try:
        header, *rows = [*lines] or [[]]
    except csv.Error as error:
        raise UsageError(f"line {lines.line_num}: {error}") from error
    if [each.strip() for each in header] != HEADER:
        raise UsageError(f"line 1: expected {','.join(HEADER)}, got {','.join(header)[:80]!r}")
    found: dict[str, RosterEntry] = {}
    for number, cells in enumerate(rows, 2):
        if not any(cell.strip() for cell in cells):
            continue
        try:
            node, entry = _entry(cells)
        except UsageError as error:
            raise UsageError(f"line {number}: {error}") from error
        if node in found:
            raise UsageError(f"line {number}: expected each node once, got {node} again")
        found[node] = entry
    return found


def _entry(cells: list[str]) -> tuple[str, RosterEntry]:
    if len(cells) != len(HEADER):
        raise UsageError(f"expected {len(HEADER)} cells, got {len(cells)}")
    node, word, groups = cells[0].strip(), cells[1].strip(), cells[2].split()
    role: Role | None = next((each for each in ROLES if each == word), None)
    if word and role is None:
        raise UsageError(f"expected a role of {', '.join(ROLES)}, or none, got {word!r}")
    for name in (node, *groups):
        if not is_name(name):
            raise UsageError(f"a name is {NAME_RULE}, got {name!r}")
    return node, RosterEntry(role, tuple(groups))
