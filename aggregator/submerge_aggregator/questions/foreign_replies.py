"""read_settings(), read_recent(), read_values(): what a node below replied about itself, checked.

It came as JSON inside a reply, whose bytes the border has not looked into. What passes can be shown
in a table, on a page, and in a picture: names and shapes are right, numbers are finite, text can be
printed in one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeVar

import msgspec

from submerge import PeerError
from submerge.client.monitor import MOST_ROWS
from submerge.client.recent_rows import BLAMED
from submerge.errors import Kind
from submerge.protocol.names import LAST_SECOND, is_name
from submerge_aggregator.history.answers import MOST_STEPS, ScoresAsked
from submerge_aggregator.history.file import ScoresPage
from submerge_aggregator.questions.views import NodesPage
from submerge_client.replies import LETTERS, RecentReply, SettingsReply, ValuesReply
from submerge_proto.wire.fields import MOST


def read_scores(body: bytes, asked: ScoresAsked) -> ScoresPage:
    try:
        page = msgspec.json.decode(body, type=ScoresPage)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError("expected a page of scores, got something else") from error
    steps = asked.steps
    if (page.group, page.step_s, page.first_s) != (asked.group, steps.step_s, steps.first_s):
        raise PeerError("expected the group and the steps that were asked for, got others")
    names = [asked.after, *(each.node for each in page.nodes)]
    ordered = all(before < name for before, name in pairwise(names))
    if not (is_name(page.aggregator) and ordered and all(map(is_name, names[1:]))):
        raise PeerError("expected nodes in the order of their names, got others")
    if asked.node and names[1:] not in ([], [asked.node]):
        raise PeerError(f"expected scores of {asked.node}, got others")
    if page.more and not page.nodes:
        raise PeerError("expected nodes before there are more, got none")
    lengths = {len(each.levels) for each in page.nodes}
    if len(lengths) > 1 or max(lengths, default=0) > MOST_STEPS:
        raise PeerError(f"expected {MOST_STEPS} levels of each node at most, got more, or uneven")
    return page


# What passes can be shown in a table, and page follows upon page: names rise, so that asking for
# the next one comes to an end.


LARGEST_PAGE = 2.0**63
"""No time or share of ours is larger."""


def read_page(body: bytes, group: str, after: str) -> NodesPage:
    try:
        page = msgspec.json.decode(body, type=NodesPage)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError("expected a page of nodes, got something else") from error
    names = [after, *(view.node for view in page.nodes)]
    ordered = all(before < name for before, name in pairwise(names))
    ours = all(view.group == group and is_name(view.node) for view in page.nodes)
    if not (page.group == group and is_name(page.aggregator) and ours and ordered):
        raise PeerError("expected nodes of one group in the order of their names, got others")
    if page.more and not page.nodes:
        raise PeerError("expected nodes before there are more, got none")
    if not all(abs(number) <= LARGEST_PAGE for number in _floats(msgspec.to_builtins(page))):
        raise PeerError("expected finite numbers, got others", kind="not_finite")
    if any(abs(view.since_s or 0.0) > LAST_SECOND for view in page.nodes):
        raise PeerError("expected a time that can be shown, got another", kind="range")
    return page


def _floats(value: Any) -> Iterator[float]:
    """Yield all numbers with a fraction; NaN is over every bound."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _floats(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _floats(each)


DEEPEST = 12
"""Tables and lists inside each other."""

LARGEST = 2.0**1020
"""No number of ours is larger: differences of two are finite."""

T = TypeVar("T")


def read_settings(body: bytes, node: str, _: str = "") -> SettingsReply:
    reply = _decoded(body, SettingsReply, "settings")
    _check(reply.node == node, f"settings of {node}", "name")
    _check_text([reply.software])
    return msgspec.structs.replace(reply, settings=_printable(reply.settings, DEEPEST))


def read_recent(body: bytes, node: str, group: str) -> RecentReply:
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
