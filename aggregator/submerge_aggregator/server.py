"""Server: the event loop around a commit worker: what comes in, what goes out, and its end.

Everything that comes in waits in one bounded queue. While the worker commits a batch on its own
thread, the next one gathers. What a batch returns goes out here, in order.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from submerge import SubmergeError, UsageError, __version__
from submerge.aggregator.node import AggregatorNode
from submerge.protocol.machine import Ask, Consult, Event, Flush, Now, Replied
from submerge.protocol.messages import PATIENCE_S, Incarnation, Question
from submerge_aggregator.audit import AuditLog
from submerge_aggregator.batch import AlarmsChanged, All, Asked, Down, Item, Out, Refuse, Reply, Up
from submerge_aggregator.downlink import Admits, Downlink, Inbound, everybody
from submerge_aggregator.history import answers
from submerge_aggregator.history.file import ModelHeard, TrailHeard
from submerge_aggregator.history.recorder import HistoryRecorder
from submerge_aggregator.jobs.board import JobBoard
from submerge_aggregator.jobs.choosing import LandmarkChooser
from submerge_aggregator.jobs.runtime import JobRuntime
from submerge_aggregator.limits import MOST_BYTES, MessageBudget
from submerge_aggregator.notify.notifier import AlarmNotifier
from submerge_aggregator.operators.access import OrderLog
from submerge_aggregator.storage import LastBackup
from submerge_aggregator.telemetry import Telemetry
from submerge_aggregator.worker import CommitWorker
from submerge_client.logs import say
from submerge_client.uplink import Came, Heard, Uplink
from submerge_client.uplink.parent_link import ParentLink
from submerge_client.watchdog import Watchdog

BATCH, BATCH_BYTES = 128, 2 << 20
"""Items in one batch and in one commit; a batch ends with the message that passes these bytes."""

MOST_WAITING = 20_000  # most messages that wait: a child whose message is dropped sends it again

LINGER_S = 5.0
"""At the end, the longest wait for the parent's answer to the last report. A parent out of reach
is waited for, too: a broker that has just hung up is back within seconds."""


MARGIN_S = 1.0
"""The machine forgets a question after `PATIENCE_S`; what it still says comes within this."""


class NoReply(SubmergeError):
    """A node below did not reply, or could not."""


class Server:
    """One aggregator.

    uplink : None at the root.
    admits : Whether a child may send one more message.
    budget : Bytes of messages that wait for their batch, or are in it.
    ready : It has started, and serves children.
    """

    def __init__(
        self,
        worker: CommitWorker,
        *,
        downlinks: Sequence[Downlink],
        uplink: Uplink | None,
        clock: Callable[[], Now],
        watchdog: Watchdog | None = None,
        admits: Admits = everybody,
        notifier: AlarmNotifier | None = None,
        audit: AuditLog | None = None,
        history: HistoryRecorder | None = None,
        last_backup: LastBackup | None = None,
        budget: MessageBudget | None = None,
        board: JobBoard | None = None,
        jobs: JobRuntime | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.worker, self.refusals = worker, worker.refusals
        self.ready = False
        self.parent = ParentLink(uplink, clock)
        self._watchdog = Watchdog() if watchdog is None else watchdog
        self.downlinks, self.clock = tuple(downlinks), clock
        self._admits, self._notifier, self.telemetry = admits, notifier, telemetry
        self.audit = AuditLog(None) if audit is None else audit
        self.history = HistoryRecorder(None) if history is None else history
        self.last_backup = LastBackup(None) if last_backup is None else last_backup
        self.order_log = OrderLog(self.audit.record, lambda: clock().steady)
        self.board = JobBoard() if board is None else board
        self.jobs = JobRuntime(self.board) if jobs is None else jobs
        self.landmarks = LandmarkChooser(self.jobs, self.board, self.ask, clock)
        self._inbox: deque[Item] = deque()
        self.budget = MessageBudget(MOST_BYTES) if budget is None else budget
        self._stirred = asyncio.Event()
        self._stopping = asyncio.Event()
        self._lingers = True
        self._questions: dict[int, asyncio.Future[Replied]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="commit")

    @property
    def parted(self) -> bool:
        """Whether the parent, if there is one, cannot be reached."""
        return self.parent.reach.why is not None

    @property
    def broker(self) -> bool | None:
        """Whether every broker to the children can be reached; None without any."""
        known = [each.reachable for each in self.downlinks if each.reachable is not None]
        return all(known) if known else None

    @property
    def unanswered(self) -> tuple[int, int]:
        """Bytes of messages that are read, may begin, or wait for an answer; and the most."""
        reading = [each.reading for each in self.downlinks if each.reading is not None]
        waiting = self.budget, self.jobs.budget
        used = sum(each.used for each in waiting) + sum(used for used, _ in reading)
        return used, sum(each.limit for each in waiting) + sum(most for _, most in reading)

    def stop(self) -> None:
        """Ask it to end, a second time without waiting for the parent; on the event loop."""
        self._lingers = not self._stopping.is_set()
        self._stopping.set()
        self._stirred.set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        began = await loop.run_in_executor(self._thread, self.worker.start)
        for downlink in self.downlinks:
            await downlink.open(self.take)
        if self.parent.uplink is not None:
            self.parent.uplink.open(lambda heard: self._enqueue(loop, heard))
        self._perform(began)
        self.jobs.start(self)
        self.landmarks.start()
        self.ready = True
        say("serving", incarnation=self._incarnation())
        self.audit.record("start", incarnation=self._incarnation(), version=__version__)
        self._watchdog.start()
        try:
            while not self._stopping.is_set():
                self._watchdog.tick(self._status)
                await self._wait()
                await self._commit_batch(loop)
        except UsageError:
            # The store is gone: no child gets an answer, and one line says why.
            await asyncio.gather(*(downlink.close() for downlink in self.downlinks))
            raise
        await self._end(loop)

    async def ask(
        self, question: Callable[[AggregatorNode, Now], Any], event: Event | None = None
    ) -> Any:
        """Let the machine take an event, and return its answer to a question, committed."""
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answer(value: Any) -> None:
            if reply.done():
                return
            if isinstance(value, SubmergeError):
                reply.set_exception(value)
            else:
                reply.set_result(value)

        self._put(Asked(event, question, answer))
        return await reply

    async def inquire(self, group: str, path: tuple[str, ...], topic: str, **more: Any) -> bytes:
        """Ask a node below; return what it replies, as JSON. `more` are fields of `Question`."""
        number = 1 + secrets.randbelow(2**63 - 1)
        waiting: asyncio.Future[Replied] = asyncio.get_running_loop().create_future()
        self._questions[number] = waiting
        # The machine says which child it goes to, and for which of its incarnations.
        nowhere = Incarnation(0, 0)
        self._tell(Ask(Question("", group, nowhere, number, path, topic, **more)))
        try:
            async with asyncio.timeout(PATIENCE_S + MARGIN_S):
                replied = await waiting
        except TimeoutError:
            what = f"{'/'.join(path)} did not reply within {PATIENCE_S:g} s"
            raise NoReply(f"{what}: is it connected?") from None
        finally:
            del self._questions[number]
        if replied.problem:
            raise NoReply(replied.problem)
        return replied.body

    def send_up(self, group: str, data: bytes) -> None:
        self.parent.send_job(group, data)

    def take(self, inbound: Inbound) -> None:
        """Queue a message, if its sender may send more, and if there is room."""
        if inbound.kind == "job":
            self.jobs.take(inbound)
            return
        if not self._admits(inbound.who, len(inbound.data)):
            inbound.done()
            self.refusals.count("throttled", inbound.who)
            inbound.refuse("too many messages: wait, then send the newest", "throttled")
            return
        full = len(self._inbox) >= MOST_WAITING or self._stopping.is_set()
        if full or not self.budget.takes(inbound.who, len(inbound.data)):
            inbound.done()
            # At once: a message that waits for an answer holds its bytes.
            self.refusals.count("dropped", inbound.who)
            inbound.refuse("no room now, or no longer serving: ask again", "busy")
            return
        if self.telemetry is not None:
            self.telemetry.arrive(inbound)
        self._put(inbound)

    def _tell(self, event: Event) -> None:
        """Have the machine take an event to which nothing is answered here."""
        self._put(Asked(event, lambda *_: None, lambda _: None))

    def _put(self, item: Item) -> None:
        self._inbox.append(item)
        self._stirred.set()

    def _enqueue(self, loop: asyncio.AbstractEventLoop, heard: Heard) -> None:
        """Queue what the uplink reports, from its threads."""
        if loop.is_closed():
            return
        if isinstance(heard, Came) and heard.kind == "job":
            loop.call_soon_threadsafe(self.jobs.take_of_parent, heard.data)
        else:
            loop.call_soon_threadsafe(self._put, heard)

    async def _wait(self) -> None:
        """Wait until something has come in, or the machine wants to be woken."""
        if self._inbox:
            # The network gets a turn between two batches, however much waits.
            await asyncio.sleep(0)
            return
        self._stirred.clear()
        wait = max(0.0, self.worker.wakes_at - self.clock().steady)
        wait = min(wait, self.parent.reach.due_s, self._watchdog.due_s)
        try:
            async with asyncio.timeout(min(wait, 3600.0)):
                await self._stirred.wait()
        except TimeoutError:
            self.parent.reach.remind()

    async def _commit_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        items = self._next_batch()
        for item in items:
            self.parent.notice(item, self.worker.credentials)
        try:
            outs = await loop.run_in_executor(self._thread, self._committed, items)
        finally:
            for item in items:
                if isinstance(item, Inbound):
                    self.budget.release(item.who, len(item.data))
                    item.done()
        self._perform(outs)

    def _committed(self, items: Sequence[Item]) -> list[Out]:
        """Commit a batch, on the worker's thread, while no copy of the store makes a step."""
        with self.worker.store.copies.turn:
            return self.worker.commit_batch(items)

    def _next_batch(self) -> list[Item]:
        """Take the oldest items, so many that neither their number nor their bytes are large."""
        items: list[Item] = []
        size = 0
        while self._inbox and len(items) < BATCH and size < BATCH_BYTES:
            item = self._inbox.popleft()
            size += len(item.data) if isinstance(item, Inbound) else 0
            items.append(item)
        return items

    def _perform(self, outs: Sequence[Out]) -> None:
        for out in outs:
            if self.telemetry is not None:
                self.telemetry.follow(out)
            match out:
                case Down(inbound, _, _, kind, data) if inbound is not None:
                    inbound.answer(kind, data)
                case Down(_, to, group, kind, data):
                    for downlink in self.downlinks:
                        downlink.push(to, group, kind, data)
                case Refuse(inbound, why, kind):
                    inbound.refuse(why, kind)
                case All(group, data):
                    for downlink in self.downlinks:
                        downlink.publish(group, data)
                case Up(group, kind, data):
                    self.parent.send(kind, group, data)
                case TrailHeard() | ModelHeard():
                    self.history.take(out)
                case AlarmsChanged():
                    self.history.take(out)
                    if self._notifier is not None:
                        self._notifier.notify(out)
                case Consult(question):
                    answers.reply(self.history, question, self.clock().wall, self._tell)
                case Reply(asked, value):
                    asked.reply(value)
                case Replied():
                    waiting = self._questions.get(out.number)
                    if waiting is not None and not waiting.done():
                        waiting.set_result(out)  # one that comes too late is dropped

    def _status(self) -> str:
        node = self.worker.node
        if node is None:
            return "the store cannot be written"
        if not node.settled:
            return f"waiting for {node.settings.parent}, to which its store belongs"
        away = f"; {node.settings.parent} is out of reach" if self.parted else ""
        return f"serving as {node.settings.node}{away}"

    def _incarnation(self) -> str:
        node = self.worker.node
        return "none yet" if node is None else str(node.incarnation)

    async def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send the parent a last report; let answers go out; close."""
        self.ready = False
        say("stopping")
        self._watchdog.stopping(LINGER_S)
        await self.landmarks.close()
        await self.jobs.close()
        self._tell(Flush())
        until = self.clock().steady + LINGER_S
        while (self._inbox or self._waits_for_parent()) and self.clock().steady < until:
            await self._commit_batch(loop)
            if not self._inbox and self._waits_for_parent():
                self._stirred.clear()
                left = min(until, self.worker.wakes_at) - self.clock().steady
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(0.01, left)):
                        await self._stirred.wait()
        if self.parent.uplink is not None:
            await loop.run_in_executor(None, self.parent.uplink.close)
        for downlink in self.downlinks:
            await downlink.close()
        if self._notifier is not None:
            await loop.run_in_executor(None, self._notifier.close)
        await loop.run_in_executor(self._thread, self.worker.close)
        self._thread.shutdown()
        await loop.run_in_executor(None, self.history.close)
        self.audit.record("stop")
        await loop.run_in_executor(None, self.audit.close)
        if self.telemetry is not None:  # once the store is closed: it may wait for a collector
            await loop.run_in_executor(None, self.telemetry.close)
        sent, heard = self.parent.sent_bytes, self.parent.heard_bytes
        traffic: dict[str, Any] = {"sent_bytes": sent, "heard_bytes": heard}
        if self._unreported():
            meaning = "the parent does not have all that is in the store: the next start reports it"
            say("ended", level="warning", unreported=True, meaning=meaning, **traffic)
        else:
            say("ended", **traffic)

    def _waits_for_parent(self) -> bool:
        return self._lingers and self._unreported()

    def _unreported(self) -> bool:
        """Whether the parent has not acknowledged the last report."""
        node = self.worker.node
        return node is not None and self.parent.uplink is not None and node.unreported
