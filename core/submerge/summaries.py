"""What the two machines ask of a summary: learn it, merge it, fade it, score with it.

The machines count readings exactly once whatever a summary is. `Subspaces` is the real
thing; `simulate.samples` puts sets of sample ids in its place, so that the simulator
sees through the same code which reading went where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from submerge._linalg import Array
from submerge.merging import merge
from submerge.missing import fill
from submerge.rank import FixedRank, RankRule
from submerge.sapca import SAPCA
from submerge.schema import Schema
from submerge.score import Scorer
from submerge.subspace import Subspace
from submerge.tree import MergeTree

Summary = Any
"""Of one `Summaries`: the machines hand it on and never look inside."""


class Learner(Protocol):
    """One incarnation's memory."""

    def learn(self, rows: Array) -> None:
        """Take in rows (n, dim), lifted and finite."""

    def fade(self, factor: float) -> None:
        """Count all that was learnt so far `factor` times."""

    def summary(self) -> Summary:
        """Return all that was learnt, as it would travel."""


class Tree(Protocol):
    """Children by key, and their merge."""

    def __len__(self) -> int: ...
    def __contains__(self, key: object) -> bool: ...
    def __setitem__(self, key: str, summary: Summary, /) -> None: ...
    def __delitem__(self, key: str, /) -> None: ...
    def root(self) -> Summary:
        """Return the merge of all children, at least one."""


class Scoring(Protocol):
    """Judges rows by one summary."""

    def scores(self, X: Array, /) -> tuple[Array, Array]:
        """Return SPE and T2 of rows (n, dim), (n,) each."""


class Summaries(Protocol):
    """All that is done with summaries of one kind."""

    def learner(self, schema: Schema) -> Learner:
        """Return an empty memory."""

    def tree(self, schema: Schema) -> Tree:
        """Return a tree without children."""

    def merged(self, schema: Schema, parts: Sequence[Summary], *, own: bool) -> Summary:
        """Merge; `own`: the parts are one client's, and its means merge whatever `center` is."""

    def fits(self, schema: Schema, summary: Summary) -> bool:
        """Whether it can be merged with others of that schema."""

    def faded(self, summary: Summary, factor: float) -> Summary:
        """Return it with all that it has seen counted `factor` times."""

    def packed(self, summary: Summary) -> bytes:
        """Return it as bytes, as small as it travels."""

    def scorer(self, summary: Summary) -> Scoring:
        """Return what scores with it."""

    def filled(self, rows: Array, summary: Summary) -> Array:
        """Return rows (n, dim) with what each gap would most likely have been."""

    def moved(self, before: Summary, after: Summary) -> float:
        """Return by how many degrees what is shown has turned; 0 where that has no answer."""


class Subspaces:
    """Summaries that are subspaces.

    Parameters
    ----------
    rank : int or RankRule
        As in `SAPCA`: what is shown and scored with.
    oversample : int
        Spares, learnt, shipped and merged beside those shown.
    """

    def __init__(self, rank: int | RankRule = 10, *, oversample: int = 5) -> None:
        self.rule = rank if isinstance(rank, RankRule) else FixedRank(rank)
        self.oversample = oversample

    def learner(self, schema: Schema) -> Learner:
        """Return an engine that has learnt nothing."""
        rule = self.rule
        if isinstance(rule, FixedRank):
            rule = FixedRank(min(rule.start, schema.dim))
        return _Engine(SAPCA(rule, oversample=self.oversample, schema=schema))

    def tree(self, schema: Schema) -> Tree:
        """Return a tree at the working rank."""
        return MergeTree(rank=self._kept, center="own" if schema.center == "own" else "fleet")

    def merged(self, schema: Schema, parts: Sequence[Subspace], *, own: bool) -> Subspace:
        """Merge in the order given."""
        apart = schema.center == "own" and not own
        return merge(*parts, rank=self._kept, center="own" if apart else "fleet")

    def fits(self, schema: Schema, summary: Subspace) -> bool:
        """It is of the schema, and of its dimension."""
        return (schema.fingerprint, schema.dim) == (summary.schema, summary.dim)

    def faded(self, summary: Subspace, factor: float) -> Subspace:
        """As `Subspace.faded`."""
        return summary if factor == 1 else summary.faded(factor)

    def packed(self, summary: Subspace) -> bytes:
        """float32 columns, the rest in full: 4 dim k + 8 (dim + k) + 24 bytes."""
        exact = (summary.weight, summary.energy, summary.spectral_bound)
        return b"".join(
            array.tobytes()
            for array in (
                summary.basis.T.astype(np.float32, copy=False),
                summary.sigma,
                summary.mean,
                np.array(exact),
            )
        )

    def scorer(self, summary: Subspace) -> Scoring:
        """Score with the leading directions, without the spares."""
        return Scorer(summary.truncated(self.rule.start))

    def filled(self, rows: Array, summary: Subspace) -> Array:
        """By the leading directions, as `missing.fill`."""
        return fill(rows, summary.truncated(self.rule.start))[0]

    def moved(self, before: Subspace, after: Subspace) -> float:
        """Largest principal angle between the shown directions, where a gap tells them apart."""
        r = self.rule.start
        if before.rank < r or after.rank < r:
            # A direction more is a turn of 90 degrees; fewer than r on both sides is young.
            return 90.0 if after.rank != before.rank else 0.0
        if after.rank > r and after.sigma[r - 1] < 1.1 * after.sigma[r]:
            return 0.0
        cosines = np.linalg.svd(before.basis[:, :r].T @ after.basis[:, :r], compute_uv=False)
        return float(np.degrees(np.arccos(np.clip(cosines.min(), 0.0, 1.0))))

    @property
    def _kept(self) -> int:
        return (self.rule.highest or self.rule.start) + self.oversample


class _Engine:
    """SAPCA as a `Learner`: what it shows has float32 columns, as it will arrive."""

    def __init__(self, engine: SAPCA) -> None:
        self._engine = engine

    def learn(self, rows: Array) -> None:
        self._engine.partial_fit(rows)

    def fade(self, factor: float) -> None:
        self._engine.fade(factor)

    def summary(self) -> Subspace:
        seen = self._engine.subspace
        return replace(seen, basis=seen.basis.astype(np.float32))
