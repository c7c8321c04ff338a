"""KeptClusters: the newest answer that a job asked clients to keep, for the lines of scores.

1. A job with the setting `keep` gives it. An answer without changes nothing, so that trying out
   other settings does not change what readers of the lines see.
2. It is of one schema. Under another one rows have no cluster; the answer stays.
3. It takes 1 MiB at most, here and on disk: larger answers are refused, and the log says so.
4. It has a file of its own beside the checkpoint, `clusters` behind its name, written once for each
   answer: the checkpoint is written with each report, and would grow by as much. A file that cannot
   be written is logged, and one that cannot be read is as none.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from submerge import PeerError, Schema
from submerge.judge.prepare import Block
from submerge_client.atomic_file import atomic_write
from submerge_client.logs import say

if TYPE_CHECKING:  # a client without clusters loads none of it
    from submerge.jobs.job import Job, JobOutcome
    from submerge.jobs.membership import ClusterMembership

MOST_FILE = 2 << 20
"""Bytes of a file that is read: the header has up to half of it."""


class KeptClusters:
    """The clusters that a client knows. One thread sets them, and another one reads them.

    group : Answers for another group are passed over.
    path : Of its file; None: it does not outlive the process.
    """

    def __init__(self, group: str, path: Path | None = None) -> None:
        self._group, self._path = group, path
        self._kept: ClusterMembership | None = None
        if path is not None:
            self._load(path)

    def take(self, outcome: JobOutcome) -> None:
        """Keep the answer of a job, if it asks for that and has clusters."""
        from submerge.jobs.arrays import pack

        job, answer = outcome.job, outcome.answer
        if answer is None or job.settings.get("keep") is not True or job.group != self._group:
            return
        kept = _membership(job, answer)
        if kept is None:
            return
        if self._path is not None:
            # First: what lines of scores have said once, they say after a kill.
            try:
                atomic_write(self._path, pack(job.written(), answer), mode=0o600)
            except OSError as error:
                say("clusters not written", level=logging.ERROR, job=job.id, why=str(error))
        self._use(kept, job)

    def of_block(self, block: Block, schema: Schema) -> list[dict[str, Any]]:
        """Return the fields of each row of a block, `cluster` and what belongs to it; or none."""
        kept = self._kept
        fits = kept is not None and (kept.fingerprint, kept.width) == (
            schema.fingerprint,
            schema.width,
        )
        if kept is None or not fits:
            return [{}] * len(block)
        found = kept.assign(block.rows, block.gaps)
        return [
            _fields(number, distance, over)
            for number, distance, over in zip(
                found.numbers.tolist(), found.distances.tolist(), found.over.tolist(), strict=True
            )
        ]

    def _use(self, kept: ClusterMembership, job: Job) -> None:
        self._kept = kept
        say("clusters kept", job=job.id, clusters=len(kept.centers), bytes=kept.nbytes)

    def _load(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                data = file.read(MOST_FILE + 1)
        except FileNotFoundError:
            return
        except OSError as error:
            say("clusters not read", level=logging.WARNING, why=str(error))
            return
        from submerge.jobs.arrays import unpack
        from submerge.jobs.job import Job

        try:
            header, arrays = unpack(data)
            job = Job.read(header)
        except PeerError as error:
            say("clusters not read", level=logging.WARNING, why=str(error))
            return
        if job.group == self._group and (kept := _membership(job, arrays)) is not None:
            self._use(kept, job)


def _membership(job: Job, answer: Any) -> ClusterMembership | None:
    """Return what an answer says of rows; None, and a line in the log, if it is none."""
    from submerge import UsageError
    from submerge.jobs.membership import ClusterMembership

    try:
        return ClusterMembership.of(job, answer)
    except (PeerError, UsageError) as error:
        say("clusters not kept", level=logging.WARNING, job=job.id, why=str(error))
        return None


def _fields(number: int, distance: float, over: float) -> dict[str, Any]:
    """Return what a line says of a row's cluster: a null cluster is that of a row with a gap."""
    if np.isnan(distance):
        return {"cluster": None}
    fields: dict[str, Any] = {"cluster": number + 1, "cluster_distance": float(f"{distance:.6g}")}
    return fields | ({"cluster_over": over} if over else {})
