"""All nodes below an aggregator: `submerge nodes --below` asks one aggregator after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from submerge.errors import SubmergeError
from submerge.protocol.messages import DEEPEST
from submerge_files.console.admin_client import AdminClient

if TYPE_CHECKING:
    from submerge_aggregator.questions.views import NodesPage, NodeView


class PlacedNode(NamedTuple):
    """A node, and the aggregators above it.

    under : their names, from the one below the aggregator that is asked, with slashes between
    """

    under: str
    view: NodeView


class NodesBelow(NamedTuple):
    """Nodes in the order of the tree, and the aggregators that said nothing, a line each."""

    nodes: list[PlacedNode]
    silent: list[str]


def nodes_below(admin: AdminClient, groups: Sequence[str]) -> NodesBelow:
    """Ask for the nodes of an aggregator, and of all below it.

    Raises
    ------
    SubmergeError
        If that aggregator itself does not answer.
    """
    tree = NodesBelow([], [])
    for group in groups:
        _ask(admin, group, (), tree)
    return tree


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
    """Ask for a page of nodes, or for one node of an aggregator."""
    import msgspec

    from submerge_aggregator.questions.views import NodesPage

    asked = {"path": under, "after": after, "node": node}
    query = {key: value for key, value in asked.items() if value}
    return msgspec.json.decode(admin.get("tree", group, **query), type=NodesPage)
