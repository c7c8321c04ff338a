"""RowScorer: all statistics of rows by one model, in one pass over its matrices.

A summary has one part, or two in a kernel group: of the features, which SPE, T2 and distances are
of, and of the readings, which fill gaps and predict channels. What follows from the model alone is
computed once.

Without factors the noise is that of the subspace in every channel, and there are no distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from submerge._linalg import Array, Storage
from submerge.judge.decision import Mask
from submerge.pca.factor import Factors
from submerge.pca.missing import fill, shrunk
from submerge.pca.precision import Precision
from submerge.pca.reconstruct import Reconstruction
from submerge.pca.score import Scorer
from submerge.pca.subspace import Subspace
from submerge.stats.node_mean import OwnMean


class Statistics(NamedTuple):
    """What a model says of rows.

    spe, t2 : (n,)
    linear : (n,) or None, in a kernel group the SPE of the readings
    distance : (n,) or None, the squared Mahalanobis distance; None without factors
    errors : (n, channels), the error of predicting each channel from all the others, or its
        deviation from the mean where nothing predicts it
    """

    spe: Array
    t2: Array
    linear: Array | None
    distance: Array | None
    errors: Array


class Remaining(NamedTuple):
    """What is left of a row with gaps that were filled, each from 0 to 1.

    spe, t2 : factors on these statistics
    observed : share of the numbers of the row that were observed
    """

    spe: float = 1.0
    t2: float = 1.0
    observed: float = 1.0


class RowScorer:
    """Scores rows by one model.

    parts : With all directions that are known.
    shown : Their leading directions, which SPE and T2 are of.
    channels : How many of the leading numbers of a row are channels; the others are lags.
    factors : For each part; or none.

    expected : (channels,) or None. Mean squares of errors under the model; None where nothing
        predicts channels.
    """

    def __init__(
        self,
        parts: Sequence[Subspace],
        shown: Sequence[Subspace],
        channels: int,
        factors: Sequence[Factors] = (),
    ) -> None:
        self._readings = parts[-1] if factors else shown[-1]
        self._learnt, self._channels = shown[0], channels
        self._scorers = [Scorer(part) for part in shown]
        known = bool(factors)
        made = [
            Precision.of(part, each)
            for part, each in zip(
                parts if known else shown, factors if known else [None] * len(parts), strict=True
            )
        ]
        self._of_features = made[0] if known else None
        self._of_readings = made[-1]
        self._recall: Reconstruction | None = None
        if self._readings.rank:
            self._recall = Reconstruction(self._readings, channels, made[-1])
        self.expected = None if self._recall is None else self._recall.expected

    def statistics(self, rows: Array, features: Storage, own: OwnMean | None = None) -> Statistics:
        """Score rows.

        rows : (n, width). Scaled, without gaps.
        features : (n, dim). Of the same rows; the rows themselves in a linear group.
        own : Measure from there instead of the summary's mean.
        """
        kernel = len(self._scorers) > 1
        centered = rows - self.center(own)
        lifted = centered
        if kernel:
            mean = None if own is None else own.features
            lifted = features - (self._learnt.mean if mean is None else mean)
        spe, t2 = self._scorers[0].of(lifted)
        linear = self._scorers[1].of(centered)[0] if kernel else None
        off = distance = None
        if self._of_features is not None:
            off, distance = self._of_features.measure(lifted)
        if self._recall is None:
            errors = centered[:, : self._channels]
        elif off is None or kernel:
            errors = self._recall.left_out(centered)
        else:
            errors = self._recall.left_out_of(off)
        return Statistics(spe, t2, linear, distance, errors)

    def center(self, own: OwnMean | None = None) -> Array:
        """Return the mean of scaled rows, (width,)."""
        return self._readings.mean if own is None else own.rows

    def filled(self, rows: Array, own: OwnMean | None = None) -> Array:
        """Return rows (n, width), scaled, with the most likely value in each gap."""
        part = self._readings if own is None else replace(self._readings, mean=own.rows)
        return fill(rows, part, self._of_readings)[0]

    def left(self, present: Mask) -> Remaining:
        """Return what is left if only some numbers of a row are present.

        1 in a kernel group, where the effect of a gap is unknown.
        """
        if len(self._scorers) > 1 or not self._readings.rank:
            return Remaining()
        return Remaining(*shrunk(present, self._learnt, self._of_readings), float(present.mean()))
