"""Summaries: how the two machines learn, merge and fade a summary, and score with it.

`Subspaces` is the one in use; `simulate.samples` replaces it by sets of sample ids, so that the
simulator follows each reading through the same code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple, Protocol

import numpy as np

from submerge._linalg import Array, Storage
from submerge.errors import UsageError
from submerge.judge.score import RowScorer, ScoringSummaries
from submerge.pca.budget import DEFAULT_MEMORY, Exact
from submerge.pca.expectation import Guesses
from submerge.pca.factor import Factors, factors_of
from submerge.pca.merging import merge, merge_whole
from submerge.pca.missing import fill
from submerge.pca.rank import FixedRank, RankRule, rule_of, within
from submerge.pca.restatement import restated
from submerge.pca.row_sums import SENSITIVITY, Ints, RowSums
from submerge.pca.sapca import SAPCA
from submerge.pca.scatter_sum import Center
from submerge.pca.subspace import Subspace
from submerge.pca.tree import MergeTree
from submerge.pca.whole_scatter import WholeScatter, is_narrow, triangle
from submerge.robust.outliers import Screening, both, screen
from submerge.schema import Schema

# Both kinds of summary list their `parts`, so that merging and scoring need not know the kind.

Piece = Subspace | WholeScatter  # what holds the rows of one space
BLOCK = 64  # rows of features learnt at once


class Method(NamedTuple):
    """How a node learns and what its rows are judged by, for people."""

    algorithm: str = ""  # and its rule: `SAPCA, alpha 0.01, beta 0.1`
    rank: int = 0  # directions that its own rule has chosen; 0 where the root chooses
    own_share: float = 0.0  # of the scatter that it scores by: the rest is the fleet's
    unlike: float = 0.0  # how much likelier its rows are than by the fleet alone, nats a row

    @classmethod
    def of(cls, engine: SAPCA) -> Method:
        if not engine.rule.adaptive:
            return cls(engine.algorithm)
        return cls(f"{engine.algorithm}, {engine.rule}", engine.target)


NO_METHOD = Method()


@dataclass(frozen=True, slots=True, eq=False)
class KernelSummary:
    """Two subspaces of the same rows, under one fingerprint."""

    features: Subspace  # of the rows in feature space, (dim, k)
    linear: Subspace  # of the scaled readings, (channels, k)

    @property
    def weight(self) -> float:
        return self.features.weight

    @property
    def parts(self) -> tuple[Subspace, Subspace]:
        """The subspace of the features, then that of the readings."""
        return self.features, self.linear

    @property
    def pieces(self) -> tuple[Subspace, Subspace]:
        return self.features, self.linear


def summary_of(*parts: Piece) -> Piece | KernelSummary:
    """Return the summary that has these `parts`: one, or the two subspaces of a kernel group."""
    if len(parts) == 1:
        return parts[0]
    return KernelSummary(*(directions for part in parts for directions in part.parts))


class KernelEngine:
    """Two `SAPCA`s that learn the same rows: their features (n, dim), and themselves, scaled."""

    def __init__(self, features: SAPCA, linear: SAPCA) -> None:
        self._features, self._linear = features, linear

    def learn(self, rows: Array, features: Storage, gaps: Guesses | None = None) -> None:
        # Features of a guess are learnt as they are: they follow from it, and are in no way linear.
        self._features.partial_fit(features)
        self._linear.partial_fit(rows, gaps=gaps)

    def fade(self, factor: float) -> None:
        self._features.fade(factor)
        self._linear.fade(factor)

    @property
    def method(self) -> Method:
        return Method.of(self._features)

    def summary(self) -> KernelSummary:
        """Return everything learnt, with float32 columns, as it will arrive."""
        fingerprint = self._features.subspace.schema
        features, linear = (
            replace(seen, basis=seen.basis.astype(np.float32), schema=fingerprint, spares=0)
            for seen in (self._features.subspace, self._linear.subspace)
        )
        return KernelSummary(features, linear)


class NoiseNeeded(NamedTuple):
    """How many numbers noise is added to, and how far one row in place of another moves them."""

    numbers: int
    sensitivity: float


class Summary(Protocol):
    """What was learnt: the machines pass it on, and only `Summaries` of its kind look inside."""

    @property
    def weight(self) -> float:
        """Effective number of samples."""

    @property
    def parts(self) -> tuple[Subspace, ...]:
        """The subspaces of it: of the features first, of the readings last; of ids none."""

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """As `parts`, as they are held: nothing is decomposed."""


class Learner(Protocol):
    """What one incarnation learns with."""

    def learn(self, rows: Array, features: Storage, gaps: Guesses | None = None) -> None:
        """Take in rows (n, channels), scaled and finite, and their features (n, dim)."""

    def fade(self, factor: float) -> None:
        """Multiply the weight of everything learnt so far by `factor`."""

    @property
    def method(self) -> Method:
        """What runs."""

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


# A summary of a kernel group has two subspaces; that of a narrow group is one whole scatter, and
# so is its merge.


class PartTrees:
    """Children by key, and their merge: a `MergeTree` of each part, all of one shape."""

    def __init__(self, ranks: Sequence[int], center: Center) -> None:
        self._trees = [MergeTree(rank=rank, center=center) for rank in ranks]

    def __len__(self) -> int:
        return len(self._trees[0])

    def __contains__(self, key: object) -> bool:
        return key in self._trees[0]

    def __setitem__(self, key: str, summary: Summary) -> None:
        for tree, part in zip(self._trees, summary.pieces, strict=True):
            tree[key] = part

    def __delitem__(self, key: str) -> None:
        for tree in self._trees:
            del tree[key]

    def root(self) -> Piece | KernelSummary:
        return summary_of(*(tree.root() for tree in self._trees))


class WholeTree(PartTrees):
    """Children of a narrow group: their merge is a whole scatter, rounded as it will arrive."""

    def __init__(self, rank: int, center: Center) -> None:
        super().__init__([rank], center)
        self._last: tuple[WholeScatter, WholeScatter] | None = None

    def root(self) -> WholeScatter:
        whole = self._trees[0].root_whole()
        if self._last is None or self._last[0] is not whole:
            self._last = whole, whole.rounded()
        return self._last[1]


class SumsLearner:
    """A learner of a group with noise: of whole rows, which it sums."""

    method = Method("sums of rows")

    def __init__(self, schema: Schema, clip: float) -> None:
        self._sums = RowSums.none(schema.fingerprint, schema.dim, clip)

    def learn(self, rows: Array, features: Storage, gaps: Guesses | None = None) -> None:
        if gaps is not None and gaps.mask.any():
            raise UsageError("where models carry noise, a row with a gap is not learnt")
        self._sums = self._sums.with_rows(rows)

    def fade(self, factor: float) -> None:
        raise UsageError("where models carry noise, no row fades")

    def summary(self) -> RowSums:
        return self._sums


class SumsTree:
    """Children of a group with noise: whole numbers add up in any order."""

    def __init__(self) -> None:
        self._sums = dict[str, RowSums]()

    def __len__(self) -> int:
        return len(self._sums)

    def __contains__(self, key: object) -> bool:
        return key in self._sums

    def __setitem__(self, key: str, summary: Summary) -> None:
        self._sums[key] = _sums(summary)

    def __delitem__(self, key: str) -> None:
        del self._sums[key]

    def root(self) -> RowSums:
        return _added(self._sums.values())


def _sums(summary: Summary) -> RowSums:
    if not isinstance(summary, RowSums):
        raise UsageError("where models carry noise, a summary is of sums of rows")
    return summary


def _added(summaries: Iterable[Summary]) -> RowSums:
    return reduce(RowSums.__add__, map(_sums, summaries))


MOST_TIMES = 4
"""A child's summary has at most so many times the directions that a group keeps. Ranks may differ a
little; but each report is merged again and again, at a cost that grows with them."""


class Summaries(ScoringSummaries, Protocol):
    """Everything that the machines do with summaries of one kind."""

    memory: int  # budget of each learner, in bytes
    exact: Exact  # "never": O(dim (k + b)), and no scatter of its own to score with

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
        """Return a summary under a schema as one under another, `like` rows with all channels."""

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
        """Return which children are outliers, and which count too much; `unit`: of a reading."""

    def noise_for(self, summary: Summary) -> NoiseNeeded:
        """Return how much noise is to be added to sums of rows."""

    def with_noise(self, summary: Summary, noise: Ints) -> Summary:
        """Return sums of rows with noise (numbers,) as a summary that may be published."""


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
    exact : {"auto", "never"}
        As in `SAPCA`. With "never", and with an adaptive rule, directions alone are learnt and
        sent, in narrow groups too: the paper's contract, O(dim (k + b)).
    """

    def __init__(
        self,
        rank: int | RankRule = 10,
        *,
        rank_max: int | None = None,
        oversample: int = 5,
        linear_rank: int | None = None,
        memory: int = DEFAULT_MEMORY,
        exact: Exact = "auto",
    ) -> None:
        self.rule = rule_of(rank)
        self.rank_max = rank_max or self.rule.highest or self.rule.start
        self.oversample = oversample
        self.linear_rank = linear_rank
        self.memory = memory
        self.exact = exact
        self._path: Exact = "never" if self.rule.adaptive else exact

    def at(self, rank: int) -> Subspaces:
        if rank in (0, self.rule.start):
            return self
        return Subspaces(
            rank,
            rank_max=max(rank, self.rank_max),
            oversample=self.oversample,
            linear_rank=self.linear_rank,
            memory=self.memory,
            exact=self.exact,
        )

    def engine(self, schema: Schema) -> SAPCA:
        """Return the engine of the rows, or of their features, which has learnt nothing.

        Features are stored in float32: they are numbers of one size, and reports have no more
        digits.
        """
        rule = within(self.rule, below(self.rank_max, schema.dim))
        oversample = self.oversample
        if isinstance(rule, FixedRank):
            (shown, *_), (kept, *_) = self._shown(_dims(schema)), self._kept(_dims(schema))
            rule, oversample = FixedRank(shown), kept - shown
        linear = schema.linear
        return SAPCA(
            rule,
            oversample=oversample,
            block_size=None if linear else BLOCK,
            exact=self._path,
            memory=self.memory,
            dtype=np.float64 if linear else np.float32,
            schema=schema,
        )

    def learner(self, schema: Schema) -> Learner:
        if schema.clip is not None:
            return SumsLearner(schema, schema.clip)
        engine = self.engine(schema)
        if schema.linear:
            return _Engine(engine, narrow=self.is_narrow(schema))
        shown = self._linear_shown(schema.width)
        readings = SAPCA(
            FixedRank(shown),
            oversample=self.linear_kept(schema.width) - shown,
            exact=self._path,
            memory=self.memory,
            schema=Schema(schema.width, center=schema.center),
        )
        return KernelEngine(engine, readings)

    def tree(self, schema: Schema) -> Tree:
        if schema.clip is not None:
            return SumsTree()
        center: Center = "own" if schema.center == "own" else "fleet"
        ranks = self._kept(_dims(schema))
        return WholeTree(ranks[0], center) if self.is_narrow(schema) else PartTrees(ranks, center)

    def merged(self, schema: Schema, parts: Sequence[Summary], *, own: bool) -> Summary:
        """Merge in the order given.

        The scatter of several parts is in float64: it is kept, or merged further, and rounded
        once, at the root of the tree. Otherwise bounds would grow with each of a node's restarts.
        """
        if isinstance(parts[0], RowSums):  # of an earlier schema, too
            return _added(parts)
        center: Center = "own" if schema.center == "own" and not own else "fleet"
        # By their own dimensions: rows of an earlier schema are folded as well.
        first, ranks = parts[0].pieces, self._kept([part.dim for part in parts[0].pieces])
        if len(first) == 1 and self._path == "auto" and is_narrow(first[0].dim, ranks[0]):
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
        """Return whether it has the schema, its dimensions, and a rank in proportion."""
        if not schema.features.settled:
            return False
        if isinstance(summary, RowSums):
            none = RowSums.none(schema.fingerprint, schema.dim, schema.clip or math.inf)
            return summary.like(none) and summary.possible
        dims = _dims(schema)
        return len(summary.pieces) == len(dims) and all(
            (part.schema, part.dim) == (schema.fingerprint, dim)
            and _in_proportion(part, MOST_TIMES * kept, whole=schema.linear)
            for part, dim, kept in zip(summary.pieces, dims, self._kept(dims), strict=True)
        )

    def faded(self, summary: Summary, factor: float) -> Summary:
        if factor == 1:
            return summary
        if isinstance(summary, RowSums):
            raise UsageError("where models carry noise, no row fades")
        return summary_of(*(part.faded(factor) for part in summary.pieces))

    def directions(self, summary: Summary) -> Summary:
        """As `WholeScatter.directions`, with float32 columns, as they will arrive."""
        if isinstance(summary, RowSums):
            summary = summary.whole
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
        if isinstance(summary, RowSums):
            return summary.packed
        return b"".join(map(_packed, summary.pieces))

    def factors(self, summary: Summary) -> tuple[Factors, ...]:
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
        return fill(rows, self.shown(summary).parts[-1])[0]

    def shown(self, summary: Summary) -> Summary:
        """Return the leading directions, which score rows."""
        parts = summary.parts
        ranks = self._shown([part.dim for part in parts])
        return summary_of(*(part.truncated(r) for part, r in zip(parts, ranks, strict=True)))

    def turn_degrees(self, before: Summary, after: Summary) -> float:
        """Return the largest principal angle between the shown directions, across a clear gap."""
        if isinstance(before, RowSums):
            return 0.0  # where models carry noise, rows do not say when they are reported
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

    def noise_for(self, summary: Summary) -> NoiseNeeded:
        return NoiseNeeded(len(_sums(summary).numbers), SENSITIVITY)

    def with_noise(self, summary: Summary, noise: Ints) -> Summary:
        return _sums(summary).with_noise(noise)

    def linear_kept(self, width: int) -> int:
        """Return how many directions of the readings a kernel group keeps, spares included."""
        most = self.linear_rank or min(self.rank_max, max(1, width // 2))
        return min(most + self.oversample, width)

    def is_narrow(self, schema: Schema) -> bool:
        narrow = schema.linear and is_narrow(schema.dim, self._kept((schema.dim,))[0])
        return narrow and self._path == "auto"

    def _linear_shown(self, width: int) -> int:
        return min(self.linear_rank or min(self.rule.start, max(1, width // 2)), width)

    def _shown(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Directions shown of each part, for the dimensions of the parts."""
        return (below(self.rule.start, dims[0]), *map(self._linear_shown, dims[1:]))

    def _kept(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Directions kept of each part, with the spare ones."""
        return (self.rank_max + self.oversample, *map(self.linear_kept, dims[1:]))


def below(rank: int, dim: int) -> int:
    """Return a rank as it is, or dim - 1: SPE by all directions would be rounding."""
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
    """SAPCA as a `Learner`; its summary is a whole scatter, or float32, as it will arrive."""

    def __init__(self, engine: SAPCA, *, narrow: bool) -> None:
        self._engine, self._narrow = engine, narrow

    def learn(self, rows: Array, features: Storage, gaps: Guesses | None = None) -> None:
        self._engine.partial_fit(features, gaps=gaps)

    def fade(self, factor: float) -> None:
        self._engine.fade(factor)

    @property
    def method(self) -> Method:
        return Method.of(self._engine)

    def summary(self) -> Piece:
        whole = self._engine.whole_scatter if self._narrow else None
        if whole is not None:
            return whole.rounded()
        seen = self._engine.subspace
        return replace(seen, basis=seen.basis.astype(np.float32), spares=0)
