"""JobRuntime: drives an aggregator's part in jobs, beside the machine that streams.

1. Rounds are computed on a thread of their own: neither the event loop nor a commit waits for a
   merge of a job.
2. Effects are performed in order. A record is on disk before what follows from it; if it cannot be
   written, the part is thrown away, and another begins from what is kept: its jobs have failed.
3. Who is below is read from the machine when a job opens, here or above (`below.children_of`).
4. What goes to children and to the parent waits for all other messages, in bounded memory.
5. An error in a job ends this part in all jobs, and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from submerge.aggregator.node import AggregatorNode
from submerge.errors import SubmergeError, UsageError
from submerge.jobs.job import Job
from submerge.jobs.machine import (
    CancelJob,
    ChildrenKnown,
    JobEffect,
    JobEvent,
    JobHeard,
    JobPiece,
    JobTimes,
    OpenJob,
)
from submerge.jobs.relay import JobRelay
from submerge.jobs.root import RECORD, JobRoot
from submerge.protocol.machine import Now, Start, Tick
from submerge_aggregator.downlink import Admits, Inbound, everybody
from submerge_aggregator.jobs.below import children_of
from submerge_aggregator.jobs.following import JobFollower
from submerge_aggregator.jobs.inbox import JobInbox
from submerge_aggregator.jobs.performing import JobEffects, JobHost
from submerge_aggregator.limits.budget import MOST_BYTES, MessageBudget
from submerge_client.logs import say
from submerge_client.memory.entropy import SystemEntropy
from submerge_proto.kept import records
from submerge_proto.wire import jobs

BATCH = 64
"""Messages that are taken in one step of the thread, and sent before other work has its turn."""

MOST_HELD = 256 << 20
"""Bytes of payloads that all jobs hold here. With more, what children contribute waits."""

AGAIN_S = 5.0
"""How long the store is left alone after a failed write."""

FRESH_S = 1.0
"""How old the list of children may be when a parent asks."""


class _Order(NamedTuple):
    """What an operator waits for."""

    event: OpenJob | CancelJob
    done: asyncio.Future[bool]


class JobRuntime:
    """An aggregator's part in jobs; `Server.jobs` is one. For the event loop.

    board : Hears of openings, rounds and ends.
    admits : Whether a child may send one more message of a job.
    budget : Bytes of such messages that wait.
    largest : Bytes of the largest message that goes to children; None: any.
    times : When messages are sent again.

    under_way : Jobs that are under way here.
    effects : Performs what follows, and counts it.
    """

    def __init__(
        self,
        board: JobFollower | None = None,
        *,
        admits: Admits = everybody,
        budget: MessageBudget | None = None,
        largest: int | None = None,
        times: JobTimes | None = None,
    ) -> None:
        self.effects = JobEffects(board)
        self.budget = MessageBudget(MOST_BYTES // 4) if budget is None else budget
        self.under_way: tuple[str, ...] = ()
        self._admits, self._largest, self._times = admits, largest, times
        self._host: JobHost | None = None
        self._role: JobRoot | JobRelay | None = None
        self._inbox: JobInbox | None = None
        self._orders: list[_Order] = []
        self._stirred = asyncio.Event()
        self._known_at: dict[str, float] = {}
        self._held = 0
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jobs")

    @property
    def metrics(self) -> tuple[int, int, int]:
        """Jobs under way, and bytes of messages that were sent and that came."""
        heard = 0 if self._inbox is None else self._inbox.heard_bytes
        return len(self.under_way), self.effects.sent_bytes, heard

    @property
    def board(self) -> JobFollower:
        """What hears of jobs."""
        return self.effects.board

    # -- for the server --------------------------------------------------------------

    def start(self, host: JobHost) -> None:
        """Begin, once the machine has started."""
        worker, stir = host.worker, self._stirred.set
        self._host = host
        self._inbox = JobInbox(self.budget, self._admits, worker.admission, worker.refusals, stir)
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Give up what is under way: a root says at its next start that it has failed."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        for order in self._orders:
            order.done.cancel()
        self._thread.shutdown(wait=False)

    def take(self, inbound: Inbound) -> None:
        """Take a child's message, or refuse it."""
        if self._inbox is None:
            inbound.done()
            inbound.refuse("not ready: send it again", "busy")
            return
        self._inbox.take(inbound, open_=self._role is not None and self._held < MOST_HELD)

    def take_of_parent(self, data: bytes) -> None:
        """Take a message of the parent."""
        node = None if self._host is None else self._host.worker.node
        if self._inbox is not None and node is not None:
            settings = node.settings
            self._inbox.take_of_parent(data, settings.parent or "", settings.node)

    # -- for operators ---------------------------------------------------------------

    async def open(self, job: Job) -> None:
        """Open a job; it is under way, and its record is on disk, when this returns.

        Raises UsageError if this is no root, does not serve the group, or the job cannot be opened;
        SubmergeError if the store cannot be written.
        """
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

    # -- the loop --------------------------------------------------------------------

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
                say("jobs wait for the store", level=logging.ERROR, why=str(error))
                await self._discard(error)
            except Exception as error:
                trace = traceback.format_exc()
                say("a bug in a job, please report it", level=logging.ERROR, trace=trace)
                await self._discard(SubmergeError(f"a bug: {error!r}; see the aggregator's log"))

    async def _discard(self, error: SubmergeError) -> None:
        """Throw the part away, and wait a little."""
        self._role, self._held, self.under_way = None, 0, ()
        orders, self._orders = self._orders, []
        for order in orders:
            if not order.done.done():
                order.done.set_exception(error)
        await asyncio.sleep(AGAIN_S)

    async def _begin(self, host: JobHost) -> JobRoot | JobRelay:
        """Begin another part, from what the store holds."""

        def read(node: AggregatorNode, _: Now) -> tuple[str, bool, dict[Any, bytes]]:
            return node.settings.node, node.top, host.worker.store.load_of(RECORD)

        name, top, kept = await host.ask(read)
        role = (JobRoot if top else JobRelay)(name, SystemEntropy(), self._times)
        start = Start({key: records.unpack(key, value) for key, value in kept.items()})
        self._known_at.clear()
        await self.effects.perform(host, role.step(start, host.clock()))
        return role

    async def _wait(self, host: JobHost, inbox: JobInbox, role: JobRoot | JobRelay) -> None:
        """Wait until something has come in, or the part wants to be woken."""
        if len(inbox) or self._orders:
            await asyncio.sleep(0)  # the network gets a turn between two batches
            return
        self._stirred.clear()
        wait = max(0.01, role.wakes_at - host.clock().steady)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stirred.wait(), min(wait, 3600.0))

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
        """Return who is below now."""
        admission = host.worker.admission
        self._known_at[group] = host.clock().steady
        known = await host.ask(lambda node, _: children_of(node, admission, group))
        return ChildrenKnown(*known)

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
        """Carry out an operator's order."""
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
    """Refuse a job that cannot be opened here."""
    if not node.top:
        raise UsageError(
            f"a job is opened at the root, got {node.settings.node}, which reports to"
            f" {node.settings.parent}: ask the root"
        )
    if job.group not in node.groups:
        raise UsageError(f"the group is one of {', '.join(node.groups)}, got {job.group}")
    ledger = node.ledger(job.group)
    if ledger is None:
        raise UsageError(f"{job.group} has no schema yet: wait for its first reports")
    if ledger.fingerprint != job.fingerprint:
        raise UsageError(
            f"the schema of {job.group} is {ledger.fingerprint[:12]}, got one of"
            f" {job.fingerprint[:12]}: take the present one"
        )
