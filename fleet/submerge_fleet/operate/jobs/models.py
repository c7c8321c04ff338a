"""Kinds whose answer is a model, and how it becomes one that `submerge score` takes.

A kind that has one adds a line here:

    MODELS["kpca"] = as_model      (result: JobResult) -> Learnt

The result has the answer's arrays, the schema of the rows, and the job (`results.JobResult`); the
limits of the model are measured on rows that were held out, or it has none.
"""

from __future__ import annotations

from collections.abc import Callable

from submerge.history.learnt import Learnt
from submerge_fleet.operate.jobs.results import JobResult

AsModel = Callable[[JobResult], Learnt]

MODELS: dict[str, AsModel] = {}
"""By kind."""
