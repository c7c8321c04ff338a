"""Entries of the audit log as lines of JSON, and back.

    {"at": 1767225600.125, "event": "join", "node": "pump-3", "group": "pumps",
     "kind": "client", "incarnation": "...", "address": "ipv4:10.0.0.7:51234"}

A line is short whatever its facts are: they may come from a peer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from submerge_client.logs import plain

EVENTS = {
    "start": "the aggregator began to serve",
    "stop": "it ended",
    "join": "a node joined: again only from another address, or after an hour",
    "refused": "messages of one reason, `count` of them since the last such entry",
    "order": "an operator's order, with who gave it, and from where",
    "denied": "an operator's order that was refused, with who gave it, and from where",
    "tokens": "tokens of operators that were made or revoked, by name",
    "ban": "an order that shuts a node out, or lets it in again",
    "quarantine": "a node was put in quarantine by itself",
    "model": "a model was not published",
    "store": "the store began again, empty",
    "dropped": "entries that could not be written, `count` of them",
}
"""What an entry can be about."""

MOST_TEXT, MOST_ITEMS, MOST_FACTS = 200, 8, 24
"""Most characters of a fact, items of a list, and facts of an entry."""

MOST_LINE = 16_384
"""A longer line is none of ours."""

_encode = msgspec.json.Encoder().encode


def line_of(event: str, at: float, facts: Mapping[str, object]) -> bytes:
    """Return an entry as one line, with its line break."""
    short = {name: _short(plain(value)) for name, value in list(facts.items())[:MOST_FACTS]}
    return _encode({"at": round(at, 3), "event": event, **short}) + b"\n"


def entry_of(line: bytes) -> dict[str, Any] | None:
    """Return the entry in a line; None if it is none, or was cut short."""
    try:
        entry = json.loads(line) if len(line) <= MOST_LINE else None
    except ValueError:
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("event"), str):
        return None
    at = entry.get("at")
    return entry if isinstance(at, int | float) and not isinstance(at, bool) else None


def _short(value: Any) -> Any:
    if isinstance(value, str):
        # A lone surrogate has no bytes in UTF-8.
        text = value.encode("utf-8", "replace").decode()
        return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 3]}..."
    if isinstance(value, list):
        return [_short(each) for each in value[:MOST_ITEMS]]
    if isinstance(value, dict):
        return {_short(str(key)): _short(each) for key, each in list(value.items())[:MOST_ITEMS]}
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 63:
        return str(value)  # such as a serial number: readers of JSON round large integers
    return value
