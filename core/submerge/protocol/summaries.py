"""What the two machines ask of a summary: learn it, merge it, fade it, score with it.

The machines count readings exactly once whatever a summary is. `Subspaces` is the real
thing; `simulate.samples` puts sets of sample ids in its place, so that the simulator
sees through the same code which reading went where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.pca.merging import merge
from submerge.pca.missing import fill, shrunk
from submerge.pca.rank import FixedRank, RankRule
from submerge.pca.reconstruct import Reconstruction
from submerge.pca.sapca import SAPCA
from submerge.pca.score import Scorer, contributions
from submerge.pca.subspace import Subspace
from submerge.pca.tree import MergeTree
from submerge.protocol.kernel_summary import (
    KernelEngine,
    KernelScorer,
    KernelSummary,
    KernelTree,
    Ranks,
    kernel_contributions,
    merge_both,
)
from submerge.robust.outliers import Screening, both, judged
from submerge.schema import Schema
from submerge.stats.node_mean import OwnMean

MOST_TIMES = 4
"""A child's summary has at most so many times the directions that a group keeps. Ranks may
differ a little; but each report is merged again and again, at a price that grows with them."""

Summary = Any
"""Of one `Summaries`: the machines hand it on and never look inside."""


class Learner(Protocol):
    """One incarnation's memory."""

    def learn(self, rows: Array, features: Storage) -> None:
        """Take in rows (n, channels), scaled and finite, and their features (n, dim)."""

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

    def scores(
        self, rows: Array, features: Storage, own: OwnMean | None = None, /
    ) -> tuple[Array, Array, Array | None]:
        """Return SPE and T2 of features (n, dim): (n,) each.

        In a kernel group SPE of the scaled rows (n, channels) themselves comes third; elsewhere
        features are the rows, and it is None.

        own : measure from there instead of the summary's mean
        """


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

    def placed(self, summary: Summary, own: OwnMean) -> Summary:
        """Return it about a node's own mean."""

    def center(self, summary: Summary) -> Array:
        """Return where scaled readings lie, (channels,)."""

    def reconstruction(self, summary: Summary, channels: int) -> Reconstruction | None:
        """Return what says of each channel what the others make of it; None where nothing does.

        channels : how many of the leading numbers of a row are newest ones; others are lags
        """

    def shrunk(self, present: npt.NDArray[np.bool_], summary: Summary) -> tuple[float, float]:
        """Return what is left of SPE and of T2 where only some channels are present."""

    def filled(self, rows: Array, summary: Summary) -> Array:
        """Return rows (n, channels), scaled, with what each gap would most likely have been."""

    def moved(self, before: Summary, after: Summary) -> float:
        """Return by how many degrees what is shown has turned; 0 where that has no answer."""

    def judged(self, schema: Schema, parts: Mapping[str, Summary], *, unit: float) -> Screening:
        """Say which children are far from the others, and which count for too much.

        unit : what one reading weighs in them, faded as they are
        """


class Subspaces:
    """Summaries that are subspaces; in a kernel group two of them (`KernelSummary`).

    Parameters
    ----------
    rank : int or RankRule
        As in `SAPCA`: what is shown and scored with.
    oversample : int
        Spares, learnt, shipped and merged beside those shown.
    linear_rank : int, optional
        In a kernel group, directions of the readings themselves that are shown beside those of
        their features; by default as many, but at most half of the channels.
    """

    def __init__(
        self, rank: int | RankRule = 10, *, oversample: int = 5, linear_rank: int | None = None
    ) -> None:
        self.rule = rank if isinstance(rank, RankRule) else FixedRank(rank)
        self.oversample = oversample
        self.linear_rank = linear_rank

    def learner(self, schema: Schema) -> Learner:
        """Return an engine that has learnt nothing."""
        rule = self.rule
        if isinstance(rule, FixedRank):
            rule = FixedRank(min(rule.start, schema.dim))
        if schema.linear:
            return _Engine(SAPCA(rule, oversample=self.oversample, schema=schema))
        linear = self._shown(schema.width).linear
        return KernelEngine(schema, rule, linear_rank=linear, oversample=self.oversample)

    def tree(self, schema: Schema) -> Tree:
        """Return a tree at the working rank."""
        center: Literal["fleet", "own"] = "own" if schema.center == "own" else "fleet"
        if schema.linear:
            return MergeTree(rank=self._kept, center=center)
        return KernelTree(self._both_kept(schema.width), center=center)

    def merged(self, schema: Schema, parts: Sequence[Summary], *, own: bool) -> Summary:
        """Merge in the order given."""
        center: Literal["fleet", "own"] = "own" if schema.center == "own" and not own else "fleet"
        # By what they are: what is left of an earlier schema is folded as well.
        if isinstance(parts[0], KernelSummary):
            return merge_both(parts, ranks=self._both_kept(parts[0].linear.dim), center=center)
        return merge(*parts, rank=self._kept, center=center)

    def fits(self, schema: Schema, summary: Summary) -> bool:
        """It is of the schema, of its dimensions, and of a rank that is not out of proportion.

        Nothing is before gamma is settled.
        """
        if not schema.features.settled:
            return False
        if schema.linear:
            fits = isinstance(summary, Subspace) and _is_of(summary, schema, schema.dim)
            return fits and summary.rank <= MOST_TIMES * self._kept
        kept = self._both_kept(schema.width)
        return (
            isinstance(summary, KernelSummary)
            and _is_of(summary.features, schema, schema.dim)
            and _is_of(summary.linear, schema, schema.width)
            and summary.features.rank <= MOST_TIMES * kept.features
            and summary.linear.rank <= MOST_TIMES * kept.linear
        )

    def faded(self, summary: Summary, factor: float) -> Summary:
        """As `Subspace.faded`."""
        return summary if factor == 1 else summary.faded(factor)

    def packed(self, summary: Summary) -> bytes:
        """float32 columns, the rest in full: 4 dim k + 8 (dim + k) + 24 bytes, for each of two."""
        if isinstance(summary, KernelSummary):
            return _packed(summary.features) + _packed(summary.linear)
        return _packed(summary)

    def scorer(self, summary: Summary) -> Scoring:
        """Score with the leading directions, without the spares."""
        if isinstance(summary, KernelSummary):
            return KernelScorer(self.shown(summary))
        return _Scorer(Scorer(self.shown(summary)))

    def placed(self, summary: Summary, own: OwnMean) -> Summary:
        """Return the same directions about a node's own mean."""
        if isinstance(summary, KernelSummary) and own.features is not None:
            return KernelSummary(
                replace(summary.features, mean=own.features),
                replace(summary.linear, mean=own.rows),
            )
        return replace(summary, mean=own.rows)

    def center(self, summary: Summary) -> Array:
        """Of the readings, in a kernel group."""
        mean: Array = summary.linear.mean if isinstance(summary, KernelSummary) else summary.mean
        return mean

    def reconstruction(self, summary: Summary, channels: int) -> Reconstruction | None:
        """By the leading directions of the readings; None before there are any."""
        shown = self.shown(summary)
        linear = shown.linear if isinstance(shown, KernelSummary) else shown
        return Reconstruction(linear, channels) if linear.rank else None

    def shrunk(self, present: npt.NDArray[np.bool_], summary: Summary) -> tuple[float, float]:
        """As `missing.shrunk`; of features a gap may take nothing, as far as anybody knows."""
        shown = self.shown(summary)
        if isinstance(shown, KernelSummary):
            return 1.0, 1.0
        return shrunk(present, shown) if shown.rank else (1.0, 1.0)

    def filled(self, rows: Array, summary: Summary) -> Array:
        """By the leading directions of the readings, as `missing.fill`."""
        shown = self.shown(summary)
        return fill(rows, shown.linear if isinstance(shown, KernelSummary) else shown)[0]

    def shown(self, summary: Summary) -> Summary:
        """Return the leading directions: those that are scored with."""
        if isinstance(summary, KernelSummary):
            return summary.truncated(self._shown(summary.linear.dim))
        return summary.truncated(self.rule.start)

    def contributions(
        self, rows: Array, summary: Summary, schema: Schema, *, by_linear: npt.NDArray[np.bool_]
    ) -> Array:
        """Return the share of each channel in the SPE of rows (n, channels), scaled.

        by_linear : (n,) of bool, which rows to judge by the readings rather than their features
        """
        shown = self.shown(summary)
        if isinstance(shown, KernelSummary):
            return kernel_contributions(rows, shown, schema, by_linear=by_linear)
        return contributions(rows, shown)

    def moved(self, before: Summary, after: Summary) -> float:
        """Largest principal angle between the shown directions, where a gap tells them apart."""
        if isinstance(before, KernelSummary):
            before, after = before.features, after.features
        r = self.rule.start
        if before.rank < r or after.rank < r:
            # A direction more is a turn of 90 degrees; fewer than r on both sides is young.
            return 90.0 if after.rank != before.rank else 0.0
        if after.rank > r and after.sigma[r - 1] < 1.1 * after.sigma[r]:
            return 0.0
        cosines = np.linalg.svd(before.basis[:, :r].T @ after.basis[:, :r], compute_uv=False)
        return float(np.degrees(np.arccos(np.clip(cosines.min(), 0.0, 1.0))))

    def judged(self, schema: Schema, parts: Mapping[str, Summary], *, unit: float) -> Screening:
        """By the directions that are shown; in a kernel group, of features and of readings."""
        means = schema.center != "own"
        if schema.linear:
            return judged(parts, rank=self.rule.start, unit=unit, means=means)
        ranks = self._shown(schema.width)
        features = {name: part.features for name, part in parts.items()}
        linear = {name: part.linear for name, part in parts.items()}
        return both(
            judged(features, rank=ranks.features, unit=unit, means=means),
            judged(linear, rank=ranks.linear, unit=unit, means=means),
            of=len(parts),
        )

    def linear_kept(self, width: int) -> int:
        """Return how many directions of the readings a kernel group keeps, spares included."""
        return min(self._shown(width).linear + self.oversample, width)

    def _shown(self, width: int) -> Ranks:
        """Directions shown of the features, and of readings of so many channels."""
        linear = self.linear_rank or min(self.rule.start, max(1, width // 2))
        return Ranks(self.rule.start, min(linear, width))

    @property
    def _kept(self) -> int:
        return (self.rule.highest or self.rule.start) + self.oversample

    def _both_kept(self, width: int) -> Ranks:
        return Ranks(self._kept, self.linear_kept(width))


def _is_of(subspace: Subspace, schema: Schema, dim: int) -> bool:
    return (schema.fingerprint, dim) == (subspace.schema, subspace.dim)


def _packed(subspace: Subspace) -> bytes:
    exact = (subspace.weight, subspace.energy, subspace.spectral_bound)
    return b"".join(
        array.tobytes()
        for array in (
            subspace.basis.T.astype(np.float32, copy=False),
            subspace.sigma,
            subspace.mean,
            np.array(exact),
        )
    )


class _Scorer:
    """A subspace's scorer as a `Scoring`."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    def scores(
        self, rows: Array, features: Storage, own: OwnMean | None = None
    ) -> tuple[Array, Array, None]:
        return (*self._scorer.scores(features, None if own is None else own.rows), None)


class _Engine:
    """SAPCA as a `Learner`: what it shows has float32 columns, as it will arrive."""

    def __init__(self, engine: SAPCA) -> None:
        self._engine = engine

    def learn(self, rows: Array, features: Storage) -> None:
        self._engine.partial_fit(features)

    def fade(self, factor: float) -> None:
        self._engine.fade(factor)

    def summary(self) -> Subspace:
        seen = self._engine.subspace
        return replace(seen, basis=seen.basis.astype(np.float32))
