"""ClientJobs: drives a client's part in jobs, on a thread that exists while there are jobs.

1. What cannot be decoded, or is for another node, is counted and changes nothing.
2. Messages that wait are bounded, and what goes up waits for reports (`Uplink.send`).
3. An error in a job ends this client's part in all its jobs, and nothing else.
4. No row leaves the client as it is, but for `share_points` of them a day: how many have left is on
   disk before they go. If it cannot be written, they do not.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from submerge import PeerError, Schema, UsageError
from submerge._linalg import Array
from submerge.client.node import ClientNode
from submerge.features import OpenLandmarks
from submerge.jobs.landmark_sample import LandmarkSample
from submerge.jobs.row_groups import LEAST_ROWS, MOST_ATTEMPTS, RowSets
from submerge.judge.prepare import Block, prepare
from submerge.protocol.machine import Effect, Keep, Note, Now, Scored, Start, Tick
from submerge.protocol.names import RandomSource
from submerge_client.files import atomic_write
from submerge_client.logs import Notes, say
from submerge_client.memory import room_for_jobs
from submerge_client.uplink import JobQueue, TooLarge

if TYPE_CHECKING:
    from submerge.jobs.job import Job, JobOutcome
    from submerge.jobs.machine import JobEffect, JobEvent, JobHeard
    from submerge.jobs.masks import Masking
    from submerge.jobs.member import JobMember
    from submerge.jobs.membership import ClusterMembership
    from submerge.jobs.points import HeldRows
    from submerge_client.uplink.tls import Tls

MOST_FILE = 2 << 20  # bytes of a file that is read: the header has up to half of it


class KeptClusters:
    """The clusters that a client knows of its group, set by one thread and read by another."""

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
                say("clusters not written", level="error", job=job.id, why=str(error))
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
        if not path.exists():
            return
        from submerge.jobs.arrays import unpack
        from submerge.jobs.job import Job

        try:
            with path.open("rb") as file:
                header, arrays = unpack(file.read(MOST_FILE + 1))
            job = Job.read(header)
        except (OSError, PeerError) as error:
            say("clusters not read", level="warning", why=str(error))
            return
        if job.group == self._group and (kept := _membership(job, arrays)) is not None:
            self._use(kept, job)


def _membership(job: Job, answer: Any) -> ClusterMembership | None:
    """Return what an answer says of rows; None, and a line in the log, if it is none."""
    from submerge.jobs.membership import ClusterMembership

    try:
        return ClusterMembership.of(job, answer)
    except (PeerError, UsageError) as error:
        say("clusters not kept", level="warning", job=job.id, why=str(error))
        return None


def _fields(number: int, distance: float, over: float) -> dict[str, Any]:
    """Return what a line says of a row's cluster: a null cluster is that of a row with a gap."""
    if np.isnan(distance):
        return {"cluster": None}
    fields: dict[str, Any] = {"cluster": number + 1, "cluster_distance": float(f"{distance:.6g}")}
    return fields | ({"cluster_over": over} if over else {})


class HeldSample:
    """A sample of rows. The agent's loop adds to it, and another thread reads it."""

    def __init__(self, most: int, rng: RandomSource) -> None:
        self.most, self._rng = most, rng
        self._lock = threading.Lock()
        self._fingerprint = ""
        self._sample: RowSets | LandmarkSample | None = None

    def __len__(self) -> int:
        return 0 if self._sample is None else len(self._sample)

    @property
    def chooses(self) -> bool:
        """Whether its rows are there to choose landmarks from, one by one."""
        return isinstance(self._sample, LandmarkSample)

    def draw(self, attempts: int) -> tuple[str, Array, Array, int]:
        """Return the schema's fingerprint, rows (n, channels), their order, and attempts."""
        with self._lock:
            sample = self._sample
            if isinstance(sample, RowSets):
                return (self._fingerprint, *sample.draw(attempts))
            rows = np.empty((0, 0)) if sample is None else sample.rows
            return self._fingerprint, rows, np.array([self._rng.random() for _ in rows]), attempts

    def see(self, rows: Array, effects: Iterable[Effect], node: ClientNode) -> None:
        """Take what a node has learnt of rows (n, channels), given in their units."""
        current = node.current
        # While the scaling is open there is nothing to hold, but for a choice of landmarks.
        chooses = isinstance(current.schema.features, OpenLandmarks)
        if not self.most or not (current.learns or chooses):
            return
        if current.fingerprint != self._fingerprint:
            self._begin(current.fingerprint, current.schema, raw=current.raw)
        scored = next((each for each in effects if isinstance(each, Scored)), None)
        learnt = _without_scores(rows, node) if scored is None else _learnt(scored)
        if len(learnt) and self._sample is not None:
            with self._lock:
                self._sample.add(learnt)

    def _begin(self, fingerprint: str, schema: Schema, *, raw: bool) -> None:
        with self._lock:
            self._fingerprint = fingerprint
            self._sample = RowSets(self.most, schema.width, self._rng)
            if isinstance(schema.features, OpenLandmarks):
                known = self.most, schema.width, schema.features.kernel, self._rng
                self._sample = LandmarkSample(*known, raw=raw)


def _learnt(scored: Scored) -> Array:
    """Return the scored rows that are complete, and are learnt without an alarm."""
    block = scored.block
    # Of a row in alarm some channels may be withheld alone.
    fine = ~(scored.decision.withheld | scored.decision.alarmed)
    if block.gaps is not None:
        fine &= ~block.gaps.any(axis=1)
    return block.rows if fine.all() else block.rows[fine]


def _without_scores(rows: Array, node: ClientNode) -> Array:
    """Return the complete rows while there is no model: all of them are learnt, or none."""
    current, monitor = node.current, node.monitor
    if monitor is not None and monitor.withholds:
        return rows[:0]
    when = node.settings.learn_when
    return prepare(rows, current.schema, fill=None, when=when, lifts=False).rows


# Without it, or damaged, the budget counts as spent from now on; a client that has never shared
# has no file.

MOST_BYTES = 1 << 16


class SharedPoints:
    """The record of `submerge.jobs.points.PointBudget`, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> bytes | None:
        """Return the record; None before the first reading is shared."""
        try:
            with self._path.open("rb") as file:
                return file.read(MOST_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            say("shared points unreadable", level="warning", why=str(error))
            return b""  # no record: the budget counts as spent

    def write(self, record: bytes) -> None:
        """Replace the record; with an OSError nothing may be shared."""
        atomic_write(self._path, record, mode=0o600)


IDLE_S = 60.0  # how long the thread waits for another job before it ends
CLOSE_S = 2.0  # for a round that is being computed when the client ends

MASKED_ALONE = "it takes part in masked jobs alone: [privacy] masked = true"
TAKES_NONE = "it takes no part in jobs: job_rows = 0"


class ClientJobs:
    """A client's part in jobs; `share_points` rows may leave as they are in 24 hours."""

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
        tls: Tls | None = None,  # whose certificate signs keys for masked jobs
        masked: bool = False,  # it takes part in no others
    ) -> None:
        self.rows, self.sent_bytes = rows, 0
        self._tls, self._masked = tls, masked
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
            say("message refused", level="warning", kind="job", why=str(error))
            return False
        if (message.stamp.node, message.stamp.group) != (self._node, self._group):
            return False
        with self._changed:
            if not self._closed:
                self._inbox.put(JobHeard(message, self._parent, True), len(data))
                self._wake()
        return True

    def close(self) -> None:
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

    # On the thread of jobs:
    def _run(self) -> None:
        while (event := self._next()) is not None:
            try:
                self._step(event)
            except Exception as error:
                # The next message meets another process of this node, as it were.
                self._member = None
                where = traceback.format_exc(limit=-3)
                say("job failed here", level="error", why=repr(error), where=where)

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
        from submerge.jobs.points import RECORD, PointBudget

        budget = PointBudget(self._share_points if self._shared is not None else 0)
        record = None if self._shared is None or not budget.per_day else self._shared.read()
        more: Any = {"budget": budget, "room": room_for_jobs, "masking": self._masking()}
        member = JobMember(self._node, self._held, self._rng, **more)
        member.step(Start({} if record is None else {RECORD: record}), now)
        return member

    def _masking(self) -> Masking | str:
        if self._tls is None or not self._tls.proves:
            return "it has no certificate to sign keys with, which masked sums need"
        try:
            from submerge_client.masking import KitMasking
        except ImportError:
            return "it has no cryptography to mask sums with: pip install 'submerge[private]'"
        return KitMasking(self._node, self._group, self._tls)

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
        from submerge.jobs.kinds import is_masked
        from submerge.jobs.points import HeldRows

        if job.group != self._group:
            return "another group"
        masked = is_masked(job.settings)
        if self._masked and not masked:
            return MASKED_ALONE
        if not self.rows.most:
            return TAKES_NONE
        if self.rows.chooses and job.kind != "landmarks":
            return "its group has still to choose landmarks"
        # A masked sum is the only one that its rows are in: others would have a difference to it.
        spent = MOST_ATTEMPTS if masked else job.attempts
        fingerprint, rows, order, attempts = self.rows.draw(spent)
        if len(rows) < LEAST_ROWS:
            return f"it has {len(self.rows)} complete rows yet, {LEAST_ROWS} needed"
        if attempts > MOST_ATTEMPTS:
            return f"its rows had {MOST_ATTEMPTS} attempts of jobs: it waits for as many new rows"
        say("job begins", job=job.id, kind=job.kind, rows=len(rows))
        return HeldRows(fingerprint, rows, order)
