"""How scores respond to amounts added to a channel, and to its copies in later rows (lags).

Where features are the readings themselves, SPE, T2 and distances are quadratic in what is added to
a row x, and errors of prediction affine (`QuadraticResponse`, exact):

    f(x + v) = f(x) + g(x)'v + v'H v

with v (copies,), the amounts in each copy of the channel. g and H follow from the scores at +-1 in
one copy, and at 1 in two. In rows without gaps H is the same, and g affine: anchor rows say both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.drill.detection import Spans
from submerge.judge.prepare import Block
from submerge.judge.score import RowScores, ScoringModel, score
from submerge.schema import Schema
from submerge.stats.node_mean import OwnMean
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.resolution import Steps
from submerge.stats.statistic import By

CHUNK = 64  # rows that are scored together: memory stays small
NUMBERS = 32768  # numbers in a table of errors that is held at once
STEEP = 8  # channels whose errors change the most with a fault, and bound the largest

Scores = Mapping[By, Array]


@dataclass(frozen=True, slots=True, eq=False)
class NodeScorer:
    """What a node scores rows with; `excess` as in `judge.score.score`, `steps` as in `Block`."""

    scoring: ScoringModel
    schema: Schema
    own: OwnMean | None = None
    residual_scale: ResidualScale | None = None
    excess: float | None = None
    steps: Steps | None = None

    @property
    def channels(self) -> int:
        """Number of channels, without their lags."""
        return self.scoring.channels

    def filled(self, rows: Array) -> Array:
        """Return scaled rows (n, width) with the most likely value in each gap."""
        return self.scoring.filled(rows, self.own)

    def scored(self, block: Block) -> RowScores:
        """Score the rows of a block."""
        return score(block, self.scoring, self.own, self.residual_scale, excess=self.excess)

    def score(self, rows: Array) -> RowScores:
        """Score copies of scaled rows (n, width), gaps as NaN, as `judge` does."""
        gaps = np.isnan(rows)
        some = gaps.any(axis=1)
        if some.any():
            rows = rows.copy()
            rows[some] = self.filled(rows[some])
        features = rows if self.schema.linear else self.schema.features.lift(rows)
        why = np.zeros(len(rows), dtype=np.int8)
        return self.scored(
            Block(why, rows, features, gaps if some.any() else None, steps=self.steps)
        )


class Response(Protocol):
    """The scores of rows, one channel of which is off."""

    def scores(self, added: Array, spans: Spans, kinds: tuple[By, ...], /) -> Scores:
        """Return scores (spans, rows) if `added` (spans, rows) comes to the channel's readings."""


def by_lag(added: Array, copies: int) -> Array:
    """Return what the copies of a channel are off by: (copies, spans, rows), from its readings."""
    spread = np.zeros((copies, *added.shape))
    for lag in range(min(copies, added.shape[1])):
        spread[lag, :, lag:] = added[:, : added.shape[1] - lag]
    return spread


Change = Callable[[Array, slice], None]
"""Changes copies of rows (n, width), in place: those of so many of all places."""


def score_changed(
    model: NodeScorer, rows: Array, spans: Spans, kinds: tuple[By, ...], change: Change
) -> Scores:
    """Return scores (spans, rows) of copies of the rows of spans, changed a few at a time."""
    places = spans.places.ravel()
    found = {kind: np.empty(len(places)) for kind in kinds}
    for first in range(0, len(places), CHUNK):
        part = slice(first, first + CHUNK)
        copies = rows[places[part]]
        change(copies, part)
        even = model.score(copies).even
        for kind, series in found.items():
            series[part] = even[kind]
    return {kind: series.reshape(spans.places.shape) for kind, series in found.items()}


class DirectResponse:
    """Adds to copies of scaled rows (n, width), and scores these: slow, for every schema."""

    def __init__(self, model: NodeScorer, rows: Array, channel: int) -> None:
        self._model, self._rows, self._channel = model, rows, channel

    def scores(self, added: Array, spans: Spans, kinds: tuple[By, ...]) -> Scores:
        channels, width = self._model.channels, self._rows.shape[1]
        spread = by_lag(added, width // channels).reshape(width // channels, -1)

        def change(copies: Array, part: slice) -> None:
            copies[:, self._channel :: channels] += spread[:, part].T

        return score_changed(self._model, self._rows, spans, kinds, change)


class Anchors:
    """Rows to try faults on: anchors, for all of `rows` without gaps, and those with gaps."""

    # The first anchor is the mean; in each of the others one number is another.

    def __init__(self, model: NodeScorer, rows: Array) -> None:
        whole, width = np.asarray(~np.isnan(rows).any(axis=1)), rows.shape[1]
        if np.count_nonzero(whole) <= width + 1:
            whole[:] = False
        tried = rows[~whole]
        # Of each row the place, among those tried, that has its curves.
        self.like = np.zeros(len(rows), dtype=np.intp)
        self._whole, self._count = whole, width + 1 if whole.any() else 0
        if whole.any():
            center, apart = rows[whole].mean(axis=0), np.maximum(rows[whole].std(axis=0), 1e-9)
            self._amounts = ((rows[whole] - center) / apart).T
            anchors = center + np.vstack([np.zeros(width), np.diag(apart)])
            tried = np.concatenate([anchors, tried])
        self.like[~whole] = np.arange(self._count, len(tried))
        self.rows, self.scores = tried, model.score(tried)

    def slopes(self, tried: Array) -> Array:
        """Return the slopes of all rows (copies, n) by those of the rows that are tried."""
        found = tried[:, self.like]
        if self._count:
            first, others = tried[:, :1], tried[:, 1 : self._count]
            found[:, self._whole] = first + (others - first) @ self._amounts
        return found


class QuadraticResponse:
    """Scores by a quadratic form in what is added to rows with anchors, whose scores are `base`.

    unit : What is added to find it: about the channel's standard deviation.
    """

    def __init__(
        self, model: NodeScorer, anchors: Anchors, channel: int, base: RowScores, unit: float
    ) -> None:
        self._base, self._unit = base, unit
        scale = model.residual_scale or ResidualScale.none(model.channels)
        expected = np.zeros(model.channels) if base.expected is None else base.expected
        weights = np.sqrt(scale.weights(expected))
        self._copies = anchors.rows.shape[1] // model.channels
        columns = channel + model.channels * np.arange(self._copies)
        self._like, self._alike = anchors.like, not anchors.like.any()

        def at(*signs: tuple[int, float]) -> RowScores:
            moved = anchors.rows.copy()
            for copy, sign in signs:
                moved[:, columns[copy]] += sign * unit
            return model.score(moved)

        above = [at((i, 1.0)) for i in range(self._copies)]
        below = [at((i, -1.0)) for i in range(self._copies)]
        across = {(i, j): at((i, 1.0), (j, 1.0)) for i in range(self._copies) for j in range(i)}
        self._slopes, self._curves = {}, {}
        for kind, f in _quadratic(anchors.scores).items():
            up, down = ([_quadratic(each)[kind] for each in side] for side in (above, below))
            slopes = np.array([(u - d) / 2 for u, d in zip(up, down, strict=True)])
            curves = np.zeros((self._copies, self._copies, len(f)))
            for i in range(self._copies):
                curves[i, i] = (up[i] + down[i]) / 2 - f
            for (i, j), each in across.items():
                rest = _quadratic(each)[kind] - f - slopes[i] - slopes[j]
                curves[i, j] = curves[j, i] = (rest - curves[i, i] - curves[j, j]) / 2
            self._curves[kind], self._slopes[kind] = curves, anchors.slopes(slopes)
        # Errors that say nothing stay out of the largest, however far a channel is off.
        self._start = weights * np.nan_to_num(base.sure_errors)
        self._errors = weights * np.nan_to_num(
            [(u.sure_errors - d.sure_errors) / 2 for u, d in zip(above, below, strict=True)]
        )
        steep = np.abs(self._errors)
        self._steep = steep.max(axis=(0, 1)).argsort()[-STEEP:]
        steep[..., self._steep] = 0
        self._rest = np.abs(self._start).max(axis=1), steep.max(axis=2)

    def unexplained(self) -> float | None:
        """Return the channel's variance given all others, (H^-1)_00; None without distances."""
        curves = self._curves.get("distance")
        if curves is None:
            return None
        form = np.median(curves[:, :, self._like], axis=2) / self._unit**2
        if not np.linalg.eigvalsh(form)[0] > 0:
            return None
        return float(np.linalg.inv(form)[0, 0])

    def scores(self, added: Array, spans: Spans, kinds: tuple[By, ...]) -> Scores:
        v, places = by_lag(added / self._unit, self._copies), spans.places
        found: dict[By, Array] = {}
        for kind in kinds:
            if kind == "channel":
                found[kind] = self._channel_scores(v, places)
            else:
                f = self._base.even[kind][places]
                f = f + np.einsum("lst,lst->st", self._slopes[kind][:, places], v)
                curves = self._curves[kind][:, :, self._like[places]]
                f += np.einsum("lst,lmst,mst->st", v, curves, v)
                found[kind] = f
        return found

    def channel_bounds(self, added: Array, spans: Spans) -> tuple[Array, Array]:
        """Return what the largest error of each row is at least and at most, as `scores`."""
        v, places = by_lag(added / self._unit, self._copies), spans.places
        like, (start, slopes) = self._like[places], self._rest
        errors = self._start[:, self._steep][places]
        for copy, slope in enumerate(self._errors[:, :, self._steep]):
            errors += v[copy, :, :, None] * (slope[0] if self._alike else slope[like])
        low = np.abs(errors).max(axis=2)
        rest = start[places] + np.einsum("lst,lst->st", slopes[:, like], np.abs(v))
        return np.square(low), np.square(np.maximum(low, rest))

    def _channel_scores(self, v: Array, places: npt.NDArray[np.intp]) -> Array:
        """Return the largest error of each row over its typical size, (spans, rows)."""
        amounts, flat = v.reshape(len(v), -1), places.ravel()
        largest, step = np.empty(flat.shape), max(1, NUMBERS // self._start.shape[1])
        for first in range(0, len(flat), step):
            part = slice(first, first + step)
            errors = self._start[flat[part]]
            for copy, slope in enumerate(self._errors):
                by = slope[0] if self._alike else slope[self._like[flat[part]]]
                errors += amounts[copy, part, None] * by
            largest[part] = np.square(np.abs(errors, out=errors).max(axis=1))
        return largest.reshape(places.shape)


def _quadratic(scores: RowScores) -> dict[By, Array]:
    return {kind: each for kind, each in scores.even.items() if kind != "channel"}
