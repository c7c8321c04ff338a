"""KernelModel: what `submerge score` needs, made of an answer: a schema, directions and limits.

The schema is that of the rows, with the points as landmarks of its map: who has it can read the
points. Scores are then of the coordinates in their span, as in a streaming group with
`map = "nystrom"`; limits are of these scores.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.errors import UsageError
from submerge.jobs.arrays import Arrays
from submerge.jobs.kinds.kpca.answer import map_of
from submerge.pca.subspace import Subspace, oriented
from submerge.protocol.kernel_summary import KernelSummary
from submerge.schema import Schema
from submerge.stats.score_limits import Limits


class KernelModel(NamedTuple):
    """A model of an answer.

    schema : of what is scored, with the answer's points as landmarks
    summary : directions of the features, and of the scaled readings
    rank : directions that SPE and T2 are of
    rows : that were learnt
    limits : of rows that were held out, or None
    """

    schema: Schema
    summary: KernelSummary
    rank: int
    rows: int
    limits: Limits | None

    @classmethod
    def of(cls, answer: Arrays, schema: Schema) -> KernelModel:
        """Make a model of an answer over rows of a schema, which has no map of its own.

        Raises
        ------
        UsageError
            If the answer has no directions of the readings.
        """
        if "readings_axes" not in answer:
            raise UsageError(
                "a model needs the readings' directions, and the job had readings=false: run it"
                " with readings=true"
            )
        centered = bool(np.any(answer["mean"]))
        scored = replace(schema, features=map_of(answer), center="fleet" if centered else "none")
        rows = float(answer["counts"][0])
        features = _subspace(answer, scored, "", rows)
        linear = _subspace(answer, scored, "readings_", rows)
        return cls(
            scored, KernelSummary(features, linear), features.rank, int(rows), _limits(answer)
        )


def _subspace(answer: Arrays, schema: Schema, of: str, rows: float) -> Subspace:
    axes, eigenvalues = answer[f"{of}axes"], answer[f"{of}eigenvalues"]
    energy = max(float(answer[f"{of}energy"][0]), float(eigenvalues.sum()))
    return oriented(
        np.array(axes.T, order="C"),
        np.sqrt(eigenvalues),
        schema=schema.fingerprint,
        mean=answer[f"{of}mean"].copy(),
        weight=rows,
        energy=energy,
        spectral_bound=0.0,
    )


def _limits(answer: Arrays) -> Limits | None:
    """Return the limits of rows that were held out; None where there are none."""
    if "inside_limits" not in answer:
        return None

    def values(of: Array) -> tuple[float, ...]:
        return tuple(of.tolist())

    return Limits(
        values(answer["limit_shares"]),
        values(answer["inside_limits"]),
        values(answer["t2_limits"]),
        int(answer["counts"][1]),
        linear=values(answer["readings_limits"]),
    )
