"""BackupJobs: the one copy that an operator is fetching, piece by piece.

It is made on a thread of its own. A client asks how far it is, reads it in pieces, and ends it; a
client that has gone is noticed by its silence. So no request takes long, and memory is bounded by
a piece.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace

from submerge import __version__
from submerge.errors import SubmergeError, UsageError
from submerge.protocol.machine import Now
from submerge_aggregator.backup.checking import PIECE, CopyIdentity, group_states, line_of
from submerge_aggregator.server import Server
from submerge_aggregator.worker import CommitWorker

BELOW = (
    "expected a root, got an aggregator with a parent: a copy of its store is of no use, for its"
    " parent gives it up; back up the root"
)


def refuse_below(worker: CommitWorker) -> None:
    """Check that an aggregator is a root; raises UsageError if it has a parent."""
    if worker.node is not None and not worker.node.top:
        raise UsageError(BELOW)


def make_copy(
    worker: CommitWorker, clock: Callable[[], Now], progress: Callable[[int, int], None]
) -> tuple[int, CopyIdentity]:
    """Copy the store of a root while it runs, on a thread of its own; the caller closes fd."""

    def at_end() -> CopyIdentity:
        node, now = worker.node, clock()
        refuse_below(worker)
        if node is None:
            raise SubmergeError("the store cannot be written now: ask again")
        return CopyIdentity(
            node.settings.node,
            str(node.incarnation),
            __version__,
            now.wall,
            now.synced,
            group_states(node, now),
        )

    fd, identity = worker.store.copies.make(at_end, progress)
    try:
        return fd, _finished(fd, identity)
    except BaseException:
        os.close(fd)
        raise


def _finished(fd: int, identity: CopyIdentity) -> CopyIdentity:
    """Write the line behind the database."""
    size, digest, at = os.fstat(fd).st_size, hashlib.sha256(), 0
    while piece := os.pread(fd, PIECE, at):
        digest.update(piece)
        at += len(piece)
    whole = replace(identity, bytes=size)
    os.pwrite(fd, line_of(whole, digest), size)
    return whole


PIECE_BYTES = 1 << 20
"""Of a copy, in one answer."""

SILENT_S = 10.0
"""A client that has asked nothing for so long has gone, and its copy goes, too."""

POLL_S = 1.0
"""Longest wait for a copy to be whole, before it is said how far it is."""


@dataclass(frozen=True, slots=True)
class BackupView:
    """How far a copy is.

    copied, total : Bytes of the database; `total` may grow with the store.
    bytes : Of the whole file, to be read now; None while it is being made.
    """

    name: str
    copied: int
    total: int
    bytes: int | None


class BackupJobs:
    """At most one copy at a time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._job: _Job | None = None

    async def begin(self, done: Callable[[CopyIdentity], None]) -> BackupView:
        """Begin a copy; `done` is called on the event loop once it is whole."""
        refuse_below(self._server.worker)
        if self._job is not None:
            raise SubmergeError(
                "another backup is under way: wait for its end"
                f" (one whose command was killed ends within {SILENT_S:g} s)"
            )
        self._job = job = _Job(self._server, done)
        self._wait_for_client(job)
        return job.view

    async def state(self, name: str) -> BackupView:
        """Say how far a copy is: at once when it is whole, and within a second otherwise."""
        job = self._found(name)
        await asyncio.wait([job.task], timeout=POLL_S)
        if job.task.done():
            try:
                job.task.result()
            except BaseException:
                await self.end(name)
                raise
        return job.view

    async def piece(self, name: str, first: int) -> bytes:
        """Return bytes of a whole copy, from one of them on; none behind its end."""
        job = self._found(name)
        async with job.reading:
            if job.fd is None or job.view.bytes is None:
                raise UsageError("this copy is not whole yet: ask how far it is")
            if first >= job.view.bytes:
                return b""
            data = await asyncio.to_thread(os.pread, job.fd, PIECE_BYTES, first)
            made = job.fetched_now(first, len(data))
            if made is not None:
                last = self._server.last_backup
                await asyncio.to_thread(last.note, made.wall, made.bytes)
            return data

    async def end(self, name: str) -> None:
        """Free the copy's room."""
        job = self._found(name)
        self._job = None
        await job.close()

    def _found(self, name: str) -> _Job:
        job = self._job
        if job is None or job.name != name:
            raise UsageError("no such backup is under way: begin another one")
        self._wait_for_client(job)
        return job

    def _wait_for_client(self, job: _Job) -> None:
        """Drop a copy unless its client asks again."""
        if job.silence is not None:
            job.silence.cancel()
        loop = asyncio.get_running_loop()
        job.silence = loop.call_later(SILENT_S, self._drop, job)

    def _drop(self, job: _Job) -> None:
        if self._job is job:
            self._job = None
        job.closing = asyncio.ensure_future(job.close())


class _Job:
    """A copy on its way; `reading` is held while `fd` is in use."""

    def __init__(self, server: Server, done: Callable[[CopyIdentity], None]) -> None:
        self.name = secrets.token_hex(8)
        self.fd: int | None = None
        self.reading = asyncio.Lock()
        self.silence: asyncio.TimerHandle | None = None
        self.closing: asyncio.Future[None] | None = None
        self._copied = self._total = 0
        self._bytes: int | None = None
        self._fetched = 0
        self._identity: CopyIdentity | None = None
        self._release: Callable[[], object] = lambda: None
        self._server, self._done = server, done
        self.task = asyncio.ensure_future(self._make())
        # A failure is for the client that asks; one that has gone does not ask.
        self.task.add_done_callback(lambda task: task.cancelled() or task.exception())

    @property
    def view(self) -> BackupView:
        """How far it is."""
        return BackupView(self.name, self._copied, self._total, self._bytes)

    def fetched_now(self, first: int, count: int) -> CopyIdentity | None:
        """Return whose copy it is, if these bytes are the last that its client had not fetched."""
        whole = self._bytes
        if first > self._fetched or self._fetched == whole:
            return None
        self._fetched = max(self._fetched, first + count)
        return self._identity if self._fetched == whole else None

    async def close(self) -> None:
        """Free the room, once it is made and no piece is being read."""
        if self.silence is not None:
            self.silence.cancel()
        await asyncio.wait([self.task])
        async with self.reading:
            self.fd = None
            self._release()

    async def _make(self) -> None:
        server = self._server
        fd, identity = await asyncio.to_thread(
            make_copy, server.worker, server.clock, self._progress
        )
        # The loop may end before the job does: `submerge up` begins again in the same process.
        self._release = weakref.finalize(self, os.close, fd)
        self.fd, self._bytes = fd, os.fstat(fd).st_size
        self._copied = self._total = identity.bytes
        self._identity = identity
        self._done(identity)

    def _progress(self, copied: int, total: int) -> None:
        self._copied, self._total = copied, total
