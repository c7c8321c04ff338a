"""RowsHere: what a participant holds in a job of kernel PCA, and what it gives to each round.

Rows are taken as float32, as points travel: who has a point can compute all of it again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.features import Kernel, Landmarks
from submerge.jobs.arrays import Arrays
from submerge.jobs.kind import PhaseDown
from submerge.jobs.kinds.kpca import dis_lr, leverage, remainder
from submerge.jobs.kinds.kpca.points import (
    SLACK,
    Order,
    PointChoice,
    own_squares,
    residuals,
    rows_up,
)
from submerge.jobs.kinds.kpca.settings import KpcaSettings
from submerge.jobs.points import JobPoints, key, node_id
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
    """What has gone down, None where nothing has yet: the last phase, for what comes twice.

    `kernel` has gamma after the first round. One node may supply `limit` points to the present
    choice. The triangle (t, t) is of leverage; points (m, d) are of choices that are over.
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


class RowsHere(NamedTuple):
    """A participant's memory.

    rows, held_out : (n, d), (n', d)
    seen : what has gone down
    offered, keys : rows of the present choice, by ascending key
    taken : rows that are points already
    """

    rows: Array
    held_out: Array
    seen: Seen
    offered: Order
    keys: Array
    taken: Order

    @classmethod
    def of(cls, points: JobPoints, of: KpcaSettings) -> RowsHere:
        none: Order = np.empty(0, dtype=np.intp)
        rows, held_out = (
            each.astype(np.float32).astype(np.float64) for each in (points.rows, points.held_out)
        )
        return cls(rows, held_out, Seen.nothing(of), none, np.empty(0), none)

    def counted(self, may_share: int) -> Arrays:
        """Return how many rows there are, and sums that settle gamma if that is open."""
        n, rows = len(self.rows), self.rows
        shares = n > 0 and may_share > 0
        up = {"counts": np.array([n, len(self.held_out), 1.0, shares], dtype=np.float64)}
        if self.seen.kernel.gamma is None:
            square = np.array([float(np.vdot(rows, rows))])
            up |= {"sums": rows.sum(axis=0), "squares": square}
        return up

    def gives(self, down: PhaseDown, may_share: int, node: str) -> tuple[RowsHere, Arrays]:
        """Return the memory for later rounds, and what a round asks for."""
        here, phase = self._replace(seen=self.seen.after(down)), down.phase
        if phase == "factor":
            return here, here._factor(node)
        if phase.startswith("keys"):
            return here._offers(stage_of(phase), may_share, node)
        if phase.startswith("points"):
            return here._supplies(float(down.arrays["largest"][0]), node)
        if phase == "project":
            return here, {**here._projected(node), **here._readings()}
        arrays = down.arrays
        axes, variances = arrays["axes"], arrays["variances"]
        mean = arrays["mean"] if "mean" in arrays else np.zeros(len(axes))
        found = remainder.statistics(here.held_out, here.seen.map, axes, mean, variances)
        if self.seen.of.readings:
            of_readings = arrays["readings_axes"], arrays["readings_mean"]
            found[remainder.READINGS] = dis_lr.residuals_of(here.held_out, *of_readings)
        return here, remainder.sketches_up(found)

    def _factor(self, node: str) -> Arrays:
        """Return the triangle of the embedded rows: of sums of them, as in the paper, or of all."""
        of, embedded = self.seen.of, self.seen.embedded(self.rows)
        if of.merge == "sketch":
            seed = key(of.seed, node, "leverage")
            embedded = leverage.summed(embedded, of.columns, seed=seed)
        return {"triangle": leverage.packed(leverage.triangle_of([embedded], of.sketch))}

    def _offers(self, stage: int, may_share: int, node: str) -> tuple[RowsHere, Arrays]:
        """Return the smallest keys of rows that are no points yet."""
        choice = self.seen.choice(stage)
        keys = choice.keys(self.seen.scores(stage, self.rows), node_id(node))
        keys[self.taken] = np.inf
        order = choice.smallest(keys, may_share)
        return self._replace(offered=order, keys=keys[order]), {"keys": keys[order]}

    def _supplies(self, largest: float, node: str) -> tuple[RowsHere, Arrays]:
        """Return the rows that are points: what was offered, up to the largest key taken."""
        mine = self.offered[self.keys <= largest]
        taken = np.concatenate([self.taken, mine])
        return self._replace(taken=taken), rows_up(node_id(node), self.rows, mine)

    def _readings(self) -> Arrays:
        """Return the rows' own directions, if they are asked for."""
        of = self.seen.of
        if not of.readings:
            return {}
        rank = dis_lr.rank_of(of.components, self.rows.shape[1])
        return dis_lr.readings_up(self.rows, rank)

    def _projected(self, node: str) -> Arrays:
        """Return the directions of the rows in the points' span."""
        of, at = self.seen.of, dis_lr.Coordinates.of(self.rows, self.seen.map)
        if of.merge == "ranks":
            return dis_lr.ranks_up(at, 2 * of.components, center=of.center)
        if of.merge == "exact":
            return dis_lr.exact_up(at)
        seed = key(of.seed, node, "projection")
        return dis_lr.sketch_up(at, of.columns, center=of.center, seed=seed)
