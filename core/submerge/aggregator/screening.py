"""OutlierScreen: which children of a tree to leave out, and which to fade.

It stands between the summaries of nodes and the tree that merges them. It compares the children
when `outliers` is called and any of them has changed; only changed children are put again, so the
tree merges no more than it must. An aggregator's row is a merge of many: it is not screened.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from submerge.protocol.summaries import Summaries, Summary, Tree
from submerge.robust.outliers import NO_OUTLIERS, Outlier, Screening
from submerge.schema import Schema


@dataclass(slots=True, eq=False)
class _Child:
    """What a child has reported.

    client : whether it is screened
    unit : the weight of one of its readings, when it is fresh
    placed : its summary in the tree, and the factor that it was faded by; None if it is out
    """

    summary: Summary
    client: bool
    unit: float
    placed: tuple[Summary, float] | None = None


class OutlierScreen:
    """Decides which children are in a tree.

    Parameters
    ----------
    schema : Schema
    summaries : Summaries
    tree : Tree
        Without children; only the screen puts children into it.
    """

    def __init__(self, schema: Schema, summaries: Summaries, tree: Tree) -> None:
        self._schema, self._summaries, self._tree = schema, summaries, tree
        self._children: dict[str, _Child] = {}
        self._screening, self._stirred = NO_OUTLIERS, False

    def put(self, node: str, summary: Summary, *, client: bool, unit: float) -> None:
        """Take a child's summary, in place of its last one."""
        child = _Child(summary, client, unit)
        if node in self._children:
            child.placed = self._children[node].placed
        self._children[node], self._stirred = child, True

    def remove(self, node: str) -> None:
        """Remove a child."""
        if self._children.pop(node).placed is not None:
            del self._tree[node]
        self._stirred = True

    def outliers(self) -> Mapping[str, Outlier]:
        """Return the children that are left out; the tree then holds exactly the others."""
        if self._stirred:
            self._screening, self._stirred = self._screen(), False
            for node, child in self._children.items():
                self._place(node, child)
        return self._screening.outliers

    def _screen(self) -> Screening:
        clients = {node: child for node, child in self._children.items() if child.client}
        if not clients:
            return NO_OUTLIERS
        # The median: one wild clock must not decide what a reading weighs.
        unit = statistics.median_low(child.unit for child in clients.values())
        parts = {node: child.summary for node, child in clients.items()}
        return self._summaries.screen(self._schema, parts, unit=unit)

    def _place(self, node: str, child: _Child) -> None:
        """Put a child's share into the tree, if it has changed."""
        if node in self._screening.outliers:
            if child.placed is not None:
                del self._tree[node]
            child.placed = None
            return
        factor = self._screening.factors.get(node, 1.0)
        if (
            child.placed is None
            or child.placed[0] is not child.summary
            or child.placed[1] != factor
        ):
            self._tree[node] = self._summaries.faded(child.summary, factor)
            child.placed = child.summary, factor
