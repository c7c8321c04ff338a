"""ClientJobs: drives a client's part in jobs, on a thread that exists while there are jobs.

1. Messages come from the parent alone: an uplink knows no other sender. What cannot be decoded, or
   is for another node, is counted and changes nothing.
2. Messages that wait are bounded, and what goes up waits for reports (`Uplink.send`).
3. An error in a job ends this client's part in all its jobs, and nothing else: its parent hears
   that the process is another one.
4. No row leaves the client as it is, but for `share_points` of them a day: how many have left is on
   disk before they go. If it cannot be written, they do not.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from submerge import PeerError
from submerge.protocol.machine import Keep, Note, Now, Start, Tick
from submerge.protocol.names import RandomSource
from submerge_client.jobs.held_rows import HeldSample
from submerge_client.jobs.shared_points import SharedPoints
from submerge_client.logs import Notes, say
from submerge_client.uplink import TooLarge
from submerge_client.uplink.job_queue import JobQueue

if TYPE_CHECKING:  # a client without jobs loads none of it
    from submerge.jobs.job import Job, JobOutcome
    from submerge.jobs.machine import JobEffect, JobEvent, JobHeard
    from submerge.jobs.member import JobMember
    from submerge.jobs.points import HeldRows

IDLE_S = 60.0
"""How long the thread waits for another job before it ends."""

CLOSE_S = 2.0
"""For a round that is being computed when the client ends."""

LEAST_ROWS = 8
"""Sums over fewer rows say too much of each."""

TAKES_NONE = "it takes no part in jobs: job_rows = 0"


class ClientJobs:
    """A client's part in jobs.

    share_points : Rows that may leave as they are in 24 hours.
    shared : Where those that have left are counted.
    send : Sends a message of a job to the parent; it may raise TooLarge.
    ended : Takes the outcome of each job that is over.

    sent_bytes : Bytes of messages, without what the transport adds.
    """

    def __init__(
        self,
        node: str,
        group: str,
        parent: str,
        rows: HeldSample,
        *,
        share_points: int = 0,
        shared: SharedPoints | None = None,
        send: Callable[[bytes], None],
        clock: Callable[[], Now],
        rng: RandomSource,
        ended: Callable[[JobOutcome], None] = lambda _: None,
    ) -> None:
        self.rows, self.sent_bytes = rows, 0
        self._ended = ended
        self._node, self._group, self._parent = node, group, parent
        self._send, self._clock, self._rng = send, clock, rng
        self._share_points, self._shared = share_points, shared
        self._inbox: JobQueue[JobHeard] = JobQueue()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._member: JobMember | None = None
        self._closed = False
        self._notes = Notes()

    def take(self, data: bytes) -> bool:
        """Take a message of the parent; return whether it is one for this node."""
        from submerge.jobs.machine import JobHeard
        from submerge_proto.wire import jobs

        try:
            message = jobs.decode(data)
        except PeerError as error:
            say("message refused", level=logging.WARNING, kind="job", why=str(error))
            return False
        if (message.stamp.node, message.stamp.group) != (self._node, self._group):
            return False
        with self._changed:
            if not self._closed:
                self._inbox.put(JobHeard(message, self._parent, True), len(data))
                self._wake()
        return True

    def close(self) -> None:
        """Give up all jobs."""
        with self._changed:
            self._closed, thread = True, self._thread
            self._changed.notify_all()
        if thread is not None:
            thread.join(CLOSE_S)

    def _wake(self) -> None:
        """Wake the thread, or begin one; the lock is held."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    # -- the thread ------------------------------------------------------------------

    def _run(self) -> None:
        while (event := self._next()) is not None:
            try:
                self._step(event)
            except Exception as error:
                # The next message meets another process of this node, as it were.
                self._member = None
                where = traceback.format_exc(limit=-3)
                say("job failed here", level=logging.ERROR, why=repr(error), where=where)

    def _next(self) -> JobEvent | None:
        """Wait for the next event; None when the thread is to end."""
        with self._changed:
            member = self._member
            busy = member is not None and bool(member.jobs)
            wait = IDLE_S
            if member is not None and busy:
                wait = max(0.0, min(IDLE_S, member.wakes_at - self._clock().steady))
            came = self._changed.wait_for(lambda: self._closed or len(self._inbox), wait)
            if not self._closed and came:
                return self._inbox.take()
            if not self._closed and busy:
                return Tick()
            self._thread = None
            return None

    def _step(self, event: JobEvent) -> None:
        """Let the member take an event, and perform its effects."""
        now = self._clock()
        if self._member is None:
            self._member = self._begun(now)
        for effect in self._member.step(event, now):
            self._perform(effect, now)

    def _begun(self, now: Now) -> JobMember:
        """Return a part in jobs that knows what has been shared before."""
        from submerge.jobs.member import JobMember
        from submerge.jobs.point_budget import RECORD, PointBudget

        budget = PointBudget(self._share_points if self._shared is not None else 0)
        record = None if self._shared is None or not budget.per_day else self._shared.read()
        member = JobMember(self._node, self._held, self._rng, budget=budget)
        member.step(Start({} if record is None else {RECORD: record}), now)
        return member

    def _perform(self, effect: JobEffect, now: Now) -> None:
        from submerge.jobs.machine import JobEnded, SendJob
        from submerge_proto.wire import jobs

        match effect:
            case SendJob(_, message):
                data = jobs.encode(message)
                try:
                    self._send(data)
                    self.sent_bytes += len(data)
                except TooLarge as error:
                    facts: dict[str, Any] = {"job": message.job, "why": str(error)}
                    self._notes.write(Note("message of a job not sent", facts), now.steady)
            case Keep(records) if self._shared is not None:
                for record in records.values():
                    self._shared.write(bytes(record or b""))
            case JobEnded(outcome):
                facts = {"job": outcome.job.id, "kind": outcome.job.kind}
                facts |= {"why": outcome.failure} if outcome.failure else {}
                say("job failed" if outcome.failure else "job ended", **facts)
                self._ended(outcome)
            case Note():
                self._notes.write(effect, now.steady)

    def _held(self, job: Job) -> HeldRows | str:
        """Return the rows for a job, or why there are none."""
        from submerge.jobs.points import HeldRows

        if job.group != self._group:
            return "another group"
        if not self.rows.most:
            return TAKES_NONE
        fingerprint, rows = self.rows.read()
        say("job begins", job=job.id, kind=job.kind, rows=len(rows))
        few = f"it has {len(rows)} complete rows yet, {LEAST_ROWS} needed"
        return HeldRows(fingerprint, rows) if len(rows) >= LEAST_ROWS else few
