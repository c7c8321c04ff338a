"""Jobs at a root without a network: what drives them is played, the board is the one that ships.

with House(tmp_path) as house:
    fleet = JobFleet(house)
    fleet.ends("job-1")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from submerge.errors import UsageError
from submerge.jobs.arrays import Arrays
from submerge.jobs.job import Job, JobOutcome, Leaver
from submerge.jobs.local_run import run_here
from submerge.jobs.machine import JobProgress
from submerge_aggregator.jobs.board import JobBoard
from support.house import SCHEMA, House
from support.nodes import new_incarnation

ROWS = {
    name: np.random.default_rng(seed).normal(seed, 1.0, size=(40, SCHEMA.dim))
    for seed, name in enumerate(("pump-1", "pump-2", "pump-3"))
}


def job(name: str = "job-1", kind: str = "kmeans", **fields: Any) -> Job:
    """A job of the house's group."""
    settings = {"clusters": 3, "held_out": 0.25} if kind == "kmeans" else {}
    known = {"settings": settings, "group": "room", "fingerprint": SCHEMA.fingerprint}
    return Job(name, kind, **{**known, "width": SCHEMA.dim, **fields})


def outcome(
    of: Job,
    *,
    failure: str = "",
    left: Mapping[str, Leaver] | None = None,
    declined: Mapping[str, str] | None = None,
) -> JobOutcome:
    """How a job ends over the rows of those who have not left."""
    gone = left or {}
    stayed = {name: new_incarnation(n + 1) for n, name in enumerate(ROWS) if name not in gone}
    answer: Arrays | None = None
    if not failure:
        answer = run_here(of.kind, of.settings, {name: ROWS[name] for name in stayed})
    everyone = {name: new_incarnation(n + 1) for n, name in enumerate(ROWS)}
    return JobOutcome(of, answer, failure, everyone, stayed, gone, declined or {}, 5, 1)


class JobFleet:
    """Takes the orders of a house's `Server.jobs`, in place of its nodes.

    at_once : whether a job that is opened is over, with an answer, before its opening is answered
    """

    def __init__(self, house: House, *, at_once: bool = False, failure: str = "") -> None:
        self._house, self._at_once, self._failure = house, at_once, failure
        self.open_jobs: dict[str, Job] = {}
        jobs: Any = house.server.jobs
        jobs.open, jobs.cancel = self.open, self.cancel

    @property
    def board(self) -> JobBoard:
        """The house's."""
        return self._house.server.board

    async def open(self, job: Job) -> None:
        """Open a job; one at a time."""
        if self.open_jobs:
            raise UsageError("at most 1 job at once, got one more: wait for one")
        self.open_jobs[job.id] = job
        self.board.opened(job, self._wall)
        self.board.progressed(JobProgress(job.id, "open", 0, 0, 0), self._wall)
        if self._at_once:
            self._end(job.id, failure=self._failure)

    async def cancel(self, job: str) -> bool:
        """End a job as failed."""
        if job not in self.open_jobs:
            return False
        self._end(job, failure="cancelled")
        return True

    def goes_on(self, name: str, phase: str, number: int, members: int = 3) -> None:
        """Have a round begin."""
        progress = JobProgress(name, phase, number, 1, members)
        self._house.does(_called(self.board.progressed, progress, self._wall))

    def ends(self, name: str, **how: Any) -> None:
        """Have a job end, as `outcome` says."""
        self._house.does(_called(self._end, name, **how))

    def _end(self, name: str, **how: Any) -> None:
        self.board.ended(outcome(self.open_jobs.pop(name), **how), self._wall)

    @property
    def _wall(self) -> float:
        return self._house.time().wall


async def _called(what: Any, *given: Any, **named: Any) -> None:
    what(*given, **named)
