"""Seen: what has gone down in a job of kernel PCA, and the scores of rows that follow from it.

Participants choose by these scores. A parent computes them again, of the points that come up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from submerge._linalg import Array
from submerge.features import Kernel, Landmarks
from submerge.jobs.kind import PhaseDown
from submerge.jobs.kinds.kpca import leverage
from submerge.jobs.kinds.kpca.chosen import SLACK, PointChoice, own_squares, residuals
from submerge.jobs.kinds.kpca.settings import KpcaSettings
from submerge.kernel.nystrom import check_finite

PHASES = (
    *("count", "factor", "keys-1", "points-1", "keys-2", "points-2"),
    *("project", "measure"),
)


def stage_of(phase: str) -> int:
    """Return which choice a phase belongs to: 1 or 2, or 0."""
    return int(phase[-1]) if phase.startswith(("keys", "points")) else 0


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What has gone down; None where nothing has yet.

    phase : the last that has gone down; what comes twice is taken once
    kernel : its gamma settled after the first round
    limit : how many points one node may supply to the present choice
    triangle : (t, t), of leverage
    points : (m, d), of the choices that are over
    """

    of: KpcaSettings
    kernel: Kernel
    phase: str = "count"
    limit: int = 0
    triangle: Array | None = None
    points: Array | None = None

    @classmethod
    def nothing(cls, of: KpcaSettings) -> Seen:
        """Return what is known before the first round."""
        return cls(of, of.kernel)

    def after(self, down: PhaseDown) -> Seen:
        """Return what is known when a phase's arrays have gone down."""
        if down.phase == self.phase:
            return self
        seen, arrays = replace(self, phase=down.phase), down.arrays
        if "gamma" in arrays:
            seen = replace(seen, kernel=seen.kernel.settled_at(float(arrays["gamma"][0])))
        if "limit" in arrays:
            seen = replace(seen, limit=int(arrays["limit"][0]))
        if "triangle" in arrays:
            seen = replace(seen, triangle=leverage.unpacked(arrays["triangle"], self.of.sketch))
        if "points" in arrays:
            new = arrays["points"].astype(np.float64)
            before = new[:0] if seen.points is None else seen.points
            seen = replace(seen, points=np.concatenate([before, new]))
        return seen

    @property
    def map(self) -> Landmarks:
        """The coordinates in the span of all points."""
        points = np.empty((0, 1)) if self.points is None else self.points
        return Landmarks(self.kernel, points)

    def knows(self, stage: int) -> bool:
        """Return whether the scores of a choice can be computed."""
        if stage == 2:
            return self.points is not None
        return self.limit > 0 and (self.of.sample != "leverage" or self.triangle is not None)

    def choice(self, stage: int) -> PointChoice:
        """Return the choice of a stage."""
        return PointChoice(self.of.seed, stage, self.of.stages[stage - 1], self.limit)

    def embedded(self, rows: Array) -> Array:
        """Return the sketched features (n, t) of rows (n, d), that leverage is taken from."""
        with np.errstate(over="ignore", invalid="ignore"):
            E = np.asarray(self.of.map_of(self.kernel).lift(rows), dtype=np.float64)
        check_finite(self.kernel, E)
        return E

    def scores(self, stage: int, rows: Array) -> Array:
        """Return what each of rows (n, d) counts in a choice: (n,), not negative."""
        if stage == 2:
            found = residuals(rows, self.map)
        elif self.of.sample == "uniform":
            found = np.ones(len(rows))
        elif self.of.sample == "leverage" and self.triangle is not None:
            found = leverage.scores(self.embedded(rows), self.triangle)
        else:
            found = own_squares(rows, self.kernel)
        check_finite(self.kernel, found)
        return found

    def slack(self, stage: int, rows: Array, scores: Array) -> Array:
        """Return by how much another machine's scores of rows may differ: (n,)."""
        if stage == 2:
            return np.asarray(SLACK * own_squares(rows, self.kernel))
        if self.of.sample == "leverage" and self.triangle is not None:
            return leverage.slack(self.embedded(rows), self.triangle, scores)
        return np.asarray(SLACK * scores)
