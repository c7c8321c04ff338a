"""The merged model compared with exact PCA of every row that the fleet learnt.

Rows that an alarm withholds do not count. A row far over its limit is learnt as if it were nearer,
but counts here as it was read, and a gap counts as what a sound mote would have read: both
differences are part of the error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from submerge import Array, Schema, Subspace
from submerge.protocol.summaries import Subspaces, Summary
from submerge_lab.replay.exact import ratio
from submerge_operate.fleet.model_comparison import SEPARATED


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The merged model compared with exact PCA of every row.

    rank : The rank that is shown.
    error, optimum : Mean squared distance of a row to the merged and to the exact subspace, both at
        `rank`.
    ratio : error / optimum: 1 is perfect.
    energy_kept : Share of all variation that the merged subspace holds.
    separated : Leading directions that are compared by angle: up to the last eigenvalue within the
        rank that is twice the next (directions of equal variance may rotate into one another).
    angle_deg : Largest principal angle between these directions of both.
    merged, exact : Variance along each leading direction.
    """

    rank: int
    error: float
    optimum: float
    ratio: float | None
    energy_kept: float
    separated: int
    angle_deg: float
    merged: tuple[float, ...]
    exact: tuple[float, ...]


class Pooled:
    """The scatter matrix of all rows, which a node of the fleet could not afford to keep."""

    def __init__(self, dim: int) -> None:
        self._n = 0
        self._sum, self._square = np.zeros(dim), np.zeros((dim, dim))

    def add(self, rows: Array) -> None:
        """Add rows (n, dim)."""
        self._n += len(rows)
        self._sum += rows.sum(axis=0)
        self._square += rows.T @ rows

    def compare(self, model: Subspace, *, rank: int) -> Accuracy:
        """Compare a model of these rows with their exact PCA, both at `rank`."""
        scatter = self._square - np.outer(self._sum, self._sum) / self._n
        exact, vectors = np.linalg.eigh(scatter)
        exact, vectors = exact[::-1], vectors[:, ::-1]
        # Orthonormal again: float32 columns are so to 1e-7, which would beat the optimum.
        basis = np.linalg.qr(np.asarray(model.truncated(rank).basis, dtype=np.float64))[0]
        energy = float(np.trace(scatter))
        error = energy - float(np.vdot(basis, scatter @ basis))
        optimum = float(exact[rank:].sum())
        gaps = exact[:rank] / np.maximum(exact[1 : rank + 1], 1e-12 * exact[0])
        clear = np.flatnonzero(gaps >= SEPARATED)
        q = int(clear[-1] if len(clear) else gaps.argmax()) + 1
        q = min(q, basis.shape[1])
        # The sine, not the cosine: it keeps its digits where the angle is small.
        off = vectors[:, :q] - basis[:, :q] @ (basis[:, :q].T @ vectors[:, :q])
        sine = min(1.0, float(np.linalg.norm(off, 2)))
        return Accuracy(
            rank=rank,
            error=error / self._n,
            optimum=optimum / self._n,
            ratio=ratio(error, optimum, energy),
            energy_kept=1 - error / energy,
            separated=q,
            angle_deg=float(np.degrees(np.arcsin(sine))),
            merged=tuple(float(x) for x in model.explained_variance),
            exact=tuple(float(x) for x in exact[: 3 * model.rank] / self._n),
        )


class Pools:
    """All learnt rows, pooled: in a kernel group once as features and once as readings."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        dims = (schema.dim,) if schema.linear else (schema.dim, schema.width)
        self._pools = [Pooled(dim) for dim in dims]

    def add(self, rows: Array) -> None:
        """Add rows (n, channels) without gaps, in their units."""
        scaled = self._schema.scaled(rows)
        learnt, *readings = self._pools
        learnt.add(self._schema.features.lift(scaled))
        for pool in readings:
            pool.add(scaled)

    def compare(self, model: Summary, summaries: Subspaces) -> tuple[Accuracy, Accuracy | None]:
        """Compare a model with exact PCA at the shown rank: of features, then of readings."""
        parts = zip(self._pools, model.parts, summaries.shown(model).parts, strict=True)
        learnt, *readings = (pool.compare(part, rank=shown.rank) for pool, part, shown in parts)
        return learnt, readings[0] if readings else None
