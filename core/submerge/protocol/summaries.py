"""Summaries: how the two machines learn, merge and fade a summary, and score with it.

The machines count readings exactly once, whatever a summary is. `Subspaces` is the one in use;
`simulate.samples` replaces it by sets of sample ids, so that the simulator follows each reading
through the same code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from submerge._linalg import Array, Storage
from submerge.judge.row_scorer import RowScorer
from submerge.judge.score import ScoringSummaries
from submerge.pca.budget import DEFAULT_MEMORY
from submerge.pca.expected import Guesses
from submerge.pca.factor import Factors, factors_of
from submerge.pca.merging import merge, merge_whole
from submerge.pca.missing import fill
from submerge.pca.rank import FixedRank, RankRule
from submerge.pca.restated import restated
from submerge.pca.sapca import SAPCA
from submerge.pca.scatter_sum import Center
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter, is_narrow, triangle
from submerge.protocol.kernel_summary import KernelEngine, Piece, summary_of
from submerge.protocol.learning import Learner as Learner
from submerge.protocol.learning import Summary as Summary
from submerge.protocol.learning import Tree as Tree
from submerge.protocol.part_trees import PartTrees, WholeTree
from submerge.robust.outliers import Screening, both, screen
from submerge.schema import Schema

MOST_TIMES = 4
"""A child's summary has at most so many times the directions that a group keeps. Ranks may differ a
little; but each report is merged again and again, at a cost that grows with them."""


class Summaries(ScoringSummaries, Protocol):
    """Everything that the machines do with summaries of one kind.

    Attributes
    ----------
    memory : int
        The budget of each learner, in bytes.
    """

    memory: int

    def is_narrow(self, schema: Schema) -> bool:
        """Return whether a group reports whole scatters."""

    def at(self, rank: int) -> ScoringSummaries:
        """Return what scores with `rank` directions; 0 leaves it as configured."""

    def learner(self, schema: Schema) -> Learner:
        """Return a learner that has learnt nothing."""

    def tree(self, schema: Schema) -> Tree:
        """Return a tree without children."""

    def merged(self, schema: Schema, parts: Sequence[Summary], *, own: bool) -> Summary:
        """Merge; `own`: the parts are one client's, and their means merge whatever `center` is."""

    def restated(
        self, summary: Summary, old: Schema, new: Schema, *, like: Summary | None
    ) -> Summary:
        """Return a summary under a schema as one under another, as `pca.restated`.

        like : of rows that have all channels of `new`; None without any
        """

    def fits(self, schema: Schema, summary: Summary) -> bool:
        """Return whether it can be merged with others of that schema."""

    def faded(self, summary: Summary, factor: float) -> Summary:
        """Return it with its weight multiplied by `factor`."""

    def directions(self, summary: Summary) -> Summary:
        """Return it with the directions that a group keeps, where it is a whole scatter."""

    def factors(self, summary: Summary) -> tuple[Factors, ...]:
        """Return the factors of a merge, for each part of its directions; () if not known."""

    def filled(self, rows: Array, summary: Summary) -> Array:
        """Return rows (n, channels), scaled, with the most likely value in each gap."""

    def packed(self, summary: Summary) -> bytes:
        """Return it as bytes, as small as on the wire."""

    def turn_degrees(self, before: Summary, after: Summary) -> float:
        """Return by how many degrees the shown directions turned; 0 where that is undefined."""

    def screen(self, schema: Schema, parts: Mapping[str, Summary], *, unit: float) -> Screening:
        """Return which children are outliers, and which count for too much.

        unit : the weight of one reading in them, faded as they are
        """


class Subspaces:
    """Summaries that are subspaces; in a kernel group two of them (`KernelSummary`).

    In a narrow group, where all of the scatter takes no more than its directions, they are
    `WholeScatter`s. Those that are to be sent are rounded to float32, as they will arrive. A child
    of an earlier version, or with other settings, may send a subspace; its directions are merged
    with the others' scatters.

    Parameters
    ----------
    rank : int or RankRule
        As in `SAPCA`: the directions that are shown and scored with, below the dimension in any
        case.
    rank_max : int, optional
        The highest rank that may be shown (`at`), for which directions are kept; by default that
        of `rank`.
    oversample : int
        Spare directions, learnt, sent and merged beside those shown.
    linear_rank : int, optional
        In a kernel group, directions of the readings themselves that are shown beside those of
        their features; by default as many, but at most half of the channels.
    memory : int
        As in `SAPCA`: the budget of each learner, in bytes; in a kernel group, of each of two.
    """

    def __init__(
        self,
        rank: int | RankRule = 10,
        *,
        rank_max: int | None = None,
        oversample: int = 5,
        linear_rank: int | None = None,
        memory: int = DEFAULT_MEMORY,
    ) -> None:
        self.rule = rank if isinstance(rank, RankRule) else FixedRank(rank)
        self.rank_max = rank_max or self.rule.highest or self.rule.start
        self.oversample = oversample
        self.linear_rank = linear_rank
        self.memory = memory

    def at(self, rank: int) -> Subspaces:
        """Return the same summaries, of which `rank` directions score; 0 leaves them as they are.

        rank : as the root has chosen it (`Model.rank`)
        """
        if rank in (0, self.rule.start):
            return self
        return Subspaces(
            rank,
            rank_max=max(rank, self.rank_max),
            oversample=self.oversample,
            linear_rank=self.linear_rank,
            memory=self.memory,
        )

    def learner(self, schema: Schema) -> Learner:
        """Return a learner that has learnt nothing."""
        rule, oversample = self.rule, self.oversample
        if isinstance(rule, FixedRank):
            (shown, *_), (kept, *_) = self._shown(_dims(schema)), self._kept(_dims(schema))
            rule, oversample = FixedRank(shown), kept - shown
        if schema.linear:
            engine = SAPCA(rule, oversample=oversample, memory=self.memory, schema=schema)
            return _Engine(engine, narrow=self.is_narrow(schema))
        linear = self._linear_shown(schema.width)
        spare = self.linear_kept(schema.width) - linear
        return KernelEngine(
            schema,
            rule,
            linear_rank=linear,
            oversample=oversample,
            linear_oversample=spare,
            memory=self.memory,
        )

    def tree(self, schema: Schema) -> Tree:
        """Return a tree at the working rank."""
        center: Center = "own" if schema.center == "own" else "fleet"
        ranks = self._kept(_dims(schema))
        return WholeTree(ranks[0], center) if self.is_narrow(schema) else PartTrees(ranks, center)

    def merged(self, schema: Schema, parts: Sequence[Summary], *, own: bool) -> Summary:
        """Merge in the order given.

        The scatter of several parts is in float64: it is kept, or merged further, and rounded
        once, at the root of the tree. Otherwise bounds would grow with each of a node's restarts.
        """
        center: Center = "own" if schema.center == "own" and not own else "fleet"
        # By their own dimensions: rows of an earlier schema are folded as well.
        first, ranks = parts[0].pieces, self._kept([part.dim for part in parts[0].pieces])
        if len(first) == 1 and is_narrow(first[0].dim, ranks[0]):
            pieces = [piece for summary in parts for piece in summary.pieces]
            return merge_whole(*pieces, center=center)
        columns = zip(*(summary.parts for summary in parts), strict=True)
        return summary_of(
            *(
                merge(*column, rank=rank, center=center)
                for column, rank in zip(columns, ranks, strict=True)
            )
        )

    def restated(
        self, summary: Summary, old: Schema, new: Schema, *, like: Summary | None
    ) -> Summary:
        """As `restated.restated`; of groups without a kernel alone."""
        (piece,), others = summary.pieces, () if like is None else like.pieces
        found = restated(piece, old, new, next(iter(others), None))
        if isinstance(found, WholeScatter) and not self.is_narrow(new):
            return found.directions(*self._kept([new.dim]))
        return found

    def fits(self, schema: Schema, summary: Summary) -> bool:
        """Return whether it has the schema, its dimensions, and a rank in proportion.

        Never before gamma is settled.
        """
        if not schema.features.settled:
            return False
        dims = _dims(schema)
        return len(summary.pieces) == len(dims) and all(
            (part.schema, part.dim) == (schema.fingerprint, dim)
            and _in_proportion(part, MOST_TIMES * kept, whole=schema.linear)
            for part, dim, kept in zip(summary.pieces, dims, self._kept(dims), strict=True)
        )

    def faded(self, summary: Summary, factor: float) -> Summary:
        """As `Subspace.faded`."""
        if factor == 1:
            return summary
        return summary_of(*(part.faded(factor) for part in summary.pieces))

    def directions(self, summary: Summary) -> Summary:
        """As `WholeScatter.directions`, with float32 columns, as they will arrive."""
        if not isinstance(summary, WholeScatter):
            return summary
        found = summary.directions(*self._kept([summary.dim]))
        return replace(found, basis=found.basis.astype(np.float32))

    def packed(self, summary: Summary) -> bytes:
        """float32 columns, the rest in full: 4 dim k + 8 (dim + k) + 24 bytes, for each of two.

        Energies of channels are left out: a parent of an earlier version, which does not see them,
        has made its digest without. The triangle of a whole scatter takes 2 dim (dim + 1) bytes in
        place of 4 dim k + 8 k.
        """
        return b"".join(map(_packed, summary.pieces))

    def factors(self, summary: Summary) -> tuple[Factors, ...]:
        """As `factor.factors_of`."""
        pairs = zip(summary.pieces, self.directions(summary).parts, strict=True)
        found = [factors_of(piece, directions) for piece, directions in pairs]
        known = tuple(each for each in found if each is not None)
        return known if len(known) == len(found) else ()

    def scorer(
        self, summary: Summary, channels: int, factors: tuple[Factors, ...] = ()
    ) -> RowScorer:
        """SPE and T2 are by the leading directions, the factors by the spare ones too."""
        return RowScorer(summary.parts, self.shown(summary).parts, channels, factors)

    def filled(self, rows: Array, summary: Summary) -> Array:
        """As `missing.fill`, by the leading directions of the readings."""
        return fill(rows, self.shown(summary).parts[-1])[0]

    def shown(self, summary: Summary) -> Summary:
        """Return the leading directions, which score rows."""
        parts = summary.parts
        ranks = self._shown([part.dim for part in parts])
        return summary_of(*(part.truncated(r) for part, r in zip(parts, ranks, strict=True)))

    def turn_degrees(self, before: Summary, after: Summary) -> float:
        """Return the largest principal angle between the shown directions, across a clear gap."""
        first, then = before.parts[0], after.parts[0]
        r = self._shown((first.dim,))[0]
        if first.rank < r or then.rank < r:
            # One more direction is a turn of 90 degrees; fewer than r on both sides is young.
            return 90.0 if then.rank != first.rank else 0.0
        if then.rank > r and then.sigma[r - 1] < 1.1 * then.sigma[r]:
            return 0.0
        cosines = np.linalg.svd(first.basis[:, :r].T @ then.basis[:, :r], compute_uv=False)
        return float(np.degrees(np.arccos(np.clip(cosines.min(), 0.0, 1.0))))

    def screen(self, schema: Schema, parts: Mapping[str, Summary], *, unit: float) -> Screening:
        """Screen by the shown directions; in a kernel group, of features and of readings."""
        means, dims = schema.center != "own", _dims(schema)
        kept = self._kept(dims)
        screened = [
            screen(
                # Of a whole scatter no more directions than of others.
                {name: each.parts[i].truncated(kept[i]) for name, each in parts.items()},
                rank=rank,
                unit=unit,
                means=means,
            )
            for i, rank in enumerate(self._shown(dims))
        ]
        return screened[0] if schema.linear else both(*screened, of=len(parts))

    def linear_kept(self, width: int) -> int:
        """Return how many directions of the readings a kernel group keeps, spares included."""
        most = self.linear_rank or min(self.rank_max, max(1, width // 2))
        return min(most + self.oversample, width)

    def is_narrow(self, schema: Schema) -> bool:
        """Return whether a group reports whole scatters."""
        return schema.linear and is_narrow(schema.dim, self._kept((schema.dim,))[0])

    def _linear_shown(self, width: int) -> int:
        return min(self.linear_rank or min(self.rule.start, max(1, width // 2)), width)

    def _shown(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Directions shown of each part, for the dimensions of the parts."""
        return (below(self.rule.start, dims[0]), *map(self._linear_shown, dims[1:]))

    def _kept(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Directions kept of each part, with the spare ones."""
        return (self.rank_max + self.oversample, *map(self.linear_kept, dims[1:]))


def below(rank: int, dim: int) -> int:
    """Return a rank as it is, or dim - 1: SPE by all directions would be rounding.

    A single dimension has one direction, and no SPE.
    """
    return max(1, min(rank, dim - 1))


def _dims(schema: Schema) -> tuple[int, ...]:
    """Dimensions of each part of a summary."""
    return (schema.dim,) if schema.linear else (schema.dim, schema.width)


def _in_proportion(part: Piece, rank: int, *, whole: bool) -> bool:
    """Return whether merging it costs no more than it should."""
    if isinstance(part, Subspace):
        return part.rank <= rank
    return whole and is_narrow(part.dim, rank)


def _packed(part: Piece) -> bytes:
    if isinstance(part, Subspace):
        held: list[Storage] = [part.basis.T.astype(np.float32, copy=False), part.sigma]
    else:
        held = [triangle(part)[0]]
    exact = np.array((part.weight, part.energy, part.spectral_bound))
    return b"".join(array.tobytes() for array in (*held, part.mean, exact))


class _Engine:
    """SAPCA as a `Learner`; its summary is rounded to float32, as it will arrive.

    In a narrow group it is a whole scatter, if the engine holds one.
    """

    def __init__(self, engine: SAPCA, *, narrow: bool) -> None:
        self._engine, self._narrow = engine, narrow

    def learn(self, rows: Array, features: Storage, gaps: Guesses | None = None) -> None:
        self._engine.partial_fit(features, gaps=gaps)

    def fade(self, factor: float) -> None:
        self._engine.fade(factor)

    def summary(self) -> Piece:
        whole = self._engine.whole_scatter if self._narrow else None
        if whole is not None:
            return whole.rounded()
        seen = self._engine.subspace
        return replace(seen, basis=seen.basis.astype(np.float32), spares=0)
