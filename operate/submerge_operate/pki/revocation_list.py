"""The list of what is revoked: a text file that aggregators read (`[security] revoked`).

    serial 3F0A... # 2026-05-01T10:00:00Z stolen from the north gate
    node pump-3    # 2026-05-01T10:00:00Z stolen from the north gate

`serial` is one certificate, and `node` every certificate of that name. Blank lines and lines that
begin with # are for people. A person may edit the file: other lines stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from submerge import UsageError
from submerge_aggregator.admission.roster import parse_revoked as read_revoked

HEAD = "# Revoked certificates (serial HEX) and nodes (node NAME); submerge pki revoke adds lines."

SERIAL = re.compile(r"[0-9A-Fa-f]{1,40}")
"""Hexadecimal digits; RFC 5280 allows 20 bytes."""


class RevocationList(NamedTuple):
    """The list; `lines` are as in the file, without line ends."""

    lines: tuple[str, ...] = (HEAD,)
    serials: frozenset[int] = frozenset()
    nodes: frozenset[str] = frozenset()

    @property
    def text(self) -> bytes:
        """The file."""
        return "".join(f"{line}\n" for line in self.lines).encode()

    def adding(
        self, *, serials: Iterable[str] = (), nodes: Iterable[str] = (), comment: str
    ) -> RevocationList:
        """Return the list with more on it; what is on it already is not added again."""
        lines = list(self.lines)
        for serial in dict.fromkeys(serials):
            if int(serial, 16) not in self.serials:
                lines.append(f"serial {serial} # {comment}")
        lines += [f"node {node} # {comment}" for node in nodes if node not in self.nodes]
        return parse_revoked("\n".join(lines), "what is revoked")

    def reinstating(self, node: str) -> RevocationList:
        """Return the list without a node; its certificates' serial numbers stay on it."""
        kept = [line for line in self.lines if node not in read_revoked(line).nodes]
        return parse_revoked("\n".join(kept), "what is revoked")


def parse_revoked(text: str, whence: str) -> RevocationList:
    """Return the list in a text."""
    # Any other line is refused: half a list would let in the other half.
    try:
        serials, nodes = read_revoked(text)
    except UsageError as error:
        raise UsageError(f"{whence}, {error}") from error
    return RevocationList(tuple(map(str.rstrip, text.splitlines())), serials, nodes)


def serial_text(text: str) -> str:
    """Return a serial number in the form of the list, from OpenSSL's forms as well."""
    digits = text.strip().removeprefix("0x").replace(":", "")
    if not SERIAL.fullmatch(digits):
        raise UsageError(f"expected a serial number in hexadecimal digits, got {text[:80]!r}")
    return f"{int(digits, 16):040X}"
