"""JobResult: an answer in units, as arrays by name, and as values of JSON.

Rows of a fleet are scaled: places among them are in units, and as they are with `_scaled` behind.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import numpy as np

from submerge import Array
from submerge.errors import PeerError, UsageError
from submerge.headings import heading_of
from submerge.jobs.kinds import KINDS
from submerge.jobs.local_run import in_channel_units, scaled_arrays
from submerge.schema import Schema
from submerge_aggregator.jobs.record import JobRecord

SCALED = "_scaled"

JOB = "job"  # the array of an archive that says how the job ended


class JobResult:
    """A job that has an answer; `schema`: of the rows; anonymous channels where it is not known."""

    def __init__(self, record: JobRecord) -> None:
        if record.answer is None:
            raise UsageError(f"{record.job.id} has no answer: {record.failure}")
        self.record, self.answer = record, record.answer
        self.schema = _schema_of(record)

    @property
    def kind(self) -> str:
        return self.record.job.kind

    @property
    def is_whole(self) -> bool:
        """Whether it has all arrays that this version lists: a root may have another version."""
        kind = KINDS.get(self.kind)
        return kind is not None and {each.name for each in kind.answers} <= {*self.answer}

    @property
    def headings(self) -> list[str]:
        """The channels as columns of a table are called."""
        return [heading_of(channel) for channel in self.schema.named]

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """The answer's arrays in the channels' units, and scaled."""
        scaled = scaled_arrays(self.kind).keys() & self.answer.keys()
        return {
            **in_channel_units(self.kind, self.answer, self.schema),
            **{f"{name}{SCALED}": self.answer[name] for name in sorted(scaled)},
        }

    def archived(self) -> dict[str, Any]:
        """Return what an .npz holds: the arrays, the channels, their scaling, and the job."""
        named = self.schema.named
        scaling = self.schema.scaling
        rest: dict[str, Any] = {
            "channels": np.array([channel.name for channel in named]),
            "units": np.array([channel.unit for channel in named]),
            JOB: np.array(json.dumps(job_object(self.record))),
        }
        if scaling is not None:
            rest |= {"offset": np.array(scaling.offset), "scale": np.array(scaling.scale)}
        return {**rest, **self.arrays}

    def as_object(self) -> dict[str, Any]:
        arrays = {name: array.tolist() for name, array in self.arrays.items()}
        return {**job_object(self.record), "channels": list(self.schema.names), "answer": arrays}


def job_object(record: JobRecord) -> dict[str, Any]:
    """Return how a job ended, as values of JSON, without its answer."""
    return {
        "id": record.job.id,
        "group": record.job.group,
        "kind": record.job.kind,
        "settings": dict(record.job.settings),
        "fingerprint": record.job.fingerprint,
        "exact": record.job.exact,
        "opened_s": record.opened_s,
        "ended_s": record.ended_s,
        "rounds": record.rounds,
        "attempts": record.attempts,
        "stayed": list(record.stayed),
        "left": {name: each._asdict() for name, each in record.left.items()},
        "declined": dict(record.declined),
    }


def _schema_of(record: JobRecord) -> Schema:
    if not record.schema:
        return Schema.anonymous(record.job.width)
    try:
        return Schema.parse(record.schema)
    except PeerError as error:
        raise UsageError(f"the schema of {record.job.id} cannot be read: {error}") from error
