"""PartTrees: the children of a group by key, and their merge, as the pool of a group needs it.

A `MergeTree` merges subspaces or whole scatters. A summary of a kernel group has two subspaces;
that of a narrow group is one whole scatter, and so is its merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from submerge.pca.scatter_sum import Center
from submerge.pca.tree import MergeTree
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.kernel_summary import KernelSummary, Piece, summary_of


class Pieces(Protocol):
    """A summary, as far as it is merged."""

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """As in a `Summary`."""


class PartTrees:
    """Children by key, and their merge: a `MergeTree` of each part, all of one shape."""

    def __init__(self, ranks: Sequence[int], center: Center) -> None:
        self._trees = [MergeTree(rank=rank, center=center) for rank in ranks]

    def __len__(self) -> int:
        return len(self._trees[0])

    def __contains__(self, key: object) -> bool:
        return key in self._trees[0]

    def __setitem__(self, key: str, summary: Pieces) -> None:
        for tree, part in zip(self._trees, summary.pieces, strict=True):
            tree[key] = part

    def __delitem__(self, key: str) -> None:
        for tree in self._trees:
            del tree[key]

    def root(self) -> Piece | KernelSummary:
        """Return the merge of all children, at least one."""
        return summary_of(*(tree.root() for tree in self._trees))


class WholeTree(PartTrees):
    """Children of a narrow group: their merge is a whole scatter, rounded as it will arrive."""

    def __init__(self, rank: int, center: Center) -> None:
        super().__init__([rank], center)
        self._last: tuple[WholeScatter, WholeScatter] | None = None

    def root(self) -> WholeScatter:
        """Return the merge of all children, at least one."""
        whole = self._trees[0].root_whole()
        if self._last is None or self._last[0] is not whole:
            self._last = whole, whole.rounded()
        return self._last[1]
