"""RowHistory: rows as they come, and a model of them with scores of rows that it had not learnt.

1. The first `KEPT` rows are kept as they are: their model and scores are made when asked for.
2. More rows become summaries of spans of time (`history.first_pass`): memory does not grow.
3. Rows that come together at first are scored span by span, by the model of all other spans.
   Later ones are scored before they are learnt, by a model of at least 8/9 of the rows before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import NormalDist

import numpy as np

from submerge._linalg import Array
from submerge.errors import NothingLearnt
from submerge.history.first_pass import FirstPass
from submerge.history.folds import MOST_FOLDS, Folds, folds_of
from submerge.history.knowledge import summaries_of
from submerge.history.layout import AT_ONCE, CellBlock, CellBlocks, CellGrid, LaidOut
from submerge.history.recording import Recorded
from submerge.history.settings import FitSettings
from submerge.judge.prepare import LARGEST_SCALED, Block, in_units
from submerge.judge.score import RowScores, ScoringModel, score
from submerge.pca.expectation import Estimate
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter
from submerge.schema import Channel, Scaling, Schema
from submerge.stats.quantile_sketch import FINE, SketchTally, empty, quantile

KEPT = 512  # rows that are kept as they are: fewer would be less than a span for each fold
WINDOW = 8192  # scores of rows that come later: limits are of the last so many to twice as many
GROWTH = 1.125  # rows over those of the model, at which the one that scores new rows is made again


SCORED_AT_ONCE = 128  # rows that are scored at once: to fill gaps takes a matrix for each of them


@dataclass(frozen=True, slots=True, eq=False)
class RowModel:
    """A model of rows, and the way to score with it."""

    schema: Schema
    shown: Subspace  # leading directions of scaled rows, without spare ones
    covariance: Array  # (dim, dim), L L' + diag(Psi), by which distances are measured
    weight: float
    scoring: ScoringModel

    @classmethod
    def of(
        cls, scatter: WholeScatter, schema: Schema, rank: int, settings: FitSettings
    ) -> RowModel | None:
        """Return the model of a scaled scatter; None if nothing varies in it."""
        summaries = summaries_of(rank, settings)
        directions = summaries.directions(scatter)
        factors = summaries.factors(scatter)
        if not factors:
            return None
        scoring = ScoringModel(summaries, directions, None, schema.width, factors)
        whole, shown = directions.parts[0], scatter.directions(rank)
        loadings = factors[0].loadings_of(whole)
        covariance = np.asarray(loadings @ loadings.T + np.diag(factors[0].noise))
        return cls(schema, shown, covariance, scatter.weight, scoring)

    @property
    def scaling(self) -> Scaling:
        """The center and scale of the channels."""
        width = self.schema.width
        return self.schema.scaling or Scaling((0.0,) * width, (1.0,) * width)

    def judge(self, rows: Array) -> Iterator[tuple[Block, RowScores]]:
        """Score rows (n, channels) in their units, some at a time; NaN is a gap."""
        for start in range(0, len(rows), SCORED_AT_ONCE):
            # Unlike a client's, each row has a score, of the values it has; large ones are cut.
            scaled = self.schema.scaled(rows[start : start + SCORED_AT_ONCE])
            scaled = np.clip(scaled, -LARGEST_SCALED, LARGEST_SCALED)
            gaps = np.isnan(scaled)
            some = gaps.any(axis=1)
            if some.any():
                scaled[some] = self.scoring.filled(scaled[some], None)
            why = np.zeros(len(scaled), dtype=np.int8)
            block = Block(why, scaled, scaled, gaps if some.any() else None)
            yield block, score(block, self.scoring)

    def distances(self, rows: Array) -> Array:
        """Return squared Mahalanobis distances (n,), as they compare with rows without gaps."""
        found = [scores.even["distance"] for _, scores in self.judge(rows)]
        return np.concatenate(found)

    def shares(self, rows: Array) -> Array:
        """Return the share of each channel in what is anomalous about each row: (n, channels)."""
        return np.concatenate([scores.blame() for _, scores in self.judge(rows)])

    def predicted(self, rows: Array) -> Array:
        """Return each channel as the others predict it, (n, channels), in its unit."""
        found = [block.rows - scores.left_out for block, scores in self.judge(rows)]
        return in_units(np.concatenate(found), self.schema)


class RowHistory:
    """Learns rows in the order of time; if it `measures`, it scores them for `limit`."""

    def __init__(
        self, names: Sequence[str], settings: FitSettings, *, measures: bool = True
    ) -> None:
        self._channels, self._settings = tuple(map(Channel, names)), settings
        self._measures = measures
        self.seen = 0
        self._rows: Array | None = np.empty((0, len(names)))
        self._first = FirstPass(names, settings)
        self._tally = SketchTally(WINDOW, FINE)
        self._scorer: RowModel | None = None
        self._made: RowModel | None = None
        self._added = self._scorer_of = 0

    def add(self, rows: Array) -> None:
        """Take rows (n, channels) in their units, after those before."""
        self._made = None
        self.seen += len(rows)
        if self._rows is None:
            for start in range(0, len(rows), AT_ONCE):
                self._score_and_learn(rows[start : start + AT_ONCE])
            return
        self._rows = np.concatenate((self._rows, rows))
        if self.seen > KEPT:
            rows, self._rows = self._rows, None
            self._learn_at_first([Recorded("rows", rows, None)])
            self._scorer = self._made
            self._added = self._scorer_of = len(rows)

    @property
    def model(self) -> RowModel:
        """The model of all rows; NothingLearnt if they do not vary, or have too few values."""
        if self._made is None:
            if self._rows is not None:
                # As if each were a file: so a few rows have several spans as well.
                parts = np.array_split(self._rows, min(MOST_FOLDS, max(1, len(self._rows))))
                self._learn_at_first(
                    [Recorded("rows", part, None, str(i)) for i, part in enumerate(parts)]
                )
            else:
                folds = self._folds()
                self._made = self._model_of(folds, folds.whole)
        if self._made is None:
            raise NothingLearnt("expected rows that vary, got only equal ones: learn more")
        return self._made

    def limit(self, share: float) -> float:
        """Return the distance that a share of rows exceed that were not learnt."""
        dim = self.model.schema.width
        sketch = self._tally.sketch
        if sketch.n:
            return quantile(sketch, 1 - share)
        # Without any score, that of the chi-squared distribution (Wilson and Hilferty 1931).
        ninth = 2 / (9 * dim)
        return float(dim * (1 - ninth + NormalDist().inv_cdf(1 - share) * sqrt(ninth)) ** 3)

    def _learn_at_first(self, parts: Sequence[Recorded]) -> None:
        """Learn the first rows, and score each span of them by the others."""
        names = [channel.name for channel in self._channels]
        known: Mapping[int, Estimate] | None = {}
        while known is not None:
            self._first = FirstPass(names, self._settings, known=known)
            for part in parts:
                self._first.add(part)
            self._first.end()
            known = self._first.known_once_more() or None
        try:
            folds = self._folds()
        except NothingLearnt:
            if self._rows is None:
                return  # there may be rows that vary, later
            raise
        self._made = self._model_of(folds, folds.whole)
        if not self._measures:
            return
        found = SketchTally(2**62, FINE)
        for scores in self._held_out(parts, folds):
            found.add(scores)
        # However many there are, they count until enough rows have come later.
        self._tally = SketchTally(WINDOW, FINE, (found.sketch, empty(FINE)))

    def _held_out(self, parts: Sequence[Recorded], folds: Folds) -> Iterator[Array]:
        """Yield the scores of rows by the model of all folds but theirs."""
        scorer: tuple[int, RowModel | None] = -1, None
        for block in _blocks(parts, self._first.grid):
            fold = folds.fold_of.get(block.cell)
            if fold is None or folds.count == 1:
                continue  # it is left out, or there are no others
            if fold != scorer[0]:
                scorer = fold, self._model_of(folds, folds.without(fold))
            rows = _learnable(block.rows)
            if scorer[1] is not None and len(rows):
                yield scorer[1].distances(rows)

    def _score_and_learn(self, rows: Array) -> None:
        if self._measures:
            self._score(rows)
        self._first.add(Recorded("rows", rows, None, first=self._added + 1))
        self._added += len(rows)

    def _score(self, rows: Array) -> None:
        if self._added >= GROWTH * self._scorer_of:
            self._scorer, self._scorer_of = self._new_scorer(), self._added
        judged = _learnable(rows)
        if self._scorer is not None and len(judged):
            self._tally.add(self._scorer.distances(judged))

    def _folds(self) -> Folds:
        self._first.end()
        if not self._first.cells:
            raise NothingLearnt(
                "expected rows with at least half of their values, and none of 1e12 or more, got"
                f" {self.seen} others: fill gaps, or scale columns"
            )
        return folds_of(self._first.cells, self._channels, self._settings)

    def _new_scorer(self) -> RowModel | None:
        """Return a model of all rows; None while nothing varies."""
        self._first.end()
        # Neither rank nor what is left out is chosen: both would cost more than the learning.
        quick = replace(self._settings, rank=self._settings.rank or 1, leaves_out=False)
        try:
            folds = folds_of(self._first.cells, self._channels, quick)
        except NothingLearnt:
            return None
        self._first.known = folds.known
        return self._model_of(folds, folds.whole)

    def _model_of(self, folds: Folds, scatter: WholeScatter) -> RowModel | None:
        return RowModel.of(scatter, folds.schema, folds.rank, self._settings)


def _blocks(parts: Sequence[Recorded], grid: CellGrid) -> Iterator[CellBlock]:
    """Yield rows with the cell that they were learnt in."""
    blocks = CellBlocks(LaidOut.as_they_come()._replace(grid=grid))
    for part in parts:
        yield from blocks.add(part)
    yield from blocks.end()


def _learnable(rows: Array) -> Array:
    """Return the rows that are learnt: with half of their values, of a usable size."""
    enough = 2 * np.isnan(rows).sum(axis=1) <= rows.shape[1]
    return np.asarray(rows[enough & ~(np.abs(rows) >= LARGEST_SCALED).any(axis=1)])


# So it is made when the rows are `GROWTH` times as many as those of the last one, and never
# because it is read: which model scores a row follows from the rows before it alone.

QUICK = FitSettings(rank=1)
"""Distances do not depend on the rank that is shown, and to choose one takes the most time."""


class CurrentModel:
    """Learns rows in order, and has a model of all, or of `window` to twice as many.

    first : Without so many rows there is none.
    start, stop : The rows that it is of.
    """

    def __init__(self, width: int, *, first: int, window: int | None = None) -> None:
        self._width, self._first, self._window = width, first, window
        self._histories = [self._empty()]
        self._seen = 0
        self.model: RowModel | None = None
        self.start = self.stop = 0

    def add(self, rows: Array) -> None:
        """Learn rows (n, channels) in their units, after those before; NaN is a gap."""
        newest = self._histories[-1]
        if self._window is not None and newest.seen >= self._window:
            self._histories = [newest, self._empty()]
        for history in self._histories:
            history.add(rows)
        self._seen += len(rows)
        self._make()

    def _empty(self) -> RowHistory:
        return RowHistory([f"x{i}" for i in range(self._width)], QUICK, measures=False)

    def _make(self) -> None:
        oldest = self._histories[0]
        start = self._seen - oldest.seen
        enough = self._first if start != self.start else GROWTH * (self.stop - self.start)
        if oldest.seen < max(self._first, enough):
            return
        try:
            self.model = oldest.model
        except NothingLearnt:
            return  # rows that vary may come
        self.start, self.stop = start, self._seen
