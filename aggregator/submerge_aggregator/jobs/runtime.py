"""JobRuntime: drives an aggregator's part in jobs."""

from __future__ import annotations

from submerge.errors import UsageError
from submerge.jobs.job import Job
from submerge_aggregator.jobs.following import JobFollower, NoFollower


class JobRuntime:
    """An aggregator's part in jobs; `Server.jobs` is one. For the event loop.

    Parameters
    ----------
    board : JobFollower or None
        Hears of openings, rounds and ends.

    Attributes
    ----------
    board : JobFollower
    """

    def __init__(self, board: JobFollower | None = None) -> None:
        self.board: JobFollower = NoFollower() if board is None else board

    async def open(self, job: Job) -> None:
        """Open a job; it is under way, and its record is on disk, when this returns.

        Raises
        ------
        UsageError
            If this is no root, does not serve the group, or the job cannot be opened.
        SubmergeError
            If the store cannot be written.
        """
        raise UsageError(f"job {job.id} cannot be opened: this aggregator does not run jobs yet")

    async def cancel(self, job: str) -> bool:
        """End a job as failed; return whether it was under way. The board hears of it first."""
        return False
