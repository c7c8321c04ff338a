"""JobRuntime: drives an aggregator's part in jobs, beside the machine (docs/decisions/0059).

Effects are performed in order. A record is on disk before what follows from it; if it cannot be
written, another part begins from what is kept: its jobs have failed. An error in a job ends this
part in all jobs, and nothing else.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from submerge import PeerError
from submerge.aggregator.node import AggregatorNode
from submerge.errors import SubmergeError, UsageError
from submerge.jobs import roster
from submerge.jobs.job import Job, JobOutcome
from submerge.jobs.machine import (
    CancelJob,
    ChildrenKnown,
    JobEffect,
    JobEnded,
    JobEvent,
    JobHeard,
    JobMessage,
    JobPiece,
    JobProgress,
    JobTimes,
    OpenJob,
    SendJob,
)
from submerge.jobs.relay import JobRelay
from submerge.jobs.root import RECORD, JobRoot
from submerge.protocol.machine import Keep, Note, Now, Start, Tick
from submerge_aggregator.admission.control import AdmissionControl
from submerge_aggregator.downlink import UNPROVEN, Admits, Downlink, Inbound, everybody
from submerge_aggregator.jobs.board import JobBoard
from submerge_aggregator.limits import MOST_BYTES, MessageBudget
from submerge_aggregator.refusals import Refusals
from submerge_aggregator.worker import CommitWorker
from submerge_client.logs import Notes, say
from submerge_client.memory import SystemEntropy
from submerge_client.uplink import TooLarge
from submerge_proto.kept import records
from submerge_proto.wire import jobs

PIECES_A_TOKEN = 8
"""A byte of a job's message counts as an eighth of one: it is stored, and not checked."""

PARENT = "the parent"  # the name that its messages count against; no node has it


class QueuedMessage(NamedTuple):
    """A message that waits, and what it holds of the budget."""

    heard: JobHeard
    who: str
    size: int


class JobInbox:
    """What waits for the thread that computes. For the event loop."""

    def __init__(
        self,
        budget: MessageBudget,
        admits: Admits,
        admission: AdmissionControl,
        refusals: Refusals,
        stir: Callable[[], None],
    ) -> None:
        # `heard_bytes` are of messages, without what the transport adds.
        self.budget, self.heard_bytes = budget, 0
        self._admits, self._admission, self._refusals = admits, admission, refusals
        self._stir = stir
        self._waiting: deque[QueuedMessage] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, inbound: Inbound, *, open_: bool) -> None:
        """Take a child's message, or refuse it; `open_`: whether any is taken now."""
        inbound.done()  # it holds no place of the transport's while it waits here
        who, size = inbound.who, len(inbound.data)
        if not self._admits(who, size // PIECES_A_TOKEN):
            self._refusals.count("throttled", who, what="job message refused")
            inbound.refuse("too many messages of jobs: wait", "throttled")
            return
        message = self._read(inbound)
        if message is None:
            return
        if not open_ or not self.budget.takes(who, size):
            self._refusals.count("dropped", who, what="job message refused")
            inbound.refuse("no room now: send it again", "busy")
            return
        self._put(JobHeard(message, message.stamp.node, False), who, size)
        inbound.answer("job", b"")

    def _read(self, inbound: Inbound) -> JobMessage | None:
        """Return a child's message, if the child may send it; else count and refuse it."""
        try:
            message = jobs.decode(inbound.data)
        except PeerError as error:
            self._refuse(inbound, error.kind, str(error))
            return None
        name, group = message.stamp.node, message.stamp.group
        if inbound.node not in (None, name):
            self._refuse(inbound, "spoofed", f"it came as {inbound.node}, and names {name}")
            return None
        if message.up is not isinstance(message, JobPiece):
            self._refuse(inbound, "denied", "only a parent asks something of a node in a job")
            return None
        why = self._admission.objection_to_watch(inbound.identity, name, group)
        if why is not None:
            self._refuse(inbound, "denied", why)
            return None
        return message

    def _refuse(self, inbound: Inbound, reason: str, why: str) -> None:
        self._refusals.count(reason, inbound.who, what="job message refused", why=why)
        inbound.refuse(why, "denied" if reason in ("denied", "spoofed") else "foreign")

    def take_of_parent(self, data: bytes, parent: str, node: str) -> None:
        what = "job message of the parent refused"
        try:
            message = jobs.decode(data)
        except PeerError as error:
            self._refusals.count(error.kind, what=what, why=str(error))
            return
        if message.stamp.node != node or message.up is isinstance(message, JobPiece):
            self._refusals.count("foreign_topic", what=what, why="it is not for this node")
            return
        if not self.budget.takes(PARENT, len(data)):
            self._refusals.count("dropped", what=what)
            return
        self._put(JobHeard(message, parent, True), PARENT, len(data))

    def _put(self, heard: JobHeard, who: str, size: int) -> None:
        self.heard_bytes += size
        self._waiting.append(QueuedMessage(heard, who, size))
        self._stir()

    def pop(self) -> JobHeard:
        """Return the oldest message; IndexError if none waits."""
        waiting = self._waiting.popleft()
        self.budget.release(waiting.who, waiting.size)
        return waiting.heard


AT_ONCE = 64  # effects that are performed before other work has its turn


class JobHost(Protocol):
    """What a part needs of its `Server`."""

    worker: CommitWorker
    downlinks: tuple[Downlink, ...]
    clock: Callable[[], Now]

    def ask(self, question: Callable[[AggregatorNode, Now], Any]) -> Coroutine[Any, Any, Any]:
        """Return the machine's answer, from the thread of its store."""

    def send_up(self, group: str, data: bytes) -> None:
        """Send the parent a message of a job; it may raise TooLarge."""


class JobEffects:
    """Performs effects, in order, for the event loop; `on_end` hears of ends after the board."""

    def __init__(self, board: JobBoard | None = None) -> None:
        self.board = JobBoard() if board is None else board
        self.messages = self.sent_bytes = 0
        self.on_end: Callable[[JobOutcome], None] | None = None
        self._notes = Notes()

    async def perform(
        self, host: JobHost, effects: Sequence[JobEffect], opened: Job | None = None
    ) -> None:
        """Perform the effects of a step, in which `opened` was opened."""
        now = host.clock()
        for i, effect in enumerate(effects):
            match effect:
                case SendJob():
                    self._send(host, effect, now)
                # SubmergeError if it cannot be written: nothing that follows is performed.
                case Keep():
                    await _keep(host, effect)
                    if opened is not None:
                        say("job opened", job=opened.id, kind=opened.kind, group=opened.group)
                        self.board.opened(opened, now.wall)
                        opened = None
                case JobProgress():
                    self.board.progressed(effect, now.wall)
                case JobEnded():
                    self._end(effect, now)
                case Note():
                    self._notes.write(effect, now.steady)
            if i % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)

    def _end(self, ended: JobEnded, now: Now) -> None:
        outcome = ended.outcome
        facts: dict[str, Any] = {"job": outcome.job.id, "kind": outcome.job.kind}
        facts |= {"why": outcome.failure} if outcome.failure else {}
        say("job failed" if outcome.failure else "job ended", **facts)
        if not outcome.failure and len(outcome.left) > (stayed := roster.size(outcome.stayed)):
            facts |= {"stayed": stayed, "left": len(outcome.left)}
            say("fewer stayed in a job than left", level="warning", **facts)
        self.board.ended(outcome, now.wall)
        if self.on_end is not None:
            self.on_end(outcome)

    def _send(self, host: JobHost, send: SendJob, now: Now) -> None:
        message, data = send.message, jobs.encode(send.message)
        group = message.stamp.group
        self.messages += 1
        self.sent_bytes += len(data)
        # The stamp names the child, whichever way a message goes.
        if send.to == message.stamp.node:
            for downlink in host.downlinks:
                downlink.push(send.to, group, "job", data)
            return
        try:
            host.send_up(group, data)
        except TooLarge as error:
            facts = {"job": message.job, "why": str(error)}
            self._notes.write(Note("message of a job not sent", facts), now.steady)


async def _keep(host: JobHost, keep: Keep) -> None:
    """Write records; they are on disk when this returns."""
    packed = {
        key: None if record is None else records.pack(key, record)
        for key, record in keep.records.items()
    }
    await host.ask(lambda *_: host.worker.store.write(packed))


def children_of(node: AggregatorNode, admission: AdmissionControl, group: str) -> ChildrenKnown:
    ledger = node.ledger(group) if group in node.groups else None
    if ledger is None:
        return ChildrenKnown(frozenset(), group=group)
    # These are no part of it, nor nodes that are revoked or that the settings do not list.
    banned, quarantined = node.excluded(group)
    aggregators = {name for (name, _), row in ledger.rows.items() if not row.from_client}
    names = {name for name, _ in ledger.rows if name not in banned and name not in quarantined}
    # What a certificate says is asked of each message; here is none, only a name.
    may = {each for each in names if admission.objection_to_watch(UNPROVEN, each, group) is None}
    return ChildrenKnown(frozenset(may), frozenset(may - aggregators), group)


BATCH = 64  # messages that are taken in one step of the thread, and sent before other work's turn

MOST_HELD = 256 << 20
"""Bytes of payloads that all jobs hold here. With more, what children contribute waits."""

AGAIN_S = 5.0  # how long the store is left alone after a failed write
FRESH_S = 1.0  # how old the list of children may be when a parent asks


class _Order(NamedTuple):
    event: OpenJob | CancelJob
    done: asyncio.Future[bool]


class JobRuntime:
    """An aggregator's part in jobs; `Server.jobs` is one. For the event loop."""

    def __init__(
        self,
        board: JobBoard | None = None,
        *,
        admits: Admits = everybody,
        budget: MessageBudget | None = None,
        largest: int | None = None,
    ) -> None:
        self.effects = JobEffects(board)
        self.budget = MessageBudget(MOST_BYTES // 4) if budget is None else budget
        self.under_way: tuple[str, ...] = ()
        self._admits, self._largest, self._times = admits, largest, JobTimes()
        self._host: JobHost | None = None
        self._role: JobRoot | JobRelay | None = None
        self._inbox: JobInbox | None = None
        self._orders: list[_Order] = []
        self._stirred = asyncio.Event()
        self._known_at: dict[str, float] = {}
        self._held = 0
        self._why = ""  # the part before this one was thrown away
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jobs")

    @property
    def metrics(self) -> tuple[int, int, int]:
        """Jobs under way, and bytes of messages that were sent and that came."""
        heard = 0 if self._inbox is None else self._inbox.heard_bytes
        return len(self.under_way), self.effects.sent_bytes, heard

    @property
    def board(self) -> JobBoard:
        return self.effects.board

    def start(self, host: JobHost) -> None:
        worker, stir = host.worker, self._stirred.set
        self._host = host
        self._inbox = JobInbox(self.budget, self._admits, worker.admission, worker.refusals, stir)
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Give up what is under way: a root says at its next start that it has failed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        for order in self._orders:
            order.done.cancel()
        self._thread.shutdown(wait=False)

    def take(self, inbound: Inbound) -> None:
        if self._inbox is None:
            inbound.done()
            inbound.refuse("not ready: send it again", "busy")
            return
        self._inbox.take(inbound, open_=self._role is not None and self._held < MOST_HELD)

    def take_of_parent(self, data: bytes) -> None:
        node = None if self._host is None else self._host.worker.node
        if self._inbox is not None and node is not None:
            settings = node.settings
            self._inbox.take_of_parent(data, settings.parent or "", settings.node)

    async def open(self, job: Job) -> None:
        """Open a job; it is under way, and its record is on disk, when this returns."""
        if self._host is None:
            raise SubmergeError("expected an aggregator that runs, got one that starts: ask again")
        if self._largest is not None and job.piece_bytes + jobs.OVERHEAD > self._largest:
            raise UsageError(
                f"piece_bytes must be at most {self._largest - jobs.OVERHEAD} here, for messages"
                f" of {self._largest} bytes, got {job.piece_bytes}"
            )
        await self._host.ask(partial(_check, job))
        await self._order(OpenJob(job))

    async def cancel(self, job: str) -> bool:
        """End a job as failed; return whether it was under way. The board hears of it first."""
        return await self._order(CancelJob(job))

    async def _order(self, event: OpenJob | CancelJob) -> bool:
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._orders.append(_Order(event, done))
        self._stirred.set()
        return await done

    async def _run(self) -> None:
        if self._host is None or self._inbox is None:
            return
        host, inbox = self._host, self._inbox
        while True:
            try:
                if self._role is None:
                    self._role = await self._begin(host)
                await self._wait(host, inbox, self._role)
                await self._drive(host, inbox, self._role)
            except SubmergeError as error:
                say("jobs wait for the store", level="error", why=str(error))
                await self._discard(error)
            except Exception as error:
                trace = traceback.format_exc()
                say("a bug in a job, please report it", level="error", trace=trace)
                await self._discard(SubmergeError(f"a bug: {error!r}; see the aggregator's log"))

    async def _discard(self, error: SubmergeError) -> None:
        self._role, self._held, self.under_way, self._why = None, 0, (), str(error)
        orders, self._orders = self._orders, []
        for order in orders:
            if not order.done.done():
                order.done.set_exception(error)
        await asyncio.sleep(AGAIN_S)

    async def _begin(self, host: JobHost) -> JobRoot | JobRelay:
        def read(node: AggregatorNode, _: Now) -> tuple[str, bool, dict[Any, bytes]]:
            return node.settings.node, node.top, host.worker.store.load_of(RECORD)

        name, top, kept = await host.ask(read)
        role = (JobRoot if top else JobRelay)(name, SystemEntropy(), self._times)
        start = Start({key: records.unpack(key, value) for key, value in kept.items()})
        self._known_at.clear()
        effects = role.step(start, host.clock())
        if self._why:  # what the store still has was not lost by a restart
            for i, each in enumerate(effects):
                if isinstance(each, JobEnded):
                    effects[i] = JobEnded(replace(each.outcome, failure=self._why))
        await self.effects.perform(host, effects)
        return role

    async def _wait(self, host: JobHost, inbox: JobInbox, role: JobRoot | JobRelay) -> None:
        """Wait until something has come in, or the part wants to be woken."""
        if len(inbox) or self._orders:
            await asyncio.sleep(0)  # the network gets a turn between two batches
            return
        self._stirred.clear()
        wait = max(0.01, role.wakes_at - host.clock().steady)
        with suppress(TimeoutError):
            async with asyncio.timeout(min(wait, 3600.0)):
                await self._stirred.wait()

    async def _drive(self, host: JobHost, inbox: JobInbox, role: JobRoot | JobRelay) -> None:
        """Take what has come in, and do what is due."""
        events: list[JobEvent] = [inbox.pop() for _ in range(min(BATCH, len(inbox)))]
        orders = [*self._orders]
        if not events and not orders and role.wakes_at > host.clock().steady:
            return  # nothing is due: there may be no job for weeks
        groups = {o.event.job.group for o in orders if isinstance(o.event, OpenJob)}
        groups |= self._stale(events, host.clock().steady)
        known = [await self._children(host, group) for group in sorted(groups)]
        await self._step(host, role, [*known, *(events or [Tick()])])
        for order in orders:
            await self._carry_out(host, role, order)
            # Until then it stays, and hears of it if this part is thrown away, or ends.
            self._orders.remove(order)

    def _stale(self, events: Sequence[JobEvent], at: float) -> set[str]:
        """Return the groups for which a parent asks, and whose children were not read lately."""
        asked = {
            event.message.stamp.group
            for event in events
            if isinstance(event, JobHeard)
            and event.from_parent
            and isinstance(event.message, JobPiece)
        }
        return {group for group in asked if at >= self._known_at.get(group, -FRESH_S) + FRESH_S}

    async def _children(self, host: JobHost, group: str) -> ChildrenKnown:
        admission = host.worker.admission
        self._known_at[group] = host.clock().steady
        return ChildrenKnown(*await host.ask(lambda node, _: children_of(node, admission, group)))

    async def _step(
        self,
        host: JobHost,
        role: JobRoot | JobRelay,
        events: Sequence[JobEvent],
        opened: Job | None = None,
    ) -> None:
        """Let the part take events, on its thread, and perform the effects."""
        now, loop = host.clock(), asyncio.get_running_loop()

        def step() -> tuple[list[JobEffect], int]:
            effects = [effect for event in events for effect in role.step(event, now)]
            return effects, role.held_bytes

        effects, self._held = await loop.run_in_executor(self._thread, step)
        self.under_way = role.jobs
        await self.effects.perform(host, effects, opened)

    async def _carry_out(self, host: JobHost, role: JobRoot | JobRelay, order: _Order) -> None:
        event, opened = order.event, None
        was_there = isinstance(event, CancelJob) and event.id in role.jobs
        if isinstance(event, OpenJob):
            opened = event.job
        try:
            await self._step(host, role, [event], opened)
        except UsageError as error:  # nothing has changed
            if not order.done.done():
                order.done.set_exception(error)
            return
        if not order.done.done():
            order.done.set_result(was_there or opened is not None)


def _check(job: Job, node: AggregatorNode, _: Now) -> None:
    if not node.top:
        raise UsageError(
            f"a job is opened at the root, got {node.settings.node}, which reports to"
            f" {node.settings.parent}: ask the root"
        )
    if job.group not in node.groups:
        raise UsageError(f"the group is one of {', '.join(node.groups)}, got {job.group}")
    if node.plan(job.group).noise is not None:
        raise UsageError(
            f"{job.group} tells of rows no more than [privacy] epsilon allows, and a job would: it"
            " has none"
        )
    ledger = node.ledger(job.group)
    if ledger is None:
        raise UsageError(f"{job.group} has no schema yet: wait for its first reports")
    if ledger.fingerprint != job.fingerprint:
        raise UsageError(
            f"the schema of {job.group} is {ledger.fingerprint[:12]}, got one of"
            f" {job.fingerprint[:12]}: take the present one"
        )
