"""Twofold: what a kernel group remembers: its features, and the readings themselves.

A fault may leave the curved set that readings lie on and keep to every direction that they
vary along, or the other way about: the features see the one, the readings the other. The
readings' own subspace is small beside that of the features, and it is what gaps are filled
by. Here is all that tells a kernel group from a linear one: how it learns, merges, scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.pca.merging import merge
from submerge.pca.rank import FixedRank, RankRule
from submerge.pca.sapca import SAPCA
from submerge.pca.score import Scorer, contributions
from submerge.pca.subspace import Subspace
from submerge.pca.tree import MergeTree
from submerge.schema import Schema
from submerge.stats.node_mean import OwnMean

BLOCK = 64
"""Rows of features learnt at once."""


class Ranks(NamedTuple):
    """How many directions are kept: of the features, and of the readings."""

    features: int
    linear: int


@dataclass(frozen=True, slots=True, eq=False)
class KernelSummary:
    """Two memories of the same rows.

    Attributes
    ----------
    features : Subspace
        Of the rows in feature space, (dim, k).
    linear : Subspace
        Of the scaled readings, (channels, k); under the same fingerprint.
    """

    features: Subspace
    linear: Subspace

    @property
    def weight(self) -> float:
        """Effective number of samples."""
        return self.features.weight

    def faded(self, factor: float) -> KernelSummary:
        """Return this memory with all that it has seen counted `factor` times."""
        return KernelSummary(self.features.faded(factor), self.linear.faded(factor))

    def truncated(self, ranks: Ranks) -> KernelSummary:
        """Return the leading directions of both."""
        return KernelSummary(
            self.features.truncated(ranks.features), self.linear.truncated(ranks.linear)
        )


def merge_both(
    parts: Sequence[KernelSummary], *, ranks: Ranks, center: Literal["fleet", "own"]
) -> KernelSummary:
    """Merge features with features and readings with readings, as `merge`."""
    return KernelSummary(
        merge(*(part.features for part in parts), rank=ranks.features, center=center),
        merge(*(part.linear for part in parts), rank=ranks.linear, center=center),
    )


class KernelTree:
    """Children by key, and their merge: two `MergeTree`s of one shape."""

    def __init__(self, ranks: Ranks, *, center: Literal["fleet", "own"]) -> None:
        self._features = MergeTree(rank=ranks.features, center=center)
        self._linear = MergeTree(rank=ranks.linear, center=center)

    def __len__(self) -> int:
        return len(self._features)

    def __contains__(self, key: object) -> bool:
        return key in self._features

    def __setitem__(self, key: str, summary: KernelSummary) -> None:
        self._features[key], self._linear[key] = summary.features, summary.linear

    def __delitem__(self, key: str) -> None:
        del self._features[key], self._linear[key]

    def root(self) -> KernelSummary:
        """Return the merge of all children, at least one."""
        return KernelSummary(self._features.root(), self._linear.root())


class KernelEngine:
    """Two `SAPCA`s that learn the same rows (n, channels), scaled.

    Features are stored in float32: they are numbers of one size, and what is shipped of them
    has no more digits.
    """

    def __init__(
        self, schema: Schema, rule: RankRule, *, linear_rank: int, oversample: int
    ) -> None:
        readings = Schema(schema.width, center=schema.center)
        self._fingerprint = schema.fingerprint
        self._features = SAPCA(
            rule, oversample=oversample, block_size=BLOCK, dtype=np.float32, schema=schema
        )
        self._linear = SAPCA(FixedRank(linear_rank), oversample=oversample, schema=readings)

    def learn(self, rows: Array, features: Storage) -> None:
        """Take in rows (n, channels), scaled and finite, and their features (n, dim)."""
        self._features.partial_fit(features)
        self._linear.partial_fit(rows)

    def fade(self, factor: float) -> None:
        """Count all that was learnt so far `factor` times."""
        self._features.fade(factor)
        self._linear.fade(factor)

    def summary(self) -> KernelSummary:
        """Return all that was learnt, with float32 columns, as it will arrive."""
        features, linear = (
            replace(seen, basis=seen.basis.astype(np.float32), schema=self._fingerprint)
            for seen in (self._features.subspace, self._linear.subspace)
        )
        return KernelSummary(features, linear)


class KernelScorer:
    """Judges scaled readings by both: the one that is shown, without spares."""

    def __init__(self, shown: KernelSummary) -> None:
        self._features, self._linear = Scorer(shown.features), Scorer(shown.linear)

    def scores(
        self, rows: Array, features: Storage, own: OwnMean | None = None
    ) -> tuple[Array, Array, Array]:
        """Return SPE and T2 of features (n, dim), and SPE of their rows (n, channels)."""
        lifted, mean = (None, None) if own is None else (own.features, own.rows)
        return (*self._features.scores(features, lifted), self._linear.scores(rows, mean)[0])


def kernel_contributions(
    X: Array, shown: KernelSummary, schema: Schema, *, by_linear: npt.NDArray[np.bool_]
) -> Array:
    """Return the share that each channel has in a row's SPE, (n, channels).

    Parameters
    ----------
    X : (n, channels)
        Scaled readings.
    by_linear : (n,) of bool
        Which rows are judged by the readings, and which by the features.
    """
    shares = np.empty(X.shape)
    others = ~by_linear
    shares[by_linear] = contributions(X[by_linear], shown.linear)
    shares[others] = contributions(X[others], shown.features, schema.features)
    return shares
