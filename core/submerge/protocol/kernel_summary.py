"""Twofold: what a kernel group remembers: its features, and the readings themselves.

A fault may leave the curved set that readings lie on and keep to every direction that they
vary along, or the other way about: the features see the one, the readings the other. The
readings' own subspace is small beside that of the features, and it is what gaps are filled
by. Both kinds of summary name their `parts`, so that merging and scoring need not ask which
kind it is; how a kernel group learns is here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.pca.rank import FixedRank, RankRule
from submerge.pca.sapca import SAPCA
from submerge.pca.score import contributions
from submerge.pca.subspace import Subspace
from submerge.schema import Schema

BLOCK = 64
"""Rows of features learnt at once."""


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

    @property
    def parts(self) -> tuple[Subspace, Subspace]:
        """Both: what is learnt comes first, the readings last."""
        return self.features, self.linear


def summary_of(*parts: Subspace) -> Subspace | KernelSummary:
    """Return the summary that has these `parts`: one, or those of a kernel group."""
    return KernelSummary(*parts) if len(parts) > 1 else parts[0]


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


def kernel_contributions(
    X: Array,
    learnt: Subspace,
    readings: Subspace,
    schema: Schema,
    *,
    by_linear: npt.NDArray[np.bool_],
) -> Array:
    """Return the share that each channel has in a row's SPE, (n, channels).

    Parameters
    ----------
    X : (n, channels)
        Scaled readings.
    learnt, readings : Subspace
        Of their features, and of themselves, at the ranks to score with.
    by_linear : (n,) of bool
        Which rows are judged by the readings, and which by the features.
    """
    shares = np.empty(X.shape)
    others = ~by_linear
    shares[by_linear] = contributions(X[by_linear], readings)
    shares[others] = contributions(X[others], learnt, schema.features)
    return shares
