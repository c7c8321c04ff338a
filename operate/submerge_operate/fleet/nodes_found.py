"""Where a node reports: here, or to an aggregator below; and how an order gets to it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from submerge.errors import SubmergeError, UsageError
from submerge_files.console.admin_client import AdminClient
from submerge_operate.fleet.nodes_below import nodes_below, page_of

if TYPE_CHECKING:
    from submerge_aggregator.questions.views import NodeView

WITHIN_S, AGAIN_S = 5.0, 0.25
"""How long an order that goes down is looked after, and how often."""


class FoundNode(NamedTuple):
    """A node.

    under : the aggregators above it, as in `PlacedNode`; empty: it reports here
    view : None of a node that is only remembered
    """

    node: str
    group: str
    under: str
    view: NodeView | None


def find(admin: AdminClient, node: str, group: str | None) -> FoundNode:
    """Return where a node is, or was.

    Raises
    ------
    UsageError
        If it is nowhere, or in several groups.
    """
    groups = admin.groups() if group is None else [group]
    query = {"node": node} | ({} if group is None else {"group": group})
    views = json.loads(admin.get("nodes", **query))
    here = [str(view["group"]) for view in views if view["rows"] or view["sealed"]]
    if here:
        return FoundNode(node, _only(here, node), "", None)
    placed = [
        each for each in nodes_below(admin, groups).nodes if each.under and each.view.node == node
    ]
    if placed:
        _only([each.view.group for each in placed], node)
        last = min(placed, key=_silent_s)  # a node that has moved is where it was heard last
        return FoundNode(node, last.view.group, last.under, last.view)
    # One that is forgotten is in no list, and a ban or a quarantine may be all that there is.
    left = [str(view["group"]) for view in views] or [
        each for each in groups if admin.knows(each, node)
    ]
    if not left:
        raise UsageError(f"no group has a node {node}, here or below ({', '.join(groups)})")
    return FoundNode(node, _only(left, node), "", None)


def order(
    admin: AdminClient,
    found: FoundNode,
    verb: str,
    has_happened: Callable[[NodeView | None], bool],
    **query: str,
) -> tuple[bytes, str]:
    """Give an order; return the answer, and how far it has got, in words.

    has_happened : whether a node shows that the order was carried out; None: it is in no list
    """
    query |= {"anyway": "1"} if found.under else {}
    answer = admin.post("nodes", found.group, found.node, verb, **query)
    if not found.under:
        return answer, ""
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        try:
            page = page_of(admin, found.group, found.under, node=found.node)
        except SubmergeError:
            break  # it cannot be asked; the order goes on
        if has_happened(page.nodes[0] if page.nodes else None):
            return answer, f", at work at {found.under}"
        time.sleep(AGAIN_S)
    return answer, f"; the order is on its way to {found.under}"


def _only(groups: list[str], node: str) -> str:
    if len(set(groups)) > 1:
        several = ", ".join(sorted(set(groups)))
        raise UsageError(f"expected --group: {node} is in several, {several}")
    return groups[0]


def _silent_s(placed: tuple[str, NodeView]) -> float:
    return min((row.silent_s for row in placed[1].rows), default=float("inf"))
