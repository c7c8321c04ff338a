"""Known: what has gone down in a choice of landmarks, and the scores of rows that follow from it.

Participants choose by these scores. A parent computes them again, of the rows that come up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from submerge._linalg import Array
from submerge.features import Kernel, Landmarks
from submerge.jobs.kind import PhaseDown
from submerge.jobs.kinds.kpca.chosen import SLACK, PointChoice, own_squares, residuals
from submerge.jobs.kinds.landmarks.settings import LandmarkSettings
from submerge.kernel.nystrom import check_finite


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What has gone down; None where nothing has yet.

    phase : the last that has gone down; what comes twice is taken once
    kernel : its gamma settled after the first round
    offset, scale : (width,), of the rows before the kernel sees them
    limit : how many rows one node may supply to the present choice
    points : (m, width), of the choices that are over
    """

    of: LandmarkSettings
    kernel: Kernel
    phase: str = "count"
    offset: Array | None = None
    scale: Array | None = None
    limit: int = 0
    points: Array | None = None

    @classmethod
    def nothing(cls, of: LandmarkSettings) -> Known:
        """Return what is known before the first round."""
        return cls(of, of.kernel)

    def after(self, down: PhaseDown) -> Known:
        """Return what is known when a phase's arrays have gone down."""
        if down.phase == self.phase:
            return self
        known, arrays = replace(self, phase=down.phase), down.arrays
        if "gamma" in arrays:
            kernel = self.kernel.settled_at(float(arrays["gamma"][0]))
            known = replace(
                known, kernel=kernel, offset=arrays["offset"], scale=arrays["scale"], points=None
            )
        if "limit" in arrays:
            known = replace(known, limit=int(arrays["limit"][0]))
        if "points" in arrays:
            new = arrays["points"].astype(np.float64)
            before = new[:0] if known.points is None else known.points
            known = replace(known, points=np.concatenate([before, new]))
        return known

    def knows(self, stage: int) -> bool:
        """Return whether the scores of a choice can be computed."""
        return self.offset is not None and (stage == 1 or self.points is not None)

    def choice(self, stage: int) -> PointChoice:
        """Return the choice of a stage."""
        return PointChoice(self.of.seed, stage, self.of.stages[stage - 1], self.limit)

    def scores(self, stage: int, rows: Array) -> Array:
        """Return what each of rows (n, width) counts in a choice: (n,), not negative."""
        if stage == 1 or self.points is None:
            return np.ones(len(rows))
        found = residuals(self._scaled(rows), Landmarks(self.kernel, self._scaled(self.points)))
        check_finite(self.kernel, found)
        return found

    def slack(self, stage: int, rows: Array) -> Array:
        """Return by how much another machine's scores of rows may differ: (n,)."""
        if stage == 1:
            return np.zeros(len(rows))
        return np.asarray(SLACK * own_squares(self._scaled(rows), self.kernel))

    def _scaled(self, rows: Array) -> Array:
        if self.offset is None or self.scale is None:
            return rows
        return np.asarray((rows - self.offset) / self.scale)


def stage_of(phase: str) -> int:
    """Return which choice a phase belongs to, from 1; 0 for any other."""
    word, _, number = phase.partition("-")
    plain = number.isascii() and number.isdecimal() and len(number) < 3 and number[:1] != "0"
    return int(number) if word in ("keys", "points") and plain else 0
