"""Jury: whom of a tree's children to leave out, and whom to fade, by holding them together.

It sits between what nodes have told and the tree that merges them. Children are judged when
somebody asks, if any of them has changed since; only what that changes is put anew, so the tree
merges no more than it must. An aggregator's row is a merge of many: it counts as it is.
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
    """What a child has told.

    client : it is to be judged
    unit : what one of its readings weighs, when it is fresh
    placed : what of it is in the tree, and what that was faded by; None if nothing is
    """

    reported: Summary
    client: bool
    unit: float
    placed: tuple[Summary, float] | None = None


class OutlierScreen:
    """Who is in a tree.

    Parameters
    ----------
    schema : Schema
    summaries : Summaries
    tree : Tree
        Without children; nobody else puts any in.
    """

    def __init__(self, schema: Schema, summaries: Summaries, tree: Tree) -> None:
        self._schema, self._summaries, self._tree = schema, summaries, tree
        self._children: dict[str, _Child] = {}
        self._judged, self._stirred = NO_OUTLIERS, False

    def hears(self, node: str, reported: Summary, *, client: bool, unit: float) -> None:
        """Take what a child comes to, in place of what it came to before."""
        child = _Child(reported, client, unit)
        if node in self._children:
            child.placed = self._children[node].placed
        self._children[node], self._stirred = child, True

    def forgets(self, node: str) -> None:
        """Let a child go."""
        if self._children.pop(node).placed is not None:
            del self._tree[node]
        self._stirred = True

    def outliers(self) -> Mapping[str, Outlier]:
        """Return who is left out; after it the tree holds all others, and nobody else."""
        if self._stirred:
            self._judged, self._stirred = self._judge(), False
            for node, child in self._children.items():
                self._place(node, child)
        return self._judged.outliers

    def _judge(self) -> Screening:
        clients = {node: child for node, child in self._children.items() if child.client}
        if not clients:
            return NO_OUTLIERS
        # The usual one: a wild clock must not say what a reading weighs.
        unit = statistics.median_low(child.unit for child in clients.values())
        reported = {node: child.reported for node, child in clients.items()}
        return self._summaries.screen(self._schema, reported, unit=unit)

    def _place(self, node: str, child: _Child) -> None:
        """Put into the tree what counts of a child, if that has changed."""
        if node in self._judged.outliers:
            if child.placed is not None:
                del self._tree[node]
            child.placed = None
            return
        factor = self._judged.factors.get(node, 1.0)
        if (
            child.placed is None
            or child.placed[0] is not child.reported
            or child.placed[1] != factor
        ):
            self._tree[node] = self._summaries.faded(child.reported, factor)
            child.placed = child.reported, factor
