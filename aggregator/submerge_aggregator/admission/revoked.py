"""The list of what is revoked: serial numbers of certificates, and names of nodes.

    serial 5A0F12C4 # lost with the van
    node pump-7     # stolen

`submerge pki revoke` writes it. A serial number is hexadecimal, as `submerge pki show` prints it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from submerge import UsageError
from submerge.protocol.names import NAME_RULE, is_name


class RevokedList(NamedTuple):
    """Serial numbers of certificates, and names of nodes."""

    serials: frozenset[int] = frozenset()
    nodes: frozenset[str] = frozenset()


def parse_revoked(text: str) -> RevokedList:
    """Return the list in a text.

    Raises UsageError at the first line that is wrong, with its number: what cannot be read may be
    the line that matters.
    """
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
            case _:
                got = line.strip()[:80]
                raise UsageError(f"line {number}: expected serial HEX or node NAME, got {got!r}")
    return RevokedList(frozenset(serials), frozenset(nodes))
