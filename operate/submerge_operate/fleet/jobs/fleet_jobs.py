"""FleetJobs: jobs at a running root, as commands ask for them."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from submerge.errors import PeerError, UsageError
from submerge_aggregator.jobs.board import JobOrder
from submerge_aggregator.jobs.record import MOST_BYTES, JobRecord, unpacked
from submerge_aggregator.jobs.views import JobDetails, JobView
from submerge_files.console.admin_client import AdminClient, value_in
from submerge_files.console.ways import NoAnswer

LOOK_S, LOOK_CAP_S = 0.1, 2.0  # between two looks at a job that runs: at first, and at most
AWAY_S = 60.0  # a root that does not answer for so long is waited for: it may be starting again


class FleetJobs:
    def __init__(
        self,
        admin: AdminClient,
        *,
        sleep: Callable[[float], object] = time.sleep,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self.admin, self._sleep, self._steady = admin, sleep, steady

    def open(self, group: str, order: JobOrder) -> JobView:
        return value_in(self.admin.send(msgspec.json.encode(order), "jobs", group), JobView)

    def listed(self, group: str | None = None) -> list[JobView]:
        query = {} if group is None else {"group": group}
        return self.admin.read(list[JobView], "jobs", **query)

    def find(self, name: str, group: str | None = None) -> JobView:
        """Return a job by its name, or by a beginning of it that no other has."""
        jobs = self.listed(group)
        found = [each for each in jobs if each.id == name]
        found = found or [each for each in jobs if each.id.startswith(name)]
        if len(found) == 1:
            return found[0]
        known = ", ".join(each.id for each in (found or jobs)[:8]) or "none"
        which = "several" if found else "none of that name"
        raise UsageError(f"expected a job of {known}, got {name!r}: {which}")

    def details(self, job: JobView) -> JobDetails:
        return self.admin.read(JobDetails, "jobs", job.group, job.id)

    def cancel(self, job: JobView) -> bytes:
        """End a job as failed; return the root's answer."""
        return self.admin.post("jobs", job.group, job.id, "cancel")

    def record(self, job: JobView) -> JobRecord:
        """Return the record of a job that has an answer, piece by piece."""
        data = bytearray()
        while piece := self.admin.get("jobs", job.group, job.id, "answer", str(len(data))):
            data += piece
            if len(data) > MOST_BYTES:
                break
        try:
            return unpacked(bytes(data))
        except PeerError as error:
            raise NoAnswer(f"the answer of {job.id} cannot be read: {error}") from error

    def follow(self, job: JobView, changed: Callable[[JobView], object]) -> JobView:
        """Wait until a job is over, and return it; `changed` takes it at each round."""
        shown, wait, heard = job, LOOK_S, self._steady()
        changed(job)
        while shown.state == "running":
            self._sleep(wait)
            wait = min(2 * wait, LOOK_CAP_S)
            try:
                now = self.details(job).job
            except NoAnswer:
                if self._steady() - heard > AWAY_S:
                    raise
                continue
            heard = self._steady()
            if now != shown:
                shown, wait = now, LOOK_S
                if now.state == "running":
                    changed(now)
        return shown
