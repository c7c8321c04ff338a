"""score(): how far the rows of a block are from a model, and which channels are to blame.

Four statistics: SPE, the squared prediction error, is how far a row lies off the subspace; T2,
Hotelling's T-squared, is how far out it lies within it. In a kernel group both are of a row's
features, and `linear` is the SPE of the readings themselves. `channel` is the largest error of a
single channel, predicted from all the others, over its typical error.

1. `spe`, `t2` and `linear` are those of the filled row. A filled value cannot be anomalous, so a
   row with gaps scores less: `even` are the scores scaled to those of rows without gaps. Limits are
   compared with these, and measured on these.
2. About a mean of n readings, rows vary 1 + 1/n times as much: scores are divided by that.
3. One rule finds the channels to blame, on score lines, in alarms and in files: the share of each
   in the squared errors of predicting it from all the others, over its typical squared error
   (reconstruction-based; docs/decisions/0020).

References
----------
Jackson and Mudholkar, Control procedures for residuals associated with principal component
analysis, Technometrics 21 (1979): SPE. Alcala and Qin, Reconstruction-based contribution for
process monitoring, Automatica 45 (2009): whom to blame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.judge.decision import Mask
from submerge.judge.prepare import Block
from submerge.pca.reconstruct import Reconstruction, shares_of
from submerge.stats.block_maxima import By
from submerge.stats.node_mean import OwnMean
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.score_limits import Limits

PATTERNS = 256
"""Patterns of gaps for which the remaining share of scores is cached."""

LEAST_LEFT = 0.25
"""Least share of a score that is believed to remain: with less, the rest has no meaning."""


class RowScoring(Protocol):
    """Scores rows by one summary."""

    def scores(
        self, rows: Array, features: Storage, own: OwnMean | None = None, /
    ) -> tuple[Array, Array, Array | None]:
        """Return SPE and T2, (n,) each, and in a kernel group the SPE of the readings, else None.

        SPE and T2 are of the features (n, dim), the third is of the scaled rows (n, channels).

        own : measure from there instead of the summary's mean
        """


class ScoringSummaries(Protocol):
    """The part of `Summaries` that scores."""

    def scorer(self, summary: Any) -> RowScoring:
        """Return a scorer by a summary."""

    def placed(self, summary: Any, own: OwnMean) -> Any:
        """Return a summary about a node's own mean."""

    def center(self, summary: Any) -> Array:
        """Return the mean of scaled readings, (channels,)."""

    def reconstruction(self, summary: Any, channels: int) -> Reconstruction | None:
        """Return what predicts each channel from the others; None without a direction.

        channels : how many of the leading numbers of a row are current; the others are lags
        """

    def shrunk(self, present: Mask, summary: Any) -> tuple[float, float]:
        """Return what is left of SPE and of T2 if only some channels are present."""

    def filled(self, rows: Array, summary: Any) -> Array:
        """Return rows (n, channels), scaled, with the most likely value in each gap."""


class ScoringModel:
    """A model to score with. What follows from its summary alone is computed once.

    Parameters
    ----------
    summaries : ScoringSummaries
    summary : Summary
    limits : Limits or None
        Limits on recent scores of the group.
    channels : int
        How many of the leading numbers of a row are channels; the others are copies of them from
        earlier rows (lags).
    """

    def __init__(
        self, summaries: ScoringSummaries, summary: Any, limits: Limits | None, channels: int
    ) -> None:
        self.summary, self.limits, self.channels = summary, limits, channels
        self.scorer = summaries.scorer(summary)
        self.reconstruction = summaries.reconstruction(summary, channels)
        self._summaries = summaries
        self._left: dict[bytes, tuple[float, float]] = {}  # by pattern of gaps

    def placed(self, own: OwnMean | None) -> Any:
        """Return its summary about a node's own mean, if there is one."""
        return self.summary if own is None else self._summaries.placed(self.summary, own)

    def center(self, own: OwnMean | None) -> Array:
        """Return the mean of scaled rows, (channels,)."""
        return self._summaries.center(self.summary) if own is None else own.rows

    def filled(self, rows: Array, own: OwnMean | None) -> Array:
        """Return rows (n, channels), scaled, with the most likely value in each gap."""
        return self._summaries.filled(rows, self.placed(own))

    def left(self, gaps: Mask) -> tuple[Array, Array]:
        """Return what is left of SPE and of T2 with gaps (n, channels) filled, (n,) each."""
        spe, t2 = np.ones(len(gaps)), np.ones(len(gaps))
        for i in np.flatnonzero(gaps.any(axis=1)).tolist():
            pattern = gaps[i].tobytes()
            if pattern not in self._left:
                if len(self._left) >= PATTERNS:
                    self._left.clear()
                self._left[pattern] = self._summaries.shrunk(~gaps[i], self.summary)
            spe[i], t2[i] = self._left[pattern]
        # Not less: a score of few channels says little.
        return np.maximum(spe, LEAST_LEFT), np.maximum(t2, LEAST_LEFT)


@dataclass(frozen=True, slots=True, eq=False)
class RowScores:
    """How far each row of a block is from a model.

    Attributes
    ----------
    spe, t2 : (n,)
    linear : (n,) or None
        None in a linear group.
    even : mapping of statistic to (n,)
        Comparable from row to row: scaled to the scores of rows without gaps.
    over : mapping of statistic to (n,)
        The highest share whose limit each score is above, 0 for none; without limits, 0. For
        `spe` and `t2`, and for `linear` if there is one.
    anomaly : (n,) or None
        In a kernel group with limits, by the larger kind of SPE: 0 for the median of recent rows, 1
        at the 99 % limit.
    errors : (n, channels)
        The error of predicting each channel from all the others; lags are left out.
    expected : (channels,) or None
        Mean squares of `errors` under the model. None where nothing predicts channels; `errors` are
        then the distances to the mean.
    residual_scale : ResidualScale or None
        Typical squared errors at this node.
    """

    spe: Array
    t2: Array
    linear: Array | None
    even: Mapping[By, Array]
    over: Mapping[By, Array]
    anomaly: Array | None
    errors: Array
    expected: Array | None
    residual_scale: ResidualScale | None

    @property
    def over_spe(self) -> Array:
        """(n,), the highest share whose limit SPE of either kind is above."""
        over = self.over["spe"]
        return over if self.linear is None else np.maximum(over, self.over["linear"])

    @property
    def rank(self) -> Array:
        """(n,), a number to sort rows by, the most anomalous the largest."""
        if self.anomaly is not None:
            return self.anomaly
        return self.spe if self.linear is None else self.linear

    def blame(self, which: npt.NDArray[np.intp] | None = None) -> Array:
        """Return which channels make rows anomalous: (n, channels), shares that sum to 1.

        All 0 for a row that is as predicted.

        which : indices of rows; None takes all
        """
        usual = (
            self.residual_scale.squares
            if self.residual_scale is not None and self.residual_scale.ready
            else None
        )
        errors = self.errors if which is None else self.errors[which]
        return shares_of(errors, self.expected, usual)

    def top(self, n: int) -> tuple[npt.NDArray[np.intp], Array]:
        """Return the first n channels to blame of each row, and their shares."""
        shares = self.blame()
        order = np.argsort(-shares, axis=1, kind="stable")[:, :n]
        return order, np.take_along_axis(shares, order, axis=1)


def score(
    block: Block,
    model: ScoringModel,
    own: OwnMean | None = None,
    residual_scale: ResidualScale | None = None,
    *,
    excess: float | None = None,
) -> RowScores:
    """Score the rows of a block.

    Parameters
    ----------
    block : Block
    model : ScoringModel
    own : OwnMean, optional
        The node's own mean, used instead of the model's.
    residual_scale : ResidualScale, optional
        Typical errors of each channel at this node.
    excess : float, optional
        How much more rows vary about `own` than about their true mean. By default `own.excess`; 1
        for rows that are part of `own`.
    """
    spe, t2, linear = model.scorer.scores(block.rows, block.features, own)
    if own is not None:
        excess = own.excess if excess is None else excess
        spe, t2 = spe / excess, t2 / excess
        linear = None if linear is None else linear / excess
    even: dict[By, Array] = {"spe": spe, "t2": t2}
    if block.gaps is not None:
        left_spe, left_t2 = model.left(block.gaps)
        even = {"spe": spe / left_spe, "t2": t2 / left_t2}
    if linear is not None:
        even["linear"] = linear
    limits, anomaly = model.limits, None
    if limits is None:
        over: dict[By, Array] = {kind: np.zeros(len(spe)) for kind in even}
    else:
        over = {kind: limits.above(scores, kind) for kind, scores in even.items()}
        if linear is not None:
            anomaly = limits.anomaly_score(spe, linear)
    centered, recall = block.rows - model.center(own), model.reconstruction
    errors = centered[:, : model.channels] if recall is None else recall.left_out(centered)
    if recall is not None and residual_scale is not None and residual_scale.ready:
        even["channel"] = residual_scale.largest(errors, recall.expected)
    expected = None if recall is None else recall.expected
    return RowScores(spe, t2, linear, even, over, anomaly, errors, expected, residual_scale)
