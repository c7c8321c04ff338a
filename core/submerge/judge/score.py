"""score(): how far the rows of a block are from a model, and which channels are to blame.

SPE, the squared prediction error (Jackson and Mudholkar, Technometrics 21, 1979), is how far a row
lies off the subspace; T2, Hotelling's T-squared, how far out within it. In a kernel group both are
of features, and `linear` is the SPE of the readings. `distance` joins them, the squared Mahalanobis
distance with a noise for each channel (`pca.factor`): where the model has factors, alarms are
raised by it. `channel` is the largest error of a channel over its typical error.

1. `spe`, `t2` and `linear` are those of the filled row. A filled value cannot be anomalous, so a
   row with gaps scores less: `even` are the scores scaled to those of rows without gaps. Limits are
   compared with these, and measured on these. So are the errors of its channels.
2. About a mean of n readings, rows vary 1 + 1/n times as much: scores are divided by that.
3. One rule finds the channels to blame: the share of each in the squared errors of predicting it
   from all the others, over its typical squared error (Alcala and Qin, Automatica 45, 2009;
   docs/decisions/0020).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.judge.decision import Mask
from submerge.judge.prepare import Block
from submerge.pca.factor import Factors, Precision
from submerge.pca.missing import fill, shrunk, without_gaps
from submerge.pca.own_scatter import OwnScatter, of_node
from submerge.pca.reconstruct import NO_PAIRS, SURE, Pairs, Reconstruction, shares_of, usual_squares
from submerge.pca.score import Scorer
from submerge.pca.subspace import Subspace
from submerge.stats.node_mean import OwnMean
from submerge.stats.residual_scale import ResidualScale, largest_square
from submerge.stats.resolution import Steps, as_read
from submerge.stats.score_limits import Limits, LimitSteps
from submerge.stats.statistic import By


class Statistics(NamedTuple):
    """What a model says of rows (n,); None where it does not apply."""

    spe: Array
    t2: Array
    linear: Array | None  # in a kernel group the SPE of the readings
    distance: Array | None  # squared, Mahalanobis; None without factors
    errors: Array  # (n, channels), of predicting each from all others; else deviations
    farther: Array | None = None  # (n, channels), factors to `errors` where steps are coarse
    sure: Mask | None = None  # (channels,), of what errors were measured: it has varied


class Remaining(NamedTuple):
    """What is left of a row with filled gaps: factors, and the share of numbers observed."""

    spe: float = 1.0
    t2: float = 1.0
    observed: float = 1.0
    # (channels,): by how much more the error of each channel varies that others present predict,
    # over that by all others; None if nothing predicts them.
    farther: Array | None = None


class RowScorer:
    """Scores rows by one model.

    parts, factors : With all directions that are known; for each part, or none.
    shown : Their leading directions, which SPE and T2 are of.
    channels : How many of the leading numbers of a row are channels; the others are lags.
    expected : (channels,). Mean squares of errors under the model; None where nothing predicts.
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
        self._coarse: tuple[bytes, Reconstruction] | None = None  # by its noise
        self._read: tuple[Steps, Reconstruction] | None = None  # by steps that are the same object

    def statistics(
        self, rows: Array, features: Storage, own: OwnMean | None = None, steps: Steps | None = None
    ) -> Statistics:
        """Score rows (n, width), scaled, no gaps, by features (n, dim), about an own mean."""
        kernel = len(self._scorers) > 1
        centered = rows - self.center(own)
        lifted = centered
        if kernel:
            mean = None if own is None else own.features
            lifted = features - (self._learnt.mean if mean is None else mean)
        spe, t2 = self._scorers[0].of(lifted)
        linear = self._scorers[1].of(centered)[0] if kernel else None
        if self._of_features is not None and self._recall is not None and not kernel:
            return Statistics(spe, t2, None, *self._distances(self._recall, lifted, steps))
        distance = None
        if self._of_features is not None:
            distance = self._of_features.measure(lifted)[1]
        errors = centered[:, : self._channels]
        if self._recall is not None:
            errors = self._recall.left_out(centered)
        return Statistics(spe, t2, linear, distance, errors)

    def _distances(
        self, recall: Reconstruction, rows: Array, steps: Steps | None
    ) -> tuple[Array, Array, Array | None, Mask | None]:
        """Return the last parts of `Statistics`, from distances on."""
        read = [(0, len(rows), recall)] if steps is None else self._as_read(recall, rows, steps)
        found = []
        for begin, end, by in read:
            off, distance = by.precision.measure(rows[begin:end])
            found.append((distance, by.left_out_of(off)))
        distance, errors = found[0]
        if len(found) > 1:
            distance, errors = (np.concatenate(each) for each in zip(*found, strict=True))
        if all(by is recall for _, _, by in read):
            return distance, errors, None, None
        farther = np.concatenate(
            [
                np.tile(np.sqrt(by.expected / recall.expected), (end - begin, 1))
                for begin, end, by in read
            ]
        )
        return distance, errors / farther, farther, ~recall.precision.flat[: self._channels]

    def _as_read(
        self, recall: Reconstruction, rows: Array, steps: Steps
    ) -> list[tuple[int, int, Reconstruction]]:
        """Return what predicts channels in which rows, with the noise of reading to steps."""
        if self._read is not None and self._read[0] is steps:
            return [(0, len(rows), self._read[1])]
        precision = recall.precision
        noise = as_read(precision.noise, steps, precision.flat)
        found: list[tuple[int, int, Reconstruction]] = []
        for (begin, end), each in zip(steps.runs(len(rows)), noise, strict=True):
            by = self._with_noise(recall, each)
            if found and found[-1][2] is by:
                begin = found.pop()[0]
            found.append((begin, end, by))
        if len(noise) == 1:
            self._read = steps, found[0][2]
        return found

    def _with_noise(self, recall: Reconstruction, noise: Array) -> Reconstruction:
        """Return what predicts channels with a noise (dim,); the newest is made once."""
        if (noise <= FINE * recall.precision.noise).all():
            return recall
        known = noise.tobytes()
        if self._coarse is None or self._coarse[0] != known:
            made = Reconstruction(
                self._readings, self._channels, recall.precision.with_noise(noise)
            )
            self._coarse = known, made
        return self._coarse[1]

    @property
    def pairs(self) -> Pairs:
        """The channels whose errors vary together."""
        return NO_PAIRS if self._recall is None else self._recall.pairs

    def falls(self, errors: Array, together: Iterable[Sequence[int]]) -> Array:
        """Return by how much distances fall without channels, as a `Reconstruction` does."""
        return (
            np.zeros_like(errors) if self._recall is None else self._recall.falls(errors, together)
        )

    def center(self, own: OwnMean | None = None) -> Array:
        """Return the mean of scaled rows, (width,)."""
        return self._readings.mean if own is None else own.rows

    def filled(self, rows: Array, own: OwnMean | None = None) -> Array:
        """Return rows (n, width), scaled, with the most likely value in each gap."""
        part = self._readings if own is None else replace(self._readings, mean=own.rows)
        return fill(rows, part, self._of_readings)[0]

    def left(self, present: Mask) -> Remaining:
        """Return what is left of a row with some numbers; in a kernel group 1, but of errors."""
        if self._recall is None:
            return Remaining()
        found, usual = self._recall.expected_by(present), self._recall.expected
        ratio = np.divide(found, usual, out=np.ones_like(usual), where=usual > 0)
        farther = np.sqrt(np.maximum(ratio, 1.0))
        if len(self._scorers) > 1:
            return Remaining(farther=farther)
        rest = shrunk(present, self._learnt, self._of_readings)
        return Remaining(*rest, float(present.mean()), farther)


FINE = 1.05  # largest noise of readings, over that of the model, that changes nothing

PATTERNS, PATTERN_NUMBERS = 256, 1 << 16
"""Patterns of gaps for which what remains of scores is cached, and numbers of their channels."""

LEAST_LEFT = 0.25
"""Least share of a score that is believed to remain: with less, the rest has no meaning."""


class RowScoring(Protocol):
    """Scores rows by one model: a `RowScorer`, or what stands in for one."""

    @property
    def expected(self) -> Array | None:
        """As in `RowScorer`, as the methods."""

    @property
    def pairs(self) -> Pairs:
        """The channels whose errors vary together."""

    def statistics(
        self,
        rows: Array,
        features: Storage,
        own: OwnMean | None = None,
        steps: Steps | None = None,
        /,
    ) -> Statistics:
        """Score rows, about a node's own mean where there is one, read to steps."""

    def falls(self, errors: Array, together: Iterable[Sequence[int]], /) -> Array:
        """Return by how much distances fall without channels, some of them at once."""

    def center(self, own: OwnMean | None = None, /) -> Array:
        """Return the mean of scaled rows."""

    def filled(self, rows: Array, own: OwnMean | None = None, /) -> Array:
        """Return rows with the most likely value in each gap."""

    def left(self, present: Mask, /) -> Remaining:
        """Return what is left of the statistics if only some numbers of a row are present."""


class ScoringSummaries(Protocol):
    """The part of `Summaries` that scores."""

    def scorer(self, summary: Any, channels: int, factors: tuple[Factors, ...] = ()) -> RowScoring:
        """Return a scorer by a summary, and by factors where known; `channels`: without lags."""


class ScoringModel:
    """A model to score with, and limits on recent scores; lags follow the first `channels`."""

    def __init__(
        self,
        summaries: ScoringSummaries,
        summary: Any,
        limits: Limits | None,
        channels: int,
        factors: tuple[Factors, ...] = (),
        own: OwnScatter | None = None,
        unsure: Array | None = None,  # (dim,), noise that is added for a while
    ) -> None:
        self.summary, self.limits, self.channels, self.own = summary, limits, channels, own
        factors = of_node(factors, summary, own)
        if unsure is not None and factors:
            factors = (replace(factors[0], noise=factors[0].noise + unsure), *factors[1:])
        self.scorer = summaries.scorer(summary, channels, factors)
        self._left: dict[bytes, Remaining] = {}  # by pattern of gaps
        self._most_left = min(PATTERNS, PATTERN_NUMBERS // channels + 1)
        self._weights: tuple[ResidualScale, Array] | None = None
        self._steps: dict[By, LimitSteps] = {}

    def center(self, own: OwnMean | None) -> Array:
        """Return the mean of scaled rows, (channels,)."""
        return self.scorer.center(own)

    def filled(self, rows: Array, own: OwnMean | None) -> Array:
        """Return rows (n, channels), scaled, with the most likely value in each gap."""
        return self.scorer.filled(rows, own)

    def channel_weights(self, scale: ResidualScale, expected: Array) -> Array:
        """Return `scale.weights`, computed once for each scale."""
        if self._weights is None or self._weights[0] is not scale:
            self._weights = scale, scale.weights(expected)
        return self._weights[1]

    def above(self, scores: Array, by: By) -> Array:
        """Return `limits.above`; 0 without limits."""
        if self.limits is None:
            return np.zeros(len(scores))
        if by not in self._steps:
            self._steps[by] = self.limits.steps(by)
        return self._steps[by].above(scores)

    def left(self, gaps: Mask) -> tuple[Array, Array]:
        """Return what is left of rows with gaps (n, width), (3, n), and `farther` (n, channels)."""
        left, farther = np.ones((3, len(gaps))), np.ones((len(gaps), self.channels))
        for i in np.flatnonzero(gaps.any(axis=1)).tolist():
            pattern = gaps[i].tobytes()
            if pattern not in self._left:
                if len(self._left) >= self._most_left:
                    self._left.clear()
                self._left[pattern] = self.scorer.left(~gaps[i])
            *left[:, i], more = self._left[pattern]
            if more is not None:
                farther[i] = more
        # Not less: a score of few channels says little.
        return np.maximum(left, LEAST_LEFT), farther


UNSURE = 2.0
"""How much farther an error is that says nothing: it follows causes that the channels present do
not show, for hours, and what is usual of it is not what is usual of the channel."""


@dataclass(frozen=True, slots=True, eq=False)
class RowScores:
    """How far each row of a block is from a model: (n,); None where it does not apply."""

    spe: Array
    t2: Array
    linear: Array | None  # None in a linear group
    even: Mapping[By, Array]  # scaled to the scores of rows without gaps
    over: Mapping[By, Array]  # the highest share whose limit each score is above, 0 for none
    # In a kernel group with limits: 0 for the median of recent rows, 1 at the 99 % limit.
    anomaly: Array | None
    errors: Array  # (n, channels), as in `Statistics`, comparable as `even`
    expected: Array | None  # (channels,), mean squares of `errors`; None: nothing predicts
    residual_scale: ResidualScale | None  # typical squared errors at this node
    distance: Array | None = None  # None without factors
    farther: Array | None = None  # (n, channels), factors to `errors` of others present, as read
    sure: Mask | None = None  # (n or 1, channels), where enough is known to say
    scorer: RowScoring | None = None  # it says which channels are pairs

    @property
    def left_out(self) -> Array:
        """(n, channels), readings less what the others that are present predict."""
        return self.errors if self.farther is None else self.errors * self.farther

    @property
    def sure_errors(self) -> Array:
        """(n, channels), `errors`, NaN where too few others are present to say (`UNSURE`)."""
        return self.errors if self.sure is None else np.where(self.sure, self.errors, np.nan)

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
        if self.distance is not None:
            return self.even["distance"]
        return self.spe if self.linear is None else self.linear

    def blame(self, which: npt.NDArray[np.intp] | None = None) -> Array:
        """Return channels' shares (n, channels) of what is anomalous about rows, or 0."""
        errors = self.errors if which is None else self.errors[which]
        return shares_of(errors, self.usual)

    @property
    def pairs(self) -> Pairs:
        """The channels whose errors vary together."""
        return NO_PAIRS if self.scorer is None else self.scorer.pairs

    @property
    def usual(self) -> Array | None:
        """(channels,), mean squares of errors that are usual; None: nothing predicts."""
        scale = self.residual_scale
        if self.expected is None or scale is None or not scale.ready:
            return self.expected
        return usual_squares(self.expected, scale.typical, self.pairs)

    def top(self, n: int) -> tuple[npt.NDArray[np.intp], Array]:
        """Return the first n channels to blame of each row, and their shares."""
        shares = self.blame()
        order = np.argsort(-shares, axis=1, kind="stable")[:, :n]
        return order, np.take_along_axis(shares, order, axis=1)

    def twins(self, first: npt.NDArray[np.intp]) -> Mask:
        """Return whether the first two of `top` tell each other, and so does their row, (n,)."""
        usual, pairs = self.usual, self.pairs
        if usual is None or not len(pairs.one) or first.shape[1] < 2:
            return np.zeros(len(first), dtype=bool)
        one, two = (
            np.square(np.take_along_axis(self.errors, first[:, :2], 1)).T / usual[first[:, :2]].T
        )
        near = (np.abs(one - two) <= SURE) & (one > SURE)
        near[near] = [pairs.told(*each) for each in first[near, :2].tolist()]
        return np.asarray(near)


def score(
    block: Block,
    model: ScoringModel,
    own: OwnMean | None = None,
    residual_scale: ResidualScale | None = None,
    *,
    excess: float | None = None,
) -> RowScores:
    """Score the rows of a block, about the node's `own` mean and by its typical errors, if given.

    excess : How much more rows vary about `own` than their true mean; 1 for rows in `own`.
    """
    scorer = model.scorer
    said = scorer.statistics(block.rows, block.features, own, block.steps)
    if excess is None or own is None:
        excess = 1.0 if own is None else own.excess
    factor = 1 / excess
    spe, t2 = factor * said.spe, factor * said.t2
    linear = None if said.linear is None else factor * said.linear
    distance = None if said.distance is None else factor * said.distance
    even: dict[By, Array] = {"spe": spe, "t2": t2}
    if linear is not None:
        even["linear"] = linear
    if distance is not None:
        even["distance"] = distance
    errors, farther, sure = said.errors, said.farther, said.sure
    if block.gaps is not None:
        (left_spe, left_t2, observed), more = model.left(block.gaps)
        errors, sure = errors * more, (more <= UNSURE) & (True if sure is None else sure)
        farther = more if farther is None else farther * more
        even |= {"spe": spe / left_spe, "t2": t2 / left_t2}
        if distance is not None:
            even["distance"] = without_gaps(distance, observed, block.features.shape[1])
    limits, anomaly = model.limits, None
    over = {kind: model.above(scores, kind) for kind, scores in even.items()}
    if limits is not None and linear is not None:
        features: By = "spe" if distance is None or not limits.distance else "distance"
        anomaly = limits.anomaly_score({features: even[features], "linear": linear})
    scores = RowScores(
        *(spe, t2, linear, even, over, anomaly, errors, scorer.expected, residual_scale),
        distance,
        farther,
        sure,
        scorer,
    )
    if scorer.expected is not None and residual_scale is not None and residual_scale.ready:
        weights = model.channel_weights(residual_scale, scorer.expected)
        even["channel"] = largest_square(np.nan_to_num(scores.sure_errors), weights)
    return scores
