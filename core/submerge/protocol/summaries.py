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
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.judge.score import RowScoring, ScoringSummaries
from submerge.pca.budget import DEFAULT_MEMORY
from submerge.pca.merging import merge, merge_whole
from submerge.pca.missing import fill, shrunk
from submerge.pca.rank import FixedRank, RankRule
from submerge.pca.reconstruct import Reconstruction
from submerge.pca.sapca import SAPCA
from submerge.pca.scatter_sum import Center
from submerge.pca.score import Scorer
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter, is_narrow, triangle
from submerge.protocol.kernel_summary import KernelEngine, Piece, summary_of
from submerge.protocol.part_trees import PartTrees, WholeTree
from submerge.robust.outliers import Screening, both, screen
from submerge.schema import Schema
from submerge.stats.node_mean import OwnMean

MOST_TIMES = 4
"""A child's summary has at most so many times the directions that a group keeps. Ranks may differ a
little; but each report is merged again and again, at a cost that grows with them."""


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

    def learn(self, rows: Array, features: Storage) -> None:
        """Take in rows (n, channels), scaled and finite, and their features (n, dim)."""

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


class Summaries(ScoringSummaries, Protocol):
    """Everything that the machines do with summaries of one kind."""

    def learner(self, schema: Schema) -> Learner:
        """Return a learner that has learnt nothing."""

    def tree(self, schema: Schema) -> Tree:
        """Return a tree without children."""

    def merged(self, schema: Schema, parts: Sequence[Summary], *, own: bool) -> Summary:
        """Merge; `own`: the parts are one client's, and their means merge whatever `center` is."""

    def fits(self, schema: Schema, summary: Summary) -> bool:
        """Return whether it can be merged with others of that schema."""

    def faded(self, summary: Summary, factor: float) -> Summary:
        """Return it with its weight multiplied by `factor`."""

    def directions(self, summary: Summary) -> Summary:
        """Return it with the directions that a group keeps, where it is a whole scatter."""

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
        As in `SAPCA`: the directions that are shown and scored with.
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
        oversample: int = 5,
        linear_rank: int | None = None,
        memory: int = DEFAULT_MEMORY,
    ) -> None:
        self.rule = rank if isinstance(rank, RankRule) else FixedRank(rank)
        self.oversample = oversample
        self.linear_rank = linear_rank
        self.memory = memory

    def learner(self, schema: Schema) -> Learner:
        """Return a learner that has learnt nothing."""
        rule = self.rule
        if isinstance(rule, FixedRank):
            rule = FixedRank(min(rule.start, schema.dim))
        if schema.linear:
            engine = SAPCA(rule, oversample=self.oversample, memory=self.memory, schema=schema)
            return _Engine(engine, narrow=self._is_narrow(schema))
        linear = self._linear_shown(schema.width)
        return KernelEngine(
            schema, rule, linear_rank=linear, oversample=self.oversample, memory=self.memory
        )

    def tree(self, schema: Schema) -> Tree:
        """Return a tree at the working rank."""
        center: Center = "own" if schema.center == "own" else "fleet"
        ranks = self._kept(_dims(schema))
        return WholeTree(ranks[0], center) if self._is_narrow(schema) else PartTrees(ranks, center)

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

    def scorer(self, summary: Summary) -> RowScoring:
        """Score with the leading directions, without the spares."""
        return _PartScorers(self.shown(summary))

    def placed(self, summary: Summary, own: OwnMean) -> Summary:
        """Return the same directions about a node's own mean."""
        means = (own.rows if own.features is None else own.features, own.rows)
        parts = summary.parts
        pairs = zip(parts, means[-len(parts) :], strict=True)
        return summary_of(*(replace(part, mean=mean) for part, mean in pairs))

    def center(self, summary: Summary) -> Array:
        """Return the mean of the readings, also in a kernel group."""
        return summary.pieces[-1].mean

    def reconstruction(self, summary: Summary, channels: int) -> Reconstruction | None:
        """Return the prediction by the leading directions of the readings; None without any."""
        readings = self.shown(summary).parts[-1]
        return Reconstruction(readings, channels) if readings.rank else None

    def shrunk(self, present: npt.NDArray[np.bool_], summary: Summary) -> tuple[float, float]:
        """As `missing.shrunk`; 1 in a kernel group, where the effect of a gap is unknown."""
        learnt, *readings = self.shown(summary).parts
        return (1.0, 1.0) if readings or not learnt.rank else shrunk(present, learnt)

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
        first, then, r = before.parts[0], after.parts[0], self.rule.start
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
        return min(self._linear_shown(width) + self.oversample, width)

    def _is_narrow(self, schema: Schema) -> bool:
        """Return whether a group reports whole scatters."""
        return schema.linear and is_narrow(schema.dim, self._kept((schema.dim,))[0])

    def _linear_shown(self, width: int) -> int:
        return min(self.linear_rank or min(self.rule.start, max(1, width // 2)), width)

    def _shown(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Directions shown of each part, for the dimensions of the parts."""
        return (self.rule.start, *map(self._linear_shown, dims[1:]))

    def _kept(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Directions kept of each part, with the spare ones."""
        kept = (self.rule.highest or self.rule.start) + self.oversample
        return (kept, *map(self.linear_kept, dims[1:]))


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


class _PartScorers:
    """Scores scaled readings by all parts of a summary without spare directions."""

    def __init__(self, shown: Summary) -> None:
        self._learnt = Scorer(shown.parts[0])
        self._readings = Scorer(shown.parts[1]) if len(shown.parts) > 1 else None

    def scores(
        self, rows: Array, features: Storage, own: OwnMean | None = None
    ) -> tuple[Array, Array, Array | None]:
        mean, lifted = (None, None) if own is None else (own.rows, own.features)
        if self._readings is None:
            return (*self._learnt.scores(features, mean), None)
        return (*self._learnt.scores(features, lifted), self._readings.scores(rows, mean)[0])


class _Engine:
    """SAPCA as a `Learner`; its summary is rounded to float32, as it will arrive.

    In a narrow group it is a whole scatter, if the engine holds one.
    """

    def __init__(self, engine: SAPCA, *, narrow: bool) -> None:
        self._engine, self._narrow = engine, narrow

    def learn(self, rows: Array, features: Storage) -> None:
        self._engine.partial_fit(features)

    def fade(self, factor: float) -> None:
        self._engine.fade(factor)

    def summary(self) -> Piece:
        whole = self._engine.whole_scatter if self._narrow else None
        if whole is not None:
            return whole.rounded()
        seen = self._engine.subspace
        return replace(seen, basis=seen.basis.astype(np.float32))
