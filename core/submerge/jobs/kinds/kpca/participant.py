"""What a participant in a job of kernel PCA knows, and what it gives to each round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from submerge._linalg import Array
from submerge.features import Landmarks
from submerge.jobs.arrays import Arrays
from submerge.jobs.kind import PhaseDown
from submerge.jobs.kinds.kpca import dis_lr, leverage, remainder
from submerge.jobs.kinds.kpca.points import SLACK, own_squares, residuals
from submerge.jobs.kinds.kpca.settings import KpcaSettings
from submerge.jobs.kinds.kpca.stages import KnownPoints, RowsOffered, stage_of
from submerge.jobs.points import key
from submerge.kernel.nystrom import check_finite


@dataclass(frozen=True, slots=True, eq=False)
class Seen(KnownPoints):
    """What has gone down; the triangle (t, t) is of leverage, None where there is none yet."""

    of: KpcaSettings
    triangle: Array | None = None

    def _news(self, arrays: Arrays) -> dict[str, Any]:
        if "triangle" not in arrays:
            return {}
        return {"triangle": leverage.unpacked(arrays["triangle"], self.of.sketch)}

    @property
    def map(self) -> Landmarks:
        points = np.empty((0, 1)) if self.points is None else self.points
        return Landmarks(self.kernel, points)

    def knows(self, stage: int) -> bool:
        if stage == 2:
            return self.points is not None
        return self.limit > 0 and (self.of.sample != "leverage" or self.triangle is not None)

    def embedded(self, rows: Array) -> Array:
        """Return the sketched features (n, t) of rows (n, d), that leverage is taken from."""
        with np.errstate(over="ignore", invalid="ignore"):
            E = np.asarray(self.of.map_of(self.kernel).lift(rows), dtype=np.float64)
        check_finite(self.kernel, E)
        return E

    def scores(self, stage: int, rows: Array) -> Array:
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
        squares = own_squares(rows, self.kernel)
        # Also where all rows count alike: others compute their kernel with these.
        check_finite(self.kernel, squares)
        if stage == 2:
            return np.asarray(SLACK * squares)
        if self.of.sample == "leverage" and self.triangle is not None:
            return leverage.slack(self.embedded(rows), self.triangle, scores)
        return np.asarray(SLACK * scores)


def counted(here: RowsOffered[Seen], may_share: int) -> Arrays:
    """Return how many rows there are, and sums that settle gamma if that is open."""
    rows = here.rows
    shares = len(rows) > 0 and may_share > 0
    up = {"counts": np.array([len(rows), len(here.held_out), 1.0, shares], dtype=np.float64)}
    if here.known.kernel.gamma is None:
        square = np.array([float(np.vdot(rows, rows))])
        up |= {"sums": rows.sum(axis=0), "squares": square}
    return up


def given(
    here: RowsOffered[Seen], down: PhaseDown, may_share: int, node: str
) -> tuple[RowsOffered[Seen], Arrays]:
    """Return the memory for later rounds, and what a round asks for."""
    if stage_of(down.phase):
        return here.gives(down, may_share, node)
    seen = here.known.after(down)
    here = here._replace(known=seen)
    if down.phase == "factor":
        return here, _factor(seen, here.rows, node)
    if down.phase == "project":
        return here, {**_projected(seen, here.rows, node), **_readings(seen.of, here.rows)}
    arrays = down.arrays
    axes, variances = arrays["axes"], arrays["variances"]
    mean = arrays["mean"] if "mean" in arrays else np.zeros(len(axes))
    found = remainder.statistics(here.held_out, seen.map, axes, mean, variances)
    if seen.of.readings:
        of_readings = arrays["readings_axes"], arrays["readings_mean"]
        found[remainder.READINGS] = dis_lr.residuals_of(here.held_out, *of_readings)
    return here, remainder.sketches_up(found)


def _factor(seen: Seen, rows: Array, node: str) -> Arrays:
    """Return the triangle of the embedded rows: of sums of them, as in the paper, or of all."""
    of, embedded = seen.of, seen.embedded(rows)
    if of.merge == "sketch":
        seed = key(of.seed, node, "leverage")
        embedded = leverage.summed(embedded, of.columns, seed=seed)
    return {"triangle": leverage.packed(leverage.triangle_of([embedded], of.sketch))}


def _readings(of: KpcaSettings, rows: Array) -> Arrays:
    """Return the rows' own directions, if they are asked for."""
    if not of.readings:
        return {}
    return dis_lr.readings_up(rows, dis_lr.rank_of(of.components, rows.shape[1]))


def _projected(seen: Seen, rows: Array, node: str) -> Arrays:
    """Return the directions of the rows in the points' span."""
    of, at = seen.of, dis_lr.Coordinates.of(rows, seen.map)
    if of.merge == "ranks":
        return dis_lr.ranks_up(at, 2 * of.components, center=of.center)
    if of.merge == "exact":
        return dis_lr.exact_up(at)
    seed = key(of.seed, node, "projection")
    return dis_lr.sketch_up(at, of.columns, center=of.center, seed=seed)
