"""Copies of a root's store, made while it runs, and whether one is good (docs/decisions/0046).

To check one, a machine starts from it at the time of the copy: the models that follow from its rows
have to be those of the machine that ran, byte for byte.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import sqlite3
import weakref
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from submerge import __version__
from submerge.aggregator.node import STORE, AggregatorNode, StoreIdentity
from submerge.aggregator.root import new_model
from submerge.aggregator.rows.influence import GroupTime
from submerge.aggregator.rows.ledger import Ledger
from submerge.errors import PeerError, SubmergeError, UsageError
from submerge.protocol.machine import Key, Now
from submerge_aggregator.batch import checked
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.server import Server
from submerge_aggregator.store import APPLICATION_ID, FORM, StoreDamaged, records_in
from submerge_aggregator.worker import CommitWorker
from submerge_client.memory import SystemEntropy
from submerge_proto.kept import records
from submerge_proto.wire import codec

# The SHA-256 is of all before it and of the JSON text behind it, so a copy that a disk has
# changed, or that was cut short, is refused before anything in it is read.

COPY_FORM = 1
MARK = b"\nsubmerge backup "

MOST_LINE = 1 << 20  # longest line: a hundred bytes or two for each group
PIECE = 1 << 20  # bytes that are read at a time


class CopyDamaged(SubmergeError):
    """A copy that is not as it was made."""

    def __init__(self, path: str | os.PathLike[str], why: str) -> None:
        super().__init__(f"{os.fspath(path)} is damaged: {why}; take another copy")


@dataclass(frozen=True, slots=True)
class GroupState:
    """What a group was at a copy's commit, in the machine that ran."""

    fingerprint: str  # of its schema
    learnt: int  # readings that its rows count
    elapsed: float  # the group's time, which ages of nodes follow: a store keeps it once an hour
    model: str  # SHA-256 of the model that followed from its rows (`model_of_rows`)


@dataclass(frozen=True, slots=True)
class CopyIdentity:
    node: str
    incarnation: str
    software: str
    wall: float
    synced: bool
    groups: dict[str, GroupState]
    bytes: int = 0

    @property
    def now(self) -> Now:
        """The time of the copy, for a machine that starts from it."""
        return Now(0.0, self.wall, self.synced)


def line_of(identity: CopyIdentity, digest: hashlib._Hash) -> bytes:
    """Return the line behind a database, whose SHA-256 so far is `digest`."""
    about = msgspec.json.encode(identity)
    digest.update(about)
    return b"%s%d %s %s\n" % (MARK, COPY_FORM, digest.hexdigest().encode(), about)


def identity_of(path: Path, progress: Callable[[int], None] = lambda _: None) -> CopyIdentity:
    """Return whose copy a file is, once all of it was read."""
    try:
        with path.open("rb") as file:
            about, stated, size = _line_in(file, path)
            digest, left = hashlib.sha256(), size
            file.seek(0)
            while left:
                piece = file.read(min(PIECE, left))
                if not piece:
                    raise CopyDamaged(path, "it became shorter while it was read")
                digest.update(piece)
                left -= len(piece)
                progress(len(piece))
    except OSError as error:
        raise UsageError(f"expected a copy in {path}, got: {error.strerror or error}") from error
    digest.update(about)
    if digest.hexdigest().encode() != stated:
        raise CopyDamaged(path, "its bytes are not those that were written")
    try:
        identity = msgspec.json.decode(about, type=CopyIdentity)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path} was made by another version of submerge: {error}") from error
    if identity.bytes != size:
        raise CopyDamaged(path, f"{identity.bytes} bytes were written, and {size} are there")
    return identity


def _line_in(file: BinaryIO, path: Path) -> tuple[bytes, bytes, int]:
    """Return the JSON text, the digest, and how many bytes come before the line."""
    size = file.seek(0, os.SEEK_END)
    file.seek(-min(size, MOST_LINE), os.SEEK_END)
    _, mark, line = file.read().rpartition(MARK)
    form, _, rest = line.partition(b" ")
    stated, _, about = rest.partition(b" ")
    if not mark or not about.endswith(b"\n"):
        file.seek(0)
        if file.read(16) == b"SQLite format 3\0":
            raise CopyDamaged(path, "it ends without the line that says whose it is")
        raise UsageError(
            f"expected a copy that `submerge backup` has made, got another file: {path}"
        )
    if form != b"%d" % COPY_FORM:
        raise UsageError(f"{path} was made by a later submerge: update submerge")
    return about[:-1], stated, size - len(mark) - len(line)


def group_states(node: AggregatorNode, now: Now) -> dict[str, GroupState]:
    """Return what each group is now, by a merge as for a model; none without a schema."""
    ledgers = {name: node.ledger(name) for name in sorted(node.groups)}
    return {
        name: _state(node, ledger, now, name)
        for name, ledger in ledgers.items()
        if ledger is not None
    }


def _state(node: AggregatorNode, ledger: Ledger, now: Now, group: str) -> GroupState:
    model = model_of_rows(node, ledger, now, group)
    return GroupState(
        ledger.fingerprint,
        ledger.counts().learnt,
        ledger.ages.elapsed,
        hashlib.sha256(model).hexdigest(),
    )


def model_of_rows(node: AggregatorNode, ledger: Ledger, now: Now, group: str) -> bytes:
    """Return the model of rows and histories: directions, factors, limits, counts."""
    canonical = ledger.schema.canonical
    # The chosen rank is none of these: it is a record of its own.
    made = new_model(ledger, canonical, node.settings, now, node.plan(group), last=0, rank=0)
    return codec.encode(
        replace(
            made,
            version=1,
            nodes=0,
            staleness=(0.0, 0.0, 0.0),
            created=0.0,
            expires=0.0,
            maxima=None,
            widened=1.0,
            block_s=0.0,
        )
    )


class StoreCopy(NamedTuple):
    path: Path
    identity: CopyIdentity
    kept: dict[Key, bytes]


class GroupCheck(NamedTuple):
    """What a group's model is, by the copy and in the machine that ran."""

    group: str
    learnt: int
    differs: str


def read_copy(path: Path, progress: Callable[[int], None] = lambda _: None) -> StoreCopy:
    """Return a copy, whole; the file is only read."""
    identity = identity_of(path, progress)
    # Immutable: SQLite then makes no file beside it, and takes no lock.
    at = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(at, uri=True)) as sql:
            (owner,) = sql.execute("PRAGMA application_id").fetchone()
            (form,) = sql.execute("PRAGMA user_version").fetchone()
            if owner == APPLICATION_ID and form > FORM:
                raise UsageError(f"{path} was made by a later submerge: update submerge")
            if owner == APPLICATION_ID and form < FORM:
                raise UsageError(
                    f"{path} was made by submerge before 28 November 2026: restore it with the"
                    " submerge of that day (commit f0bc8489)"
                )
            if owner != APPLICATION_ID:
                raise CopyDamaged(path, "the database in it is another program's")
            return StoreCopy(path, identity, records_in(sql, str(path)))
    except StoreDamaged as error:
        raise CopyDamaged(path, error.reason) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise CopyDamaged(path, str(error)) from error


def check_models(copy: StoreCopy, config: AggregatorConfig) -> list[GroupCheck]:
    """Start a machine from a copy, and compare its models."""
    kept = root_records(copy, config)
    known = copy.identity
    for name, state in known.groups.items():
        # A store keeps it once an hour, and what is bounded by the age of a node follows it.
        time = GroupTime(state.elapsed, known.wall if known.synced else 0.0)
        kept["elapsed", name] = time
    node = AggregatorNode(config.settings, checked(config.plans, coarse=False), SystemEntropy())
    node.load(kept, known.now)
    found = group_states(node, known.now)
    return [
        GroupCheck(name, state.learnt, _difference(state, found.get(name)))
        for name, state in sorted(known.groups.items())
    ]


def root_records(copy: StoreCopy, config: AggregatorConfig) -> dict[Key, Any]:
    path, identity = copy.path, copy.identity
    if config.parent is not None:
        raise UsageError(
            f"expected the configuration of a root, got {config.node}'s, whose parent is"
            f" {config.parent.name}: a store below a root that is a copy is given up. Start it"
            " without a store instead: its children report all that they hold"
        )
    if identity.node != config.node:
        raise UsageError(
            f"expected a copy of {config.node}, which the configuration names, got one of"
            f" {identity.node}: {path}"
        )
    try:
        kept = records.unpack_all(copy.kept)
    except PeerError as error:
        raise CopyDamaged(path, str(error)) from error
    store: StoreIdentity | None = kept.get(STORE)
    if store is None:
        raise CopyDamaged(path, "it does not say whose store it is")
    if store.pin is not None:
        raise UsageError(
            f"{path} is the store of an aggregator below {store.pin.parent}: its parent would"
            " give it up. Start that aggregator without a store instead"
        )
    return kept


def orders_in(copy: StoreCopy, config: AggregatorConfig) -> dict[str, list[str]]:
    """Return the nodes that a copy holds orders for, by order: `banned`, `paused` and so on."""
    found: dict[str, set[str]] = {}
    for key, record in root_records(copy, config).items():
        match key:
            case ("banned", _):
                found.setdefault("banned", set()).update(record)
            case ("quarantined", group):
                found.setdefault(f"quarantined in {group}", set()).update(record)
            case ("wishes", group):
                for name, each in record.items():
                    orders = {"paused": each.paused, "with verdicts on alarms": each.verdicts}
                    for order in (order for order, given in orders.items() if given):
                        found.setdefault(f"{order} in {group}", set()).add(name)
    return {order: sorted(nodes) for order, nodes in sorted(found.items()) if nodes}


def refuse_different(checks: list[GroupCheck]) -> None:
    """Check that all models are the same; raises SubmergeError if one is not."""
    wrong = [f"{each.group}: {each.differs}" for each in checks if each.differs]
    if wrong:
        raise SubmergeError(f"the models are not those of the root that ran: {'; '.join(wrong)}")


def _difference(was: GroupState, found: GroupState | None) -> str:
    if found is None:
        return "the configuration has no such group"
    if found.fingerprint != was.fingerprint:
        return "its schema is another: has the configuration changed since?"
    if found.learnt != was.learnt:
        return f"{found.learnt:,} readings of {was.learnt:,}"
    if found.model != was.model:
        return "the same readings give another model: has the configuration or submerge changed?"
    return ""


# BackupJobs: the one copy that an operator is fetching, piece by piece (docs/decisions/0046).

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


PIECE_BYTES = 1 << 20  # of a copy, in one answer
SILENT_S = 10.0  # a client that has asked nothing for so long has gone, and its copy goes, too
POLL_S = 1.0  # longest wait for a copy to be whole, before it is said how far it is


@dataclass(frozen=True, slots=True)
class BackupView:
    name: str
    # bytes of the database; `total` may grow with the store
    copied: int
    total: int
    bytes: int | None  # of the whole file, to be read now; None while it is being made


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
