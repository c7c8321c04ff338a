"""Where a node reports: here, or to an aggregator below; and how an order gets to it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from submerge.errors import SubmergeError, UsageError
from submerge.protocol.messages import DEEPEST
from submerge_files.console.admin_client import AdminClient, value_in
from submerge_files.console.options import (
    Decorator,
    aggregator_options,
    flag_option,
    json_option,
    together,
)
from submerge_files.console.units import ago

if TYPE_CHECKING:
    from submerge_aggregator.questions.views import NodesPage, NodeView


class PlacedNode(NamedTuple):
    under: str  # their names, from the one below the aggregator that is asked, with slashes between
    view: NodeView


class NodesBelow(NamedTuple):
    """Nodes in the order of the tree, and the aggregators that said nothing, a line each."""

    nodes: list[PlacedNode]
    silent: list[str]


def nodes_below(admin: AdminClient, groups: Sequence[str]) -> NodesBelow:
    tree = NodesBelow([], [])
    for group in groups:
        _ask(admin, group, (), tree)
    # An order leaves its mark at each level: where a machine reports, it is one row.
    deepest = sorted(tree.nodes, key=lambda each: -len(each.under.split("/")) * bool(each.under))
    first = {_key(each): each for each in deepest}
    there = {_key(each) for each in tree.nodes if _reports(each)}
    nodes = [
        each
        for each in tree.nodes
        if _reports(each) or (_key(each) not in there and each is first[_key(each)])
    ]
    return tree._replace(nodes=nodes)


def _key(placed: PlacedNode) -> tuple[str, str]:
    return placed.view.group, placed.view.node


def _reports(placed: PlacedNode) -> bool:
    return bool(placed.view.rows or placed.view.sealed)


def _ask(admin: AdminClient, group: str, path: tuple[str, ...], tree: NodesBelow) -> None:
    after, more, under = "", True, "/".join(path)
    while more:
        try:
            page = page_of(admin, group, under, after=after)
        except SubmergeError as error:
            if not path:
                raise
            tree.silent.append(f"{under}: {error}")
            return
        for view in page.nodes:
            tree.nodes.append(PlacedNode(under, view))
            # A wrong kind in a reply must lead nowhere twice.
            if view.kind == "aggregator" and len(path) < DEEPEST and view.node not in path:
                _ask(admin, group, (*path, view.node), tree)
        more, after = page.more, page.nodes[-1].node if page.nodes else ""


def page_of(
    admin: AdminClient, group: str, under: str, *, after: str = "", node: str = ""
) -> NodesPage:
    from submerge_aggregator.questions.views import NodesPage

    asked = {"path": under, "after": after, "node": node}
    query = {key: value for key, value in asked.items() if value}
    return admin.read(NodesPage, "tree", group, **query)


WITHIN_S, AGAIN_S = 5.0, 0.25  # how long an order that goes down is looked after, and how often


class FoundNode(NamedTuple):
    node: str
    group: str
    under: str  # the aggregators above it, as in `PlacedNode`; empty: it reports here
    view: NodeView | None  # None of a node that is only remembered


def find(admin: AdminClient, node: str, group: str | None) -> FoundNode:
    """Return where a node is, or was; raises UsageError if it is nowhere, or in several groups."""
    groups = admin.groups() if group is None else [group]
    query = {"node": node} | ({} if group is None else {"group": group})
    views = json.loads(admin.get("nodes", **query))
    here = [str(view["group"]) for view in views if view["rows"] or view["sealed"]]
    if here:
        return FoundNode(node, only_group(here, node), "", None)
    placed = [
        each for each in nodes_below(admin, groups).nodes if each.under and each.view.node == node
    ]
    if placed:
        only_group([each.view.group for each in placed], node)
        last = min(placed, key=_silent_s)  # a node that has moved is where it was heard last
        return FoundNode(node, last.view.group, last.under, last.view)
    # One that is forgotten is in no list, and a ban or a quarantine may be all that there is.
    left = [str(view["group"]) for view in views] or [
        each for each in groups if admin.knows(each, node)
    ]
    if not left:
        raise UsageError(f"no group has a node {node}, here or below ({', '.join(groups)})")
    return FoundNode(node, only_group(left, node), "", None)


def order(
    admin: AdminClient,
    found: FoundNode,
    verb: str,
    has_happened: Callable[[NodeView | None], bool],
    **query: str,
) -> tuple[bytes, str]:
    """Give an order; return the answer, and how far it has got, in words."""
    # `has_happened` returns None where the node is in no list.
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


def only_group(groups: Iterable[str], name: str) -> str:
    """Return the one group among some that a node, or an alarm, is in; UsageError for several."""
    first, *others = sorted(set(groups))
    if others:
        raise UsageError(f"expected --group: {name} is in several, {', '.join([first, *others])}")
    return first


def _silent_s(placed: tuple[str, NodeView]) -> float:
    return min((row.silent_s for row in placed[1].rows), default=float("inf"))


ON_ITS_WAY = """The order is sent down at once, level by level. A node that cannot be reached now
gets it when it joins again, or with its next report."""


def desired_state_command(
    group: click.Group, example: str, *, target: Decorator, group_help: str, anyway: str, json: str
) -> Decorator:
    """Return what makes a function a command of `group` that sets a node's desired state."""
    epilog = f"{ON_ITS_WAY}\n\nExample: submerge {example} --config root.toml"
    return together(
        group.command(epilog=epilog),
        target,
        aggregator_options(group_help),
        flag_option("--anyway", anyway),
        json_option(json),
    )


def when_applied(answer: bytes) -> str:
    """Say which node gets a desired state first, and when it last reported."""
    from submerge_aggregator.questions.views import DesiredStateView

    desired = value_in(answer, DesiredStateView)
    if desired.reported_by is None:
        return "No report here names the node: it is sent to all aggregators below"
    first = f"{desired.reported_by} reported {ago(desired.silent_s or 0.0)} ago"
    if desired.reported_by == desired.node:
        return f"{first} and is sent it at once"
    return f"{first} and is sent it at once, {desired.node} after that"
