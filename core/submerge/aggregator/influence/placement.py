"""ChildPlacement: which children are in a tree, and how far each of them is faded.

It stands between the summaries of nodes and the tree that merges them. Two rules compare children
with one another: in a robust group outliers are left out (`submerge.robust.outliers`), and in any
group a child counts for no more than others like it could (`bounding`). Both follow from the
children and their ages alone; `settle` compares them again when any of these has changed. Only
children that are faded otherwise than before are put again, so the tree merges no more than it
must.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping

from submerge.aggregator.influence.bounding import ChildBounds, ChildSummary, InfluenceRule
from submerge.protocol.summaries import Summaries, Summary, Tree
from submerge.robust.influence import InfluenceBound
from submerge.robust.outliers import NO_OUTLIERS, Outlier, Screening
from submerge.schema import Schema


class ChildPlacement:
    """Decides which children are in a tree, and how much each counts.

    tree : Without children; only the placement puts children into it.
    robust : Leave out outliers.
    rule : None bounds no child.
    """

    def __init__(
        self,
        schema: Schema,
        summaries: Summaries,
        tree: Tree,
        *,
        robust: bool = False,
        rule: InfluenceRule | None = None,
    ) -> None:
        self._schema, self._summaries, self._tree = schema, summaries, tree
        self._robust, self._rule = robust, rule
        self._children: dict[str, ChildSummary] = {}
        self._placed: dict[str, tuple[Summary, float]] = {}
        self._screening, self._stirred = NO_OUTLIERS, False
        self._bounding = None if rule is None else ChildBounds(schema, rule)
        self._bounds: dict[str, InfluenceBound] = {}
        self._settled_at: tuple[float, float] | None = None

    def __contains__(self, node: object) -> bool:
        return node in self._children

    def put(self, node: str, child: ChildSummary) -> None:
        """Take a child's summary, in place of its last one."""
        self._children[node], self._stirred = child, True

    def remove(self, node: str) -> None:
        """Remove a child."""
        del self._children[node]
        self._stirred = True

    def placed(self) -> dict[str, Summary]:
        """Return what the tree holds of each child, by name."""
        return {
            node: self._summaries.faded(summary, factor)
            for node, (summary, factor) in sorted(self._placed.items())
        }

    @property
    def outliers(self) -> Mapping[str, Outlier]:
        """The children that are left out, as of the last `settle`."""
        return self._screening.outliers

    @property
    def bounds(self) -> Mapping[str, InfluenceBound]:
        """The children that are bounded, as of the last `settle`."""
        return self._bounds

    def settle(self, age: Callable[[str], float], at: tuple[float, float]) -> None:
        """Compare the children, and have the tree hold what follows.

        age : Returns for how many seconds a node has been heard.
        at : (elapsed, wall). The time that ages follow, and wall time; NaN if the clock is not
            synchronized.
        """
        if not self._stirred and (self._bounding is None or self._settled_at == at):
            return
        if self._stirred and self._robust:
            self._screening = self._screen()
        if self._bounding is not None:
            if self._stirred:
                self._bounding.measure(self._children)
            self._bounds = self._bounding.bounds(age, at[1])
        self._stirred, self._settled_at = False, at
        self._place()

    def _screen(self) -> Screening:
        rule = self._rule
        screened = {
            node: child
            for node, child in self._children.items()
            if rule is None or not rule.trusts(node)
        }
        if not screened:
            return NO_OUTLIERS
        # The median: one wild clock must not decide what a reading weighs.
        unit = statistics.median_low(child.unit for child in screened.values())
        parts = {node: child.summary for node, child in screened.items()}
        return self._summaries.screen(self._schema, parts, unit=unit)

    def _place(self) -> None:
        """Put each child's share into the tree, if it has changed."""
        for node in [node for node in self._placed if not self._is_in(node)]:
            del self._tree[node]
            del self._placed[node]
        for node, child in self._children.items():
            if not self._is_in(node):
                continue
            bound = self._bounds.get(node)
            factor = self._screening.factors.get(node, 1.0)
            factor = factor if bound is None else min(factor, bound.factor)
            placed = self._placed.get(node)
            if placed is None or placed[0] is not child.summary or placed[1] != factor:
                self._tree[node] = self._summaries.faded(child.summary, factor)
                self._placed[node] = child.summary, factor

    def _is_in(self, node: str) -> bool:
        return node in self._children and node not in self._screening.outliers
