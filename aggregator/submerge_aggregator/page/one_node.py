"""OneNode: a node as its own view shows it: how it is, and what its aggregator knows of it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from submerge_aggregator.page.calls import AdminCalls
from submerge_aggregator.page.fleet_rows import FleetRow, row_of
from submerge_aggregator.questions.views import NodesPage, NodeView


@dataclass(frozen=True, slots=True)
class OneNode:
    """A node.

    at : When it was asked for, Unix seconds.
    row : As the fleet lists it; None where the aggregator that was asked does not know it.
    """

    group: str
    at: float
    row: FleetRow | None
    view: NodeView | None


async def one_node(calls: AdminCalls, group: str, path: str, node: str, at: float) -> OneNode:
    """Return a node, by asking the aggregator to which it reports.

    path : the aggregators above the node, with slashes between; empty: it reports here
    at : wall time

    Raises CallRefused if that aggregator does not answer.
    """
    body = await calls.get(f"/tree/{group}", path=path, node=node)
    nodes = msgspec.json.decode(body, type=NodesPage).nodes
    found = next((each for each in nodes if each.node == node), None)
    row = None if found is None else row_of(found, path, at)
    return OneNode(group, at, row, found)
