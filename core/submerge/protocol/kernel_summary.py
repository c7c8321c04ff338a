"""KernelSummary: what a kernel group learns, of features and of the readings themselves.

A fault may leave the curved set that readings lie on and keep to every direction that they vary
along, or the other way round: the features show the first, the readings the second. The subspace
of the readings is small beside that of the features, and fills gaps. Both kinds of summary list
their `parts`, so that merging and scoring need not know the kind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from submerge._linalg import Array, Storage
from submerge.pca.expected import Guesses
from submerge.pca.rank import FixedRank, RankRule
from submerge.pca.sapca import SAPCA
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter
from submerge.schema import Schema

Piece = Subspace | WholeScatter
"""What holds the rows of one space."""

BLOCK = 64
"""Rows of features learnt at once."""


@dataclass(frozen=True, slots=True, eq=False)
class KernelSummary:
    """Two subspaces of the same rows.

    features : Of the rows in feature space, (dim, k).
    linear : Of the scaled readings, (channels, k); under the same fingerprint.
    """

    features: Subspace
    linear: Subspace

    @property
    def weight(self) -> float:
        """Effective number of samples."""
        return self.features.weight

    @property
    def parts(self) -> tuple[Subspace, Subspace]:
        """The subspace of the features, then that of the readings."""
        return self.features, self.linear

    @property
    def pieces(self) -> tuple[Subspace, Subspace]:
        """As `parts`."""
        return self.features, self.linear


def summary_of(*parts: Piece) -> Piece | KernelSummary:
    """Return the summary that has these `parts`: one, or the two subspaces of a kernel group."""
    if len(parts) == 1:
        return parts[0]
    return KernelSummary(*(directions for part in parts for directions in part.parts))


class KernelEngine:
    """Two `SAPCA`s that learn the same rows (n, channels), scaled.

    Features are stored in float32: they are numbers of one size, and reports have no more digits.
    """

    def __init__(
        self,
        schema: Schema,
        rule: RankRule,
        *,
        linear_rank: int,
        oversample: int,
        linear_oversample: int,
        memory: int,
    ) -> None:
        readings = Schema(schema.width, center=schema.center)
        self._fingerprint = schema.fingerprint
        self._features = SAPCA(
            rule,
            oversample=oversample,
            block_size=BLOCK,
            memory=memory,
            dtype=np.float32,
            schema=schema,
        )
        self._linear = SAPCA(
            FixedRank(linear_rank), oversample=linear_oversample, memory=memory, schema=readings
        )

    def learn(self, rows: Array, features: Storage, gaps: Guesses | None = None) -> None:
        """Take in rows (n, channels), scaled and finite, and their features (n, dim).

        What was filled is learnt as it is: its features follow from it, and are in no way linear.
        """
        self._features.partial_fit(features)
        self._linear.partial_fit(rows)

    def fade(self, factor: float) -> None:
        """Multiply the weight of everything learnt so far by `factor`."""
        self._features.fade(factor)
        self._linear.fade(factor)

    def summary(self) -> KernelSummary:
        """Return everything learnt, with float32 columns, as it will arrive."""
        features, linear = (
            replace(seen, basis=seen.basis.astype(np.float32), schema=self._fingerprint, spares=0)
            for seen in (self._features.subspace, self._linear.subspace)
        )
        return KernelSummary(features, linear)
