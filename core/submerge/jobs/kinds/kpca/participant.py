"""RowsHere: what a participant holds in a job of kernel PCA, and what it gives to each round.

Rows are taken as float32, as points travel: who has a point can compute all of it again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.jobs.arrays import Arrays
from submerge.jobs.kind import PhaseDown
from submerge.jobs.kinds.kpca import chosen, dis_lr, leverage, measured, readings
from submerge.jobs.kinds.kpca.seen import Seen, stage_of
from submerge.jobs.kinds.kpca.settings import KpcaSettings
from submerge.jobs.points import JobPoints, key, node_id


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
    offered: chosen.Order
    keys: Array
    taken: chosen.Order

    @classmethod
    def of(cls, points: JobPoints, of: KpcaSettings) -> RowsHere:
        """Freeze rows."""
        none: chosen.Order = np.empty(0, dtype=np.intp)
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
        found = measured.statistics(here.held_out, here.seen.map, axes, mean, variances)
        if self.seen.of.readings:
            of_readings = arrays["readings_axes"], arrays["readings_mean"]
            found[measured.READINGS] = readings.residuals_of(here.held_out, *of_readings)
        return here, measured.sketches_up(found)

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
        return self._replace(taken=taken), chosen.rows_up(node_id(node), self.rows, mine)

    def _readings(self) -> Arrays:
        """Return the rows' own directions, if they are asked for."""
        of = self.seen.of
        if not of.readings:
            return {}
        rank = readings.rank_of(of.components, self.rows.shape[1])
        return readings.readings_up(self.rows, rank)

    def _projected(self, node: str) -> Arrays:
        """Return the directions of the rows in the points' span."""
        of, at = self.seen.of, dis_lr.Coordinates.of(self.rows, self.seen.map)
        if of.merge == "ranks":
            return dis_lr.ranks_up(at, 2 * of.components, center=of.center)
        if of.merge == "exact":
            return dis_lr.exact_up(at)
        seed = key(of.seed, node, "projection")
        return dis_lr.sketch_up(at, of.columns, center=of.center, seed=seed)
