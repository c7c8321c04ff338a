"""RowJudge: rows prepared and scored as a client does (`submerge.judge`), by a model alone.

Files and frames are judged by it row by row; only the statistics of alarms, which it may watch,
depend on the rows before. Nothing is learnt: `history.detection` says what a client goes on to do.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from submerge import Array
from submerge.client.alarms.detector import AlarmDetector, RecentScores
from submerge.condition import Condition
from submerge.history.detection import JudgedRows, over_limits, watching
from submerge.judge.prepare import LEAD_IN, Block, prepare
from submerge.judge.score import score
from submerge.stats.block_maxima import WITH_FACTORS, WITHOUT_FACTORS, By
from submerge_files.score.mean import Center
from submerge_files.score.model import Normal


class RowJudge:
    """Judges the rows of one machine or file.

    center : The mean that they are measured from; by default the model's.
    when : Rows that do not meet it have no scores.
    watch : Says how close rows come to an alarm (`JudgedRows.over`).
    """

    def __init__(
        self,
        normal: Normal,
        center: Center | None = None,
        when: Condition | None = None,
        watch: AlarmDetector | None = None,
    ) -> None:
        self._schema, self._model, self._when = normal.schema, normal.scoring, when
        self._center, self._watch = center or Center(), watch
        self._recent = RecentScores()

    def prepare(self, rows: Array, *, judges: bool = False) -> Block:
        """Scale and fill rows (n, channels) in their units, lags included."""
        fill = partial(self._model.filled, own=self._center.own)
        return prepare(rows, self._schema, fill=fill, when=self._when, judges=judges)

    def judge(self, rows: Array, first: int = 1, lead: int = 0) -> JudgedRows:
        """Judge rows (n, channels) in their units, lags included."""
        # `lead` rows before these cannot be scored: their lags reach before the file.
        block, center = self.prepare(rows, judges=True), self._center
        scores = score(block, self._model, center.own, center.typical, excess=center.excess)
        if lead:
            why = np.concatenate([np.full(lead, LEAD_IN, dtype=np.int8), block.why])
            block = replace(block, why=why)
        over: dict[By, Array] = {}
        if self._watch is not None and len(block):
            even = scores.even
            if center.own is not None and not center.own.settled:
                # About a mean of less than a day, no channel's error raises an alarm.
                even = {kind: each for kind, each in even.items() if kind != "channel"}
            watch = self._watch
            over, self._recent = over_limits(self._recent, even, watch.limits.known, watch.settings)
        return JudgedRows(block, scores, first, over)


def watched_by(normal: Normal) -> AlarmDetector | None:
    """Return what `detect` compares rows with; None without limits of alarms."""
    watch = None if normal.learnt is None else watching(normal.learnt)
    return watch if watch is not None and watch.limits.known else None


def kinds_watched(normal: Normal, watch: AlarmDetector | None) -> tuple[By, ...]:
    """Return the statistics that have a limit, in their order."""
    kinds = WITH_FACTORS if normal.factors else WITHOUT_FACTORS
    return () if watch is None else tuple(each for each in kinds if each in watch.limits.known)
