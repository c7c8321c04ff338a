"""Rows of a file, prepared and scored as a client does (`submerge.judge`); nothing is learnt."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from submerge import Array
from submerge.condition import Condition
from submerge.judge.prepare import LEAD_IN, Block, prepare
from submerge.judge.score import RowScores, ScoringModel, score
from submerge_files.score.mean import Center
from submerge_files.score.model import Normal
from submerge_files.score.table import Carried, lags_of

TOP = 3
"""Channels that are named for each row."""


@dataclass(frozen=True, slots=True, eq=False)
class FileRows:
    """Consecutive rows of one file, and their scores.

    first : the number of the first in its file, from 1
    why : (n,), places in `REASONS`
    block : the rows that have scores
    top : (m, up to TOP), channels to blame, the largest share first
    shares : as `top`, their shares
    carried : of all rows, what the file says beside the readings
    """

    first: int
    why: npt.NDArray[np.int8]
    block: Block
    scores: RowScores
    top: npt.NDArray[np.intp]
    shares: Array
    carried: Carried = field(default_factory=Carried)

    @property
    def filled(self) -> npt.NDArray[np.intp]:
        """(m,), how many numbers were filled."""
        gaps = self.block.gaps
        return np.zeros(len(self.block), dtype=int) if gaps is None else gaps.sum(axis=1)


class FileScorer:
    """Scores rows of files by one model; `when`: rows that do not meet it have no scores."""

    def __init__(
        self, normal: Normal, when: Condition | None = None, center: Center | None = None
    ) -> None:
        self._schema, self._when = normal.schema, when
        self._center = Center() if center is None else center
        channels = normal.schema.width // lags_of(normal.schema.names)
        self._model = ScoringModel(
            normal.shown, normal.summary, normal.limits, channels, normal.factors
        )

    def prepare(self, rows: Array, *, judges: bool = False) -> Block:
        """Scale and fill rows (n, channels) in their units, lags included."""
        fill = partial(self._model.filled, own=self._center.own)
        return prepare(rows, self._schema, fill=fill, when=self._when, judges=judges)

    def score(
        self, rows: Array, first: int, lead: int = 0, carried: Carried | None = None
    ) -> FileRows:
        """Score rows (n, channels) in their units, lags included."""
        # `lead` rows before these cannot be scored: their lags reach before the file.
        block, center = self.prepare(rows, judges=True), self._center
        scores = score(block, self._model, center.own, center.typical, excess=center.excess)
        why = np.concatenate([np.full(lead, LEAD_IN, dtype=np.int8), block.why])
        top = scores.top(TOP)
        return FileRows(first, why, block, scores, *top, carried or Carried())
