"""NewLevel: whether the readings of an open alarm keep to a new level, and which.

The rows of an open alarm have a mean of their own, and their scores about it are compared with the
limits. When the alarm settles so, and why: docs/alarms-explained.md, "A change that stays". The
level begins again where a statistic about it is twice its limit, where the fault has grown, and
after `LONGEST_S`. For a quiet alarm the time between false alarms stands for the day.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.client.alarms.detect import LONGER
from submerge.client.alarms.detector import AlarmDetector, RecentScores
from submerge.client.alarms.limits import YOUNG
from submerge.client.alarms.log import LESS, PATIENCE
from submerge.judge.decision import Mask
from submerge.judge.prepare import Block
from submerge.judge.score import RowScores, ScoringModel
from submerge.pca.expectation import TINY
from submerge.stats.block_maxima import statistics
from submerge.stats.node_mean import SETTLED_S, OwnMean

CALM = 0.5
"""Share of the time that a level lasts, without a score over its limit, after which it may hold."""

GROWTH = 1.1
"""Largest growth of a fault at a level that holds: of its squared distance, in some half a day."""

LONGEST_S = 4 * SETTLED_S
"""Longest time that a mean covers: a mean of weeks would hide how a fault grows."""


class OpenDays(NamedTuple):
    """How far off the rows of an open alarm are, in mean logarithms: on this day and before."""

    passed_s: float = 0.0
    rows: int = 0
    total: float = 0.0
    before: float = -math.inf
    alike: bool = False  # whether a day has just ended that was not worse

    def after(self, distances: Array, passed_s: float) -> OpenDays:
        """Return it after rows with distances (n,)."""
        # A spread, unlike a level, differs from day to day: of means the highest rows would decide.
        total = self.total + float(np.log(np.maximum(distances, TINY)).sum())
        rows, passed_s = self.rows + len(distances), self.passed_s + passed_s
        if passed_s < SETTLED_S:
            return OpenDays(passed_s, rows, total, self.before)
        mean = total / rows
        return OpenDays(before=mean, alike=mean <= self.before + math.log(GROWTH))


@dataclass(frozen=True, slots=True, eq=False)
class NewLevel:
    """Where the rows of an open alarm are: their mean, scaled, and that at `half` of the time."""

    mean: OwnMean
    half: OwnMean | None = None
    calm_s: float = 0.0  # since a statistic about it was over its limit
    recent: RecentScores = field(default_factory=RecentScores)  # not kept

    def after(
        self, block: Block, alarmed: Mask, scores: RowScores | None, detector: AlarmDetector
    ) -> NewLevel:
        """Return it after a block with the alarm open to the end; scores are about the mean."""
        n, lasts_s = len(block), lasting_s(detector)
        others = np.flatnonzero(~alarmed)
        first = int(others[-1]) + 1 if len(others) else 0
        passed_s = block.time.seen_s(n) * (n - first) / n
        calm_s, recent = 0.0, RecentScores()
        if scores is not None:
            worst, recent = self._watched(scores, first, detector)
            if worst > YOUNG:
                return NewLevel(self.mean.restarted())
            calm_s = self.calm_s + passed_s if worst <= 1 else 0.0
        mean = self.mean.after(
            block.rows[first:], block.features[first:], kept=1.0, passed_s=passed_s
        )
        if mean.span_s > LONGEST_S:
            return NewLevel(self.mean.restarted())
        half = mean if self.half is None and mean.span_s >= CALM * lasts_s else self.half
        return replace(self, mean=mean, half=half, calm_s=calm_s, recent=recent)

    def _watched(
        self, scores: RowScores, first: int, detector: AlarmDetector
    ) -> tuple[float, RecentScores]:
        """Return the largest statistic over its limit from a row on, and the scores to remember."""
        of, after = detector.settings.of, detector.settings.after
        even = self.recent.watched(
            {kind: each[first:] for kind, each in scores.even.items()},
            partial(detector.limit, settled=True),
        )
        kinds, before = tuple(even), max(of - 1, 1)  # an average needs the one before it
        span = self.recent.span(even, before)
        limits = np.array([detector.limit(kind, settled=True) for kind in kinds])
        # One row that is far off does not end a level, though it is in the average for long.
        raised = statistics(span[:, before - of + 1 :], of, after)
        raised = raised.max(axis=1, initial=0.0)
        worst = np.divide(raised, limits, out=np.zeros(len(kinds)), where=limits > 0).max()
        return float(worst), RecentScores(kinds, span[:, span.shape[1] - before :])

    def patience(self, held_s: float) -> float:
        """Return the patience with a quiet alarm, as in `log`, that is open for `held_s`."""
        return PATIENCE if self.mean.span_s >= CALM * held_s else LESS

    def holds(self, of: int, lasts_s: float = SETTLED_S) -> bool:
        """Whether it has lasted so long, by default a day, and was calm for half of that."""
        enough = self.half is not None and self.mean.count >= LONGER * of
        return enough and self.mean.span_s >= lasts_s and self.calm_s >= CALM * lasts_s

    def has_grown(
        self, scoring: ScoringModel, before: OwnMean | None, limits: AlarmDetector
    ) -> bool:
        """Whether its distance from the level `before` has changed from its first half day on."""
        half, mean = self.half, self.mean
        if half is None or mean.weight <= half.weight:
            return True
        weights = np.array([[half.weight], [mean.weight - half.weight]])

        def both(first: Array, all_: Array) -> Array:
            """Return the mean of the first half day and that of the time after."""
            later = (mean.weight * all_ - half.weight * first) / weights[1]
            return np.array([first, later])

        rows = both(half.rows, mean.rows)
        features = rows
        if half.features is not None and mean.features is not None:
            features = both(half.features, mean.features)
        spe, t2, linear, sizes, *_ = scoring.scorer.statistics(rows, features, before)
        if sizes is None:
            sizes = spe / limits.limit("spe", settled=True) + t2 / limits.limit("t2", settled=True)
            if linear is not None:
                sizes = sizes + linear / limits.limit("linear", settled=True)
        low, high = sorted(sizes.tolist())
        return not high <= GROWTH * low


def lasting_s(detector: AlarmDetector) -> float:
    """Return how long a level has to last: a day, or less for a quiet alarm."""
    early = detector.counts_rows and detector.log.is_provisional
    return min(SETTLED_S, detector.log.provisional_s) if early else SETTLED_S
