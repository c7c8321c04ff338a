"""JobFollower: what hears how jobs go, at the aggregator that opened them or passes them on."""

from __future__ import annotations

from typing import Protocol

from submerge.jobs.job import Job, JobOutcome
from submerge.jobs.machine import JobProgress


class JobFollower(Protocol):
    """Hears of jobs, on the event loop; `wall` is Unix seconds. It must not block."""

    def opened(self, job: Job, wall: float) -> None:
        """Handle a job that is under way from now on: its record is kept."""

    def progressed(self, progress: JobProgress, wall: float) -> None:
        """Handle a round that begins."""

    def ended(self, outcome: JobOutcome, wall: float) -> None:
        """Handle an outcome. It may come twice of one job: the first counts."""


class NoFollower:
    """Hears of jobs, and does nothing with it."""

    def opened(self, job: Job, wall: float) -> None:
        """Do nothing."""

    def progressed(self, progress: JobProgress, wall: float) -> None:
        """Do nothing."""

    def ended(self, outcome: JobOutcome, wall: float) -> None:
        """Do nothing."""
