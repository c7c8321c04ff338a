"""What a summary, a learner and a tree of summaries are, of whatever kind.

The machines ask for no more than this. `summaries` makes those in use.
"""

from __future__ import annotations

from typing import Protocol

from submerge._linalg import Array, Storage
from submerge.pca.expected import Guesses
from submerge.pca.subspace import Subspace
from submerge.protocol.kernel_summary import Piece


class Summary(Protocol):
    """What was learnt: the machines pass it on, and only `Summaries` of its kind look inside."""

    @property
    def weight(self) -> float:
        """Effective number of samples."""

    @property
    def parts(self) -> tuple[Subspace, ...]:
        """The subspaces of it: of the features first, of the readings last.

        One in a linear group, two in a kernel group, none in a set of ids. Those of a
        `WholeScatter` are computed when they are asked for.
        """

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """As `parts`, as they are held: nothing is decomposed."""


class Learner(Protocol):
    """What one incarnation learns with."""

    def learn(self, rows: Array, features: Storage, gaps: Guesses | None = None) -> None:
        """Take in rows (n, channels), scaled and finite, and their features (n, dim).

        gaps : which numbers of the rows were filled, and by what
        """

    def fade(self, factor: float) -> None:
        """Multiply the weight of everything learnt so far by `factor`."""

    def summary(self) -> Summary:
        """Return everything learnt, as it would arrive."""


class Tree(Protocol):
    """Children by key, and their merge."""

    def __len__(self) -> int: ...
    def __contains__(self, key: object) -> bool: ...
    def __setitem__(self, key: str, summary: Summary, /) -> None: ...
    def __delitem__(self, key: str, /) -> None: ...
    def root(self) -> Summary:
        """Return the merge of all children, at least one."""
