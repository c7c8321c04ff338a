"""read_settings(): what a node below replied about itself, checked.

It came as JSON inside a reply, whose bytes the border has not looked into. What passes can be shown
in a table or on a page: names and shapes are right, numbers are finite, text is printable.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from submerge import PeerError
from submerge_client.asked.shown_settings import SettingsReply

DEEPEST = 12
"""Tables and lists inside each other."""

LARGEST = 2.0**1000
"""Settings may have any number of a configuration."""

T = TypeVar("T")


def read_settings(body: bytes, node: str) -> SettingsReply:
    """Return the settings that a reply holds.

    node : who was asked

    Raises
    ------
    PeerError
        If no honest node sends it.
    """
    reply = decoded_reply(body, SettingsReply, "settings")
    if reply.node != node:
        raise PeerError(f"expected settings of {node}, got others", kind="name")
    if not reply.software.isprintable() or len(reply.software) > MOST_LETTERS:
        raise PeerError("expected a version, got something else", kind="name")
    return msgspec.structs.replace(reply, settings=_plain(reply.settings, DEEPEST))


MOST_LETTERS = 200
"""Of a version."""


def decoded_reply(body: bytes, kind: type[T], what: str) -> T:
    """Return a reply as what it should be; nothing of it is checked but its types.

    Raises
    ------
    PeerError
        If it is something else.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise PeerError(f"expected {what}, got something else") from error


def is_printable(text: str, letters: int) -> bool:
    """Return whether a text can be shown in one line: no control, and no mark of direction."""
    return len(text) <= letters and text.isprintable()


def _plain(value: Any, deep: int) -> Any:
    """Return a setting whose text is printable, or refuse it."""
    if isinstance(value, str):
        # An honest name of a channel may have anything in it: it is shown, without the letters.
        return "".join(letter if letter.isprintable() else "?" for letter in value)
    if isinstance(value, dict | list) and not deep:
        raise PeerError(f"expected tables {DEEPEST} deep at most, got deeper ones")
    if isinstance(value, dict):
        return {_plain(key, deep): _plain(each, deep - 1) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, deep - 1) for each in value]
    if isinstance(value, int | float) and not abs(value) <= LARGEST:
        raise PeerError("expected finite numbers, got others", kind="not_finite")
    return value
