"""MergeTree: the merge of many children, kept up to date (docs/mathematics.md, "Merging").

It is a trie over the hashes of the keys. Its shape depends on the set of keys alone, and children
merge in the order of their slots. An update marks the path to the root, and `root` merges only what
is marked. A child is replaced, never added to: merging is not idempotent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from submerge.errors import UsageError, whole
from submerge.pca.merging import merge, merge_whole
from submerge.pca.scatter_sum import Center, ScatterSum, summed
from submerge.pca.subspace import Subspace, check_rank, check_same_schema
from submerge.pca.whole_scatter import WholeScatter, is_narrow

Child = Subspace | WholeScatter
Merged = Child | ScatterSum

FAN_IN, FAN_IN_OF_SCATTERS = 4, 16  # slots of a node whose branches hold directions, and scatters


class _Leaf:
    __slots__ = ("digits", "key", "merged")

    def __init__(self, key: str, digits: int, merged: Child) -> None:
        self.key, self.digits, self.merged = key, digits, merged


class _Branch:
    __slots__ = ("merged", "slots")

    def __init__(self) -> None:
        self.merged: Merged | None = None  # None: something below has changed
        self.slots: dict[int, _Leaf | _Branch] = {}


class MergeTree:
    """Children by key, and their merge.

    Parameters
    ----------
    rank : int
        Directions to keep at every node: k, spares included.
    fan_in : int, optional
        Slots of a node, a power of two. With more, merging loses less; with fewer, an
        update is cheaper. By default 4, and 16 where branches hold scatters, which are fewer
        then. See benchmarks/results.md.
    center : {"fleet", "own"}
        As in `merge`.

    Examples
    --------
    >>> import numpy as np
    >>> from submerge import MergeTree, Schema, Subspace
    >>> schema, tree = Schema.anonymous(3), MergeTree(rank=2)
    >>> tree["north"] = Subspace.of(np.eye(3), schema, rank=2)
    >>> tree["south"] = Subspace.of(-np.eye(3), schema, rank=2)
    >>> tree.root().weight
    6.0
    """

    def __init__(self, *, rank: int, fan_in: int | None = None, center: Center = "fleet") -> None:
        check_rank(rank)
        slots = whole("fan_in", FAN_IN if fan_in is None else fan_in, least=2)
        if center not in ("fleet", "own"):
            raise UsageError(f'center must be "fleet" or "own", got {center!r}')
        if slots & (slots - 1):
            raise UsageError(f"fan_in must be a power of two, at least 2, got {fan_in}")
        self.rank = rank
        self.fan_in = fan_in
        self.center: Center = center
        self._bits, self._holds_scatters = slots.bit_length() - 1, False
        self._top = _Branch()
        self._leaves: dict[str, _Leaf] = {}
        self._root: Subspace | None = None
        self._root_whole: WholeScatter | None = None

    def __len__(self) -> int:
        return len(self._leaves)

    def __contains__(self, key: object) -> bool:
        return key in self._leaves

    def __iter__(self) -> Iterator[str]:
        return iter(self._leaves)

    def __getitem__(self, key: str) -> Subspace | WholeScatter:
        return self._leaves[key].merged

    def __setitem__(self, key: str, subspace: Subspace | WholeScatter) -> None:
        """Add a child, or replace it."""
        if not isinstance(key, str) or not key or not key.isprintable():
            raise UsageError(f"a child's key must be printable text, got {key!r}")
        if self._leaves:
            check_same_schema(next(iter(self._leaves.values())).merged, subspace)
        else:
            self._lay_out(subspace.dim)
        if key in self._leaves:
            leaf = self._leaves[key]
            leaf.merged = subspace
        else:
            leaf = self._leaves[key] = _Leaf(key, _digits(key), subspace)
        self._root = self._root_whole = None
        path = list(self._path(leaf.digits))
        for branch, _ in path:
            branch.merged = None
        branch, slot = path[-1]
        other = branch.slots.get(slot, leaf)
        depth = len(path)
        while isinstance(other, _Leaf) and other is not leaf:
            # Two keys share a slot: add levels until their digits differ.
            below = branch.slots[slot] = _Branch()
            below.slots[self._digit(other.digits, depth)] = other
            branch, slot = below, self._digit(leaf.digits, depth)
            other = branch.slots.get(slot, leaf)
            depth += 1
        branch.slots[slot] = leaf

    def __delitem__(self, key: str) -> None:
        """Remove a child, as if it had never been added."""
        path = list(self._path(self._leaves.pop(key).digits))
        self._root = self._root_whole = None
        branch, slot = path.pop()
        branch.merged = None
        del branch.slots[slot]
        while path:
            above, slot = path.pop()
            above.merged = None
            # Without the key, a branch over a single leaf would not exist.
            only = next(iter(branch.slots.values())) if len(branch.slots) == 1 else None
            if isinstance(only, _Leaf):
                above.slots[slot] = only
            branch = above

    def root(self) -> Subspace:
        """Return the merge of all children: at most `rank` directions of it.

        Raises
        ------
        UsageError
            If there are none.
        """
        if self._root is None:
            top = self._checked_top()
            if isinstance(top, Subspace):
                # Of a single child as well: what was merged has no spare directions.
                self._root = merge(top, rank=self.rank, center=self.center)
            else:
                self._root = self.root_whole().directions(self.rank)
        return self._root

    def root_whole(self) -> WholeScatter:
        """Return the scatter of all children, as far as they have it.

        It is the same object until a child is added, replaced or removed.

        Raises
        ------
        UsageError
            As `root`.
        """
        if self._root_whole is None:
            top = self._checked_top()
            if isinstance(top, ScatterSum):
                self._root_whole = top.whole(next(iter(self._leaves.values())).merged.schema)
            else:
                self._root_whole = merge_whole(top)
        return self._root_whole

    def _checked_top(self) -> Merged:
        if not self._leaves:
            raise UsageError("a tree without children has no root: add one first")
        return self._merged(self._top)

    def _merged(self, node: _Leaf | _Branch) -> Merged:
        if isinstance(node, _Leaf):
            return node.merged
        if node.merged is None:
            parts = [self._merged(node.slots[slot]) for slot in sorted(node.slots)]
            if len(parts) == 1:
                node.merged = parts[0]
            elif self._holds_scatters:
                node.merged = summed(parts, center=self.center)
            else:
                children = [part for part in parts if not isinstance(part, ScatterSum)]
                directions = [direction for child in children for direction in child.parts]
                node.merged = merge(*directions, rank=self.rank, center=self.center)
        return node.merged

    def _lay_out(self, dim: int) -> None:
        """Choose what branches hold, for the first child: scatters where a stack is no wider."""
        slots = 1 << self._bits if self.fan_in else FAN_IN
        self._holds_scatters = is_narrow(dim, self.rank) or dim <= slots * (self.rank + 1)
        if self.fan_in is None:
            self._bits = (FAN_IN_OF_SCATTERS if self._holds_scatters else FAN_IN).bit_length() - 1

    def _path(self, digits: int) -> Iterator[tuple[_Branch, int]]:
        """Yield the branches on the way to a leaf, each with the slot that leads on."""
        branch, depth = self._top, 0
        while True:
            slot = self._digit(digits, depth)
            yield branch, slot
            below = branch.slots.get(slot)
            if not isinstance(below, _Branch):
                return
            branch, depth = below, depth + 1

    def _digit(self, digits: int, depth: int) -> int:
        return (digits >> (depth * self._bits)) & ((1 << self._bits) - 1)


def _digits(key: str) -> int:
    """Return the key's hash as a number: SHA-256, so that keys cannot be chosen for one slot."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest(), "little")
