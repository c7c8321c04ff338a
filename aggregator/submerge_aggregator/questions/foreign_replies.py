"""read_settings(), read_recent(), read_values(): what a node below replied about itself, checked.

It came as JSON inside a reply, whose bytes the border has not looked into. What passes can be shown
in a table, on a page, and in a picture: names and shapes are right, numbers are finite, text can be
printed in one line.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from submerge import PeerError
from submerge.client.monitor import MOST_ROWS
from submerge.client.recent_rows import BLAMED
from submerge.errors import Kind
from submerge.protocol.names import LAST_SECOND
from submerge_client.asked.shapes import LETTERS, RecentReply, ValuesReply
from submerge_client.asked.shown_settings import SettingsReply
from submerge_proto.wire.parts import MOST

DEEPEST = 12
"""Tables and lists inside each other."""

LARGEST = 2.0**1020
"""No number of ours is larger: differences of two are finite."""

T = TypeVar("T")


def read_settings(body: bytes, node: str, _: str = "") -> SettingsReply:
    """Return the settings that a reply holds.

    node : who was asked

    Raises PeerError if no honest node sends it.
    """
    reply = _decoded(body, SettingsReply, "settings")
    _check(reply.node == node, f"settings of {node}", "name")
    _check_text([reply.software])
    return msgspec.structs.replace(reply, settings=_printable(reply.settings, DEEPEST))


def read_recent(body: bytes, node: str, group: str) -> RecentReply:
    """Return the scores that a reply holds.

    node, group : who was asked

    Raises PeerError if no honest node sends it.
    """
    reply, shares = _decoded(body, RecentReply, "scores"), list[float]()
    _check((reply.node, reply.group) == (node, group), f"scores of {node} in {group}", "name")
    _check_times(reply.at)
    _check(0 <= reply.version <= MOST, "a version of a model", "range")
    _check_text(reply.channels)
    kinds = [each.kind for each in reply.kinds]
    _check(len(set(kinds)) == len(kinds), "each kind of score once", "malformed")
    lengths = {len(reply.at), len(reply.blame), *(len(each.values) for each in reply.kinds)}
    _check(len(lengths) == 1, "as many scores as rows", "malformed")
    for blamed in reply.blame:
        named = [each.channel for each in blamed]
        fits = len(named) <= BLAMED and all(0 <= each < len(reply.channels) for each in named)
        _check(fits and len(set(named)) == len(named), "channels that are named", "range")
        shares += [each.share for each in blamed]
    _check(all(0.0 <= each <= 1.0 for each in shares), "shares from 0 to 1", "range")
    for kind in reply.kinds:
        _check_numbers([0.0 if kind.limit is None else kind.limit, *kind.values])
    return reply


def read_values(body: bytes, node: str, group: str) -> ValuesReply:
    """Return the readings that a reply holds.

    node, group : who was asked

    Raises PeerError if no honest node sends it.
    """
    reply = _decoded(body, ValuesReply, "readings")
    _check((reply.node, reply.group) == (node, group), f"readings of {node} in {group}", "name")
    _check_times(reply.at)
    _check_text(text for each in reply.channels for text in (each.name, each.unit))
    tables, channels = (reply.values, reply.expected), len(reply.channels)
    fits = all(len(each) == channels for each in (*tables, reply.sd))
    fits = fits and all(len(row) == len(reply.at) for table in tables for row in table)
    _check(fits, "a reading of each channel at each row", "malformed")
    for numbers in (*reply.values, *reply.expected, reply.sd):
        _check_numbers(each for each in numbers if each is not None)
    _check(all(each is None or each >= 0 for each in reply.sd), "sd of at least 0", "range")
    return reply


def _decoded(body: bytes, kind: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise PeerError(f"expected {what}, got something else") from error


def _check(holds: bool, expected: str, kind: Kind) -> None:
    if not holds:
        raise PeerError(f"expected {expected}, got others", kind=kind)


def _check_times(at: list[float]) -> None:
    _check(len(at) <= MOST_ROWS, f"{MOST_ROWS} rows at most", "range")
    _check(all(0.0 <= each <= LAST_SECOND for each in at), "times that can be shown", "range")


def _check_numbers(numbers: Iterable[float]) -> None:
    # NaN is over every bound.
    _check(all(abs(each) <= LARGEST for each in numbers), "finite numbers", "not_finite")


def _check_text(texts: Iterable[str]) -> None:
    """Refuse control characters, marks of direction, and what is long."""
    fits = all(len(each) <= LETTERS and each.isprintable() for each in texts)
    _check(fits, "text of one line", "name")


def _printable(value: Any, deep: int) -> Any:
    """Return a setting with "?" for what cannot be printed, if it is no deeper than that."""
    if isinstance(value, str):
        return "".join(letter if letter.isprintable() else "?" for letter in value)
    _check(deep > 0, f"tables {DEEPEST} deep at most", "range")
    if isinstance(value, dict):
        return {_printable(key, 1): _printable(each, deep - 1) for key, each in value.items()}
    if isinstance(value, list):
        return [_printable(each, deep - 1) for each in value]
    if isinstance(value, int | float):
        _check_numbers([value])
    return value
