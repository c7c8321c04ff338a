"""read_page(): a page of nodes that an aggregator below has sent, checked.

It came as JSON inside a reply, whose bytes the border has not looked into. What passes can be shown
in a table, and page follows upon page: names rise, so that asking for the next one comes to an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec

from submerge import PeerError
from submerge.protocol.names import LAST_SECOND, is_name
from submerge_aggregator.questions.views import NodesPage

LARGEST = 2.0**63
"""No time or share of ours is larger."""


def read_page(body: bytes, group: str, after: str) -> NodesPage:
    """Return the page that a reply holds.

    group, after : as they were asked for

    Raises PeerError if no honest aggregator sends it.
    """
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
    if not all(abs(number) <= LARGEST for number in _floats(msgspec.to_builtins(page))):
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
