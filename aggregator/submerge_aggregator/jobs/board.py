"""JobBoard: what is known of jobs at a root: those under way, and those that are over.

A job that is over is one file (docs/decisions/0060). Where a disk is full, the newest
`MOST_UNWRITTEN` jobs are kept in memory. All but `details` and `piece`, which read files, is for
the event loop.
"""

from __future__ import annotations

import os
import secrets
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from submerge.aggregator.node import AggregatorNode
from submerge.errors import PeerError, UsageError
from submerge.jobs.envelopes import OPENING
from submerge.jobs.job import Job, JobOutcome
from submerge.jobs.kinds import kind_of
from submerge.jobs.machine import JobProgress
from submerge.jobs.root import ROOT_RESTARTED
from submerge_aggregator.jobs.record import HEAD, JobRecord, header_end, header_of, packed
from submerge_aggregator.jobs.views import JobDetails, JobState, JobView, LeftView, Plain
from submerge_aggregator.questions import survey
from submerge_client.files import PRIVATE, atomic_write
from submerge_client.logs import say

MOST_ORDER_BYTES = 16_384  # of an order to open a job: settings take a fourth of it


class JobOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator says of a job; each field is as in `Job`, and left out has its default."""

    kind: str
    settings: dict[str, Plain] = {}
    exact: bool = True
    least: int = 0
    rounds: int = 500
    attempts: int = 8
    open_s: float = 60.0
    round_s: float = 60.0
    job_s: float = 3600.0


class GroupSchema(NamedTuple):
    canonical: bytes
    fingerprint: str
    width: int


def read_order(data: bytes) -> JobOrder:
    """Return the order in a request's body; raises UsageError if it is none."""
    try:
        return msgspec.json.decode(data, type=JobOrder)
    except msgspec.MsgspecError as error:
        raise UsageError(f"expected a job as JSON, such as kind and settings: {error}") from error


def schema_of(node: AggregatorNode, group: str) -> GroupSchema:
    """Return of which rows a group's jobs are, at a root."""
    survey.group_of(node, group)
    if not node.top:
        raise UsageError(
            f"jobs are opened at the root: this is {node.settings.node}, ask its parent"
            f" {node.settings.parent}, or the root above it"
        )
    ledger = node.ledger(group)
    if ledger is None:
        raise UsageError(f"group {group} has no schema yet: wait until a node has reported")
    schema = ledger.schema
    if node.plan(group).is_open(schema.canonical):
        learnt = ledger.counts().learnt
        raise UsageError(
            f"the schema of group {group} is not settled yet, after {learnt:,} rows: wait until"
            " it has a model"
        )
    return GroupSchema(schema.canonical, schema.fingerprint, schema.width)


def job_of(order: JobOrder, group: str, schema: GroupSchema) -> Job:
    given = {each: getattr(order, each) for each in order.__struct_fields__}
    job = Job(
        id=f"job-{secrets.token_hex(5)}",
        group=group,
        fingerprint=schema.fingerprint,
        width=schema.width,
        **given,
    )
    kind_of(job)
    return job


MOST_ENDED, MOST_ENDED_BYTES = 100, 64 << 20  # jobs that are over, and bytes of their files
MOST_UNWRITTEN = 4  # jobs without a file, whose answers are kept in memory
PIECE_BYTES = 1 << 20  # of a file, in one answer
ENDING = ".job"  # of the files' names


def jobs_path(store: str | os.PathLike[str]) -> Path:
    return Path(f"{os.path.realpath(store)}.jobs")


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job that is over, and about how many bytes its file has."""

    view: JobView
    size: int

    @property
    def cut_off(self) -> bool:
        """Whether its file is that of a job that ran, and when it ended is not known."""
        return self.view.failure == ROOT_RESTARTED and self.view.ended_s == self.view.opened_s


class JobBoard:
    """The jobs of one root; without a folder the newest ones are kept in memory alone."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._schemas: dict[str, bytes] = {}
        self._running: dict[str, JobView] = {}
        self._ended = {} if folder is None else _found(folder)
        self._unwritten: dict[str, bytes] = {}
        self._lost: set[str] = set()  # their files say still that they are under way
        self._writing: dict[str, Future[None]] = {}
        self._thread: ThreadPoolExecutor | None = None

    def announce(self, job: Job, schema: bytes) -> None:
        """Keep the schema of a job that is about to be opened: answers are read with it."""
        self._schemas[job.id] = schema

    def withdraw(self, job: Job) -> None:
        if job.id not in self._running:
            self._schemas.pop(job.id, None)

    def opened(self, job: Job, wall: float) -> None:
        outcome = JobOutcome(job, None, ROOT_RESTARTED, {}, {}, {}, {}, 0, 0)
        record = self._record(outcome, wall, wall)
        running = replace(_view_of(record, "running"), phase=OPENING, ended_s=0.0, failure="")
        self._running[job.id] = running
        self._write(record)

    def progressed(self, progress: JobProgress, wall: float) -> None:
        if progress.job in self._running:
            self._running[progress.job] = replace(
                self._running[progress.job],
                phase=progress.phase,
                round=progress.round,
                attempt=progress.attempt,
                members=progress.members,
            )

    def ended(self, outcome: JobOutcome, wall: float) -> None:
        """Note how a job ended; only the first end of one counts."""
        name = outcome.job.id
        known = self._ended.get(name)
        if known is not None and not known.cut_off:
            return
        view = self._running.pop(name, None if known is None else known.view)
        record = self._record(outcome, 0.0 if view is None else view.opened_s, wall)
        self._schemas.pop(name, None)
        answer = outcome.answer or {}
        size = len(record.schema) + sum(array.nbytes for array in answer.values())
        size += sum(map(len, (*record.stayed, *record.left, *record.declined)))
        state: JobState = "failed" if outcome.answer is None else "done"
        self._ended[name] = EndedJob(_view_of(record, state), size)
        self._write(record)
        self._bound()

    def views(self, group: str | None = None) -> list[JobView]:
        """Return all jobs, or those of a group: those that run first, then the newest."""
        ended = sorted((each.view for each in self._ended.values()), key=_newest, reverse=True)
        views = (*self._running.values(), *ended)
        return [each for each in views if group in (None, each.group)]

    def view(self, name: str) -> JobView | None:
        ended = self._ended.get(name)
        return self._running.get(name) if ended is None else ended.view

    def details(self, view: JobView) -> JobDetails:
        """Return a job with the names of its nodes; without names if its file is damaged."""
        if view.state == "running":
            return JobDetails(view)
        try:
            head = self._bytes(view.id, 0, HEAD)
            record = header_of(self._bytes(view.id, 0, header_end(head))).record
        except (PeerError, OSError):
            return JobDetails(view)
        left = {name: LeftView(*each) for name, each in record.left.items()}
        return JobDetails(view, record.stayed, left, dict(record.declined))

    def piece(self, name: str, first: int) -> bytes:
        return self._bytes(name, first, PIECE_BYTES)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown()

    def _record(self, outcome: JobOutcome, opened: float, ended: float) -> JobRecord:
        schema = self._schemas.get(outcome.job.id, b"")
        return JobRecord.of(outcome, schema=schema, opened_s=opened, ended_s=ended)

    def _bytes(self, name: str, first: int, most: int) -> bytes:
        writing = self._writing.get(name)
        if writing is not None:
            writing.result()
        if (data := self._unwritten.get(name)) is not None:
            return data[first : first + most]
        if name in self._lost:
            raise OSError(f"{self._path(name)}: it was not written, and newer ones took its place")
        with self._path(name).open("rb") as file:
            # Behind its end there is nothing, however large the number is.
            file.seek(min(first, os.fstat(file.fileno()).st_size))
            return file.read(most)

    def _path(self, name: str) -> Path:
        return (self._folder or Path()) / f"{name}{ENDING}"

    def _write(self, record: JobRecord) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="jobs")
        self._writing[record.job.id] = self._thread.submit(self._written, record)

    def _written(self, record: JobRecord) -> None:
        name, data = record.job.id, packed(record)
        try:
            if self._folder is None:
                raise FileNotFoundError("no folder")
            self._folder.mkdir(mode=0o700, exist_ok=True)
            atomic_write(self._path(name), data, mode=PRIVATE)
            self._unwritten.pop(name, None)
        except OSError as error:
            self._unwritten[name] = data
            while len(self._unwritten) > MOST_UNWRITTEN:
                lost = next(iter(self._unwritten))
                del self._unwritten[lost]
                self._lost.add(lost)
            if self._folder is not None:
                why = f"{self._path(name)}: {error.strerror}; it is lost when the root ends"
                say("job not written", level="warning", job=name, why=why)

    def _bound(self) -> None:
        """Let the oldest go, until there are few enough; the newest stays in any case."""
        ended = sorted(self._ended.values(), key=lambda each: _newest(each.view))
        total = sum(each.size for each in ended)
        while len(ended) > 1 and (len(ended) > MOST_ENDED or total > MOST_ENDED_BYTES):
            gone = ended.pop(0)
            total -= gone.size
            del self._ended[gone.view.id]
            self._writing.pop(gone.view.id, None)
            if self._thread is not None:
                self._thread.submit(self._remove, gone.view.id)

    def _remove(self, name: str) -> None:
        self._unwritten.pop(name, None)
        self._lost.discard(name)
        if self._folder is not None:
            with suppress(OSError):
                self._path(name).unlink()


def _found(folder: Path) -> dict[str, EndedJob]:
    found: dict[str, EndedJob] = {}
    for left in folder.glob(".*.part"):
        with suppress(OSError):
            left.unlink()  # of a process that was killed while it wrote
    for path in sorted(folder.glob(f"*{ENDING}")):
        try:
            with path.open("rb") as file:
                head = file.read(HEAD)
                header = header_of(head + file.read(header_end(head) - HEAD))
            if path.stem != header.record.job.id:
                raise PeerError(f"it is of job {header.record.job.id}")
        except (OSError, PeerError) as error:
            say("job unreadable", level="warning", why=f"{path}: {error}; it is set aside")
            with suppress(OSError):
                path.replace(f"{path}.damaged")
            continue
        view = _view_of(header.record, "done" if header.answer_bytes else "failed")
        found[view.id] = EndedJob(view, header.begins + header.answer_bytes)
    return found


def _view_of(record: JobRecord, state: JobState) -> JobView:
    job = record.job
    return JobView(
        id=job.id,
        group=job.group,
        kind=job.kind,
        settings=dict(job.settings),
        exact=job.exact,
        least=job.least,
        state=state,
        phase="",
        round=record.rounds,
        attempt=record.attempts,
        members=len(record.stayed),
        left=len(record.left),
        declined=len(record.declined),
        opened_s=record.opened_s,
        ended_s=record.ended_s,
        failure=record.failure,
    )


def _newest(view: JobView) -> tuple[float, str]:
    return view.ended_s, view.id
