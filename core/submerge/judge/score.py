"""score(): how far a block's rows are from what a model says, and which channels are to blame.

Four statistics: SPE, the squared prediction error, is how far a row lies off the subspace; T2,
Hotelling's statistic, how far out along it. In a kernel group both are of a row's features, and
`linear` is the SPE of the readings themselves. `channel` is the largest error of a single channel,
predicted from all the others, over what is usual for it.

1. `spe`, `t2` and `linear` are those of the row as it was filled. What was filled cannot be
   anomalous, so a row with gaps scores less: `even` are the scores brought to what whole rows come
   to. Limits are compared with these, and measured on these.
2. About a mean that n readings are behind, rows vary 1 + 1/n times as much: scores are divided by
   that.
3. One rule says which channels are to blame, on score lines, in alarms and in files: the share of
   each in the squared errors of predicting it from all the others, over what is usual for it
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
"""Patterns of gaps of which it is remembered what they take from scores."""

LEAST_LEFT = 0.25
"""Of a score: below it, gaps have taken so much that the rest says nothing."""


class RowScoring(Protocol):
    """SPE and T2 by one summary, and the SPE of the readings in a kernel group, else None."""

    def scores(
        self, rows: Array, features: Storage, own: OwnMean | None = None, /
    ) -> tuple[Array, Array, Array | None]:
        """Return them for rows (n, channels) with features (n, dim); `own`: about that mean."""


class ScoringSummaries(Protocol):
    """What `Summaries` has for scoring."""

    def scorer(self, summary: Any) -> RowScoring:
        """Return what scores by a summary."""

    def placed(self, summary: Any, own: OwnMean) -> Any:
        """Return a summary about a node's own mean."""

    def center(self, summary: Any) -> Array:
        """Return where scaled readings lie, (channels,)."""

    def reconstruction(self, summary: Any, channels: int) -> Reconstruction | None:
        """Return what predicts each channel from the others; None where nothing does."""

    def shrunk(self, present: Mask, summary: Any) -> tuple[float, float]:
        """Return what is left of SPE and of T2 where only some channels are present."""

    def filled(self, rows: Array, summary: Any) -> Array:
        """Return rows (n, channels), scaled, with each gap as it would most likely have been."""


class ScoringModel:
    """A model to score with. What follows from its summary alone is worked out once.

    Parameters
    ----------
    summaries : ScoringSummaries
    summary : Summary
    limits : Limits or None
        Of recent scores of the group.
    channels : int
        How many of the leading numbers of a row are channels; what follows are copies of them from
        rows before (lags).
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
        """Return where scaled rows lie, (channels,)."""
        return self._summaries.center(self.summary) if own is None else own.rows

    def filled(self, rows: Array, own: OwnMean | None) -> Array:
        """Return rows (n, channels), scaled, with each gap as it would most likely have been."""
        return self._summaries.filled(rows, self.placed(own))

    def left(self, gaps: Mask) -> tuple[Array, Array]:
        """Return what is left of SPE and of T2 where gaps (n, channels) were filled, (n,) each."""
        spe, t2 = np.ones(len(gaps)), np.ones(len(gaps))
        for i in np.flatnonzero(gaps.any(axis=1)).tolist():
            pattern = gaps[i].tobytes()
            if pattern not in self._left:
                if len(self._left) >= PATTERNS:
                    self._left.clear()
                self._left[pattern] = self._summaries.shrunk(~gaps[i], self.summary)
            spe[i], t2[i] = self._left[pattern]
        # Not beyond: of a row with few channels left a score says little.
        return np.maximum(spe, LEAST_LEFT), np.maximum(t2, LEAST_LEFT)


@dataclass(frozen=True, slots=True, eq=False)
class RowScores:
    """How far each row of a block is from what a model says.

    Attributes
    ----------
    spe, t2 : (n,)
    linear : (n,) or None
        None outside kernel groups.
    even : mapping of statistic to (n,)
        Comparable from row to row: what gaps take from scores is given back.
    over : mapping of statistic to (n,)
        The highest share of the model's limits that each is above, 0 for none; without limits, 0.
        Of `spe` and `t2`, and of `linear` where there is one.
    anomaly : (n,) or None
        In a kernel group with limits: by the larger kind of SPE, 0 like the middle of recent rows,
        1 at the 99 % limit.
    errors : (n, channels)
        By how much each channel differs from what all the others say; lags are left out.
    expected : (channels,) or None
        Mean squares of `errors` under the model; None where nothing tells channels from others,
        and `errors` are then how far the row is from the mean.
    usual : Usual or None
        Mean squares of errors at this node.
    """

    spe: Array
    t2: Array
    linear: Array | None
    even: Mapping[By, Array]
    over: Mapping[By, Array]
    anomaly: Array | None
    errors: Array
    expected: Array | None
    usual: ResidualScale | None

    @property
    def over_spe(self) -> Array:
        """(n,), the highest share that SPE of either kind is above."""
        over = self.over["spe"]
        return over if self.linear is None else np.maximum(over, self.over["linear"])

    @property
    def rank(self) -> Array:
        """(n,), what rows compare by, the most anomalous the largest."""
        if self.anomaly is not None:
            return self.anomaly
        return self.spe if self.linear is None else self.linear

    def blame(self, which: npt.NDArray[np.intp] | None = None) -> Array:
        """Return which channels rows are anomalous by: (n, channels), shares that sum to 1.

        All 0 for a row that is what it was expected to be.

        which : numbers of the rows to ask about; None asks about all
        """
        usual = self.usual.squares if self.usual is not None and self.usual.ready else None
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
    usual: ResidualScale | None = None,
    *,
    excess: float | None = None,
) -> RowScores:
    """Score the rows of a block.

    Parameters
    ----------
    block : Block
    model : ScoringModel
    own : OwnMean, optional
        The node's own mean, to measure from instead of the model's.
    usual : Usual, optional
        How far each channel usually strays at this node.
    excess : float, optional
        How much more rows vary about `own` than about where they lie. By default as `own` says;
        1 of rows that are in `own` themselves.
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
            anomaly = limits.anomaly_score(spe, linear)[0]
    centered, recall = block.rows - model.center(own), model.reconstruction
    errors = centered[:, : model.channels] if recall is None else recall.left_out(centered)
    if recall is not None and usual is not None and usual.ready:
        even["channel"] = usual.largest(errors, recall.expected)
    expected = None if recall is None else recall.expected
    return RowScores(spe, t2, linear, even, over, anomaly, errors, expected, usual)
