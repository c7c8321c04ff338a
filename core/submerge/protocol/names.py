"""Names of nodes, groups and fleets: they fit a certificate, a topic and a file. Imports none."""

from __future__ import annotations

import base64
import builtins
import re
from typing import Protocol


class RandomSource(Protocol):
    """Draws numbers. Two nodes never share the state of one."""

    def random(self) -> float:
        """Return a number of [0, 1)."""

    def integers(self, high: int, /) -> int:
        """Return a whole number of [0, high), where `high` is 1 to 2**63."""

    def bytes(self, length: int, /) -> builtins.bytes:
        """Return that many random bytes."""


NAME = r"[A-Za-z0-9._-]{1,64}"  # what a name consists of, as a regular expression without anchors
NAME_RULE = "1 to 64 of A-Z a-z 0-9 . _ -"  # the same for people
SERVER_DOMAIN = ".submerge.invalid"  # no real name ends so (RFC 2606): it is no other machine's

PLAIN_LABEL, ENCODED = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"), "x--"

RESERVED = frozenset(
    (
        *("alarm", "answer", "config", "down", "hello", "join", "joined", "model", "report"),
        *("schema", "score", "state", "submerge", "up", "v1"),
    )
)
"""Words of MQTT topics. A broker's rules grant a node what is below its own name, and a node of
such a name could write, or read, what is below the word: the scores of all others."""

LAST_SECOND = 253_402_300_799
"""The last second of the year 9999, in Unix seconds: calendars and certificates end there."""


def is_name(text: str) -> bool:
    """Return whether a text can name a node, a group or a fleet."""
    return re.fullmatch(NAME, text) is not None


def is_reserved(text: str) -> bool:
    """Return whether a name is a word of MQTT topics, in capitals or not; no node has it."""
    return text.lower() in RESERVED


def server_name(node: str) -> str:
    """Return the DNS name under which a node's children check its certificate."""
    # DNS knows no capitals, no underscores and 63 letters a label: other names are in base 32, and
    # two nodes never share a name.
    plain = PLAIN_LABEL.fullmatch(node) is not None and not node.startswith(ENCODED)
    if plain:
        return f"{node}{SERVER_DOMAIN}"
    text = base64.b32encode(node.encode()).decode().rstrip("=").lower()
    labels = [text[at : at + 56] for at in range(0, len(text), 56)]
    return f"{ENCODED}{'.'.join(labels)}{SERVER_DOMAIN}"
