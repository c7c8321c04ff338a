"""Kinds whose answer is a model, and how it becomes one that `submerge score` takes.

A kind that has one adds a line to `MODELS`, with a function that calls `learnt_from`. It gets the
answer's arrays, the schema of the rows, and the job (`results.JobResult`).
Limits are of rows that were held out; a job without any has none, and `score` says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from submerge.history.knowledge import Learnt
from submerge.history.models import NEVER
from submerge.jobs.kinds.kpca.answer import KernelModel
from submerge.protocol.messages import Counts, Model
from submerge.protocol.summaries import Summary
from submerge.schema import Schema
from submerge.stats.score_limits import Limits
from submerge_operate.fleet.jobs.results import JobResult

AsModel = Callable[[JobResult], Learnt]


def learnt_from(
    result: JobResult,
    schema: Schema,
    summary: Summary,
    *,
    rank: int,
    rows: int,
    limits: Limits | None = None,
) -> Learnt:
    """Return what a model file holds of an answer: what scores, and nothing that merges.

    schema : of the scored vectors: that of the rows, with the features of the answer
    summary : its directions, of that schema; where it has features, a `KernelSummary`: directions
        of the features, and of the scaled readings
    rank : directions that SPE and T2 are of
    rows : that were learnt
    limits : of rows that were held out
    """
    record = result.record
    model = Model(
        group=record.job.group,
        version=1,
        schema=schema.canonical,
        fingerprint=schema.fingerprint,
        summary=summary,
        limits=limits,
        counts=Counts(rows),
        nodes=len(record.stayed),
        staleness=(0.0, 0.0, 0.0),
        created=record.ended_s or time.time(),
        expires=NEVER,
        rank=rank,
    )
    return Learnt(model, origin=f"{record.job.group} {record.job.id}" if record.opened_s else "")


def kernel_model(result: JobResult) -> Learnt:
    """Return the model of an answer of kernel PCA: scores of features, and of readings."""
    made = KernelModel.of(result.answer, result.schema)
    return learnt_from(
        *(result, made.schema, made.summary),
        rank=made.rank,
        rows=made.rows,
        limits=made.limits,
    )


MODELS: dict[str, AsModel] = {"kpca": kernel_model, "nystrom": kernel_model}
"""By kind."""
