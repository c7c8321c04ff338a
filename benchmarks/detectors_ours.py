"""Our scores as detectors for `detection.py`: what a client does with a row, by its own functions.

The group's summary is learnt as a client learns it, and scored by `judge.score` about the node's
mean. An own mean, limits and gaps are the harness's here, the same for all detectors.
"""

from collections.abc import Sequence

import numpy as np

from detectors import Array
from plants.plant import Plant
from submerge import Schema
from submerge.judge.prepare import Block, prepare
from submerge.judge.score import RowScores, ScoringModel, score
from submerge.protocol.summaries import Subspaces
from submerge.stats.smoothing import ewma

FOLDS = 5


class Ours:
    """One of our statistics.

    rank : Directions that SPE and T2 are computed with.
    """

    lead = 0

    def __init__(self, plant: Plant, rank: int) -> None:
        # Rows come scaled and about their node's mean.
        self._schema = Schema(plant.channels)
        self._summaries = Subspaces(rank)

    def fit(self, parts: Sequence[Array]) -> None:
        """Learn a summary of the rows."""
        self._model = self._model_of(parts)

    def _model_of(self, parts: Sequence[Array]) -> ScoringModel:
        learner = self._summaries.learner(self._schema)
        block = self._block(np.concatenate(parts))
        learner.learn(block.rows, block.features)
        summary = learner.summary()
        directions = self._summaries.directions(summary)
        channels = len(self._schema.channels)
        factors = self._summaries.factors(summary)
        return ScoringModel(self._summaries, directions, None, channels, factors)

    def _block(self, rows: Array) -> Block:
        return prepare(rows, self._schema, fill=None)

    def _scores(self, rows: Array, model: ScoringModel | None = None) -> RowScores:
        return score(self._block(rows), model or self._model)


class SpeOrT2(Ours):
    """What alarms used before there was a combined score: the larger of both, over their limits.

    The limits are those that 1 % of rows that were left out are above, so that both count alike.
    """

    def fit(self, parts: Sequence[Array]) -> None:
        """Learn, and measure both limits."""
        held = []
        for i in range(FOLDS):
            model = self._model_of([part for j, part in enumerate(parts) if j % FOLDS != i])
            held.append(self._scores(np.concatenate(parts[i::FOLDS]), model))
        self._limits = [
            float(np.quantile(np.concatenate([getattr(each, name) for each in held]), 0.99))
            for name in ("spe", "t2")
        ]
        super().fit(parts)

    def score(self, rows: Array) -> Array:
        """Return the larger of both."""
        scores = self._scores(rows)
        spe, t2 = self._limits
        return np.maximum(scores.spe / spe, scores.t2 / t2)


class Combined(Ours):
    """The distance by the factor model: one score."""

    def score(self, rows: Array) -> Array:
        """Return the distance."""
        distance = self._scores(rows).distance
        if distance is None:
            raise RuntimeError("expected factors, got a summary without channel energies")
        return distance


class SmoothedDistance(Combined):
    """The distance's moving average over rows, as alarms use it."""

    def score(self, rows: Array) -> Array:
        """Return the average."""
        return ewma(super().score(rows))
