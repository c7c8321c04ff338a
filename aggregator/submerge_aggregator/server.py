"""Server: the event loop around a desk; what comes in, what goes out, and how it ends.

Everything that comes in waits in one bounded queue. While the desk takes a turn, on its own
thread, the next turn's items gather. What a turn returns goes out here, in order.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from submerge import SubmergeError
from submerge.aggregator.node import AggregatorNode
from submerge.protocol.machine import Event, Flush, Now
from submerge_aggregator.batch import AlarmsChanged, All, Asked, Down, Item, Out, Refuse, Reply, Up
from submerge_aggregator.downlink import Admits, Downlink, Inbound, everybody
from submerge_aggregator.notify.notifier import AlarmNotifier
from submerge_aggregator.worker import CommitWorker
from submerge_client.logs import say
from submerge_client.reach import Reach
from submerge_client.uplink import (
    Came,
    Heard,
    Opened,
    Parted,
    SendRefused,
    Slowed,
    TooLarge,
    Uplink,
)
from submerge_client.watchdog import Watchdog

BATCH = 128
"""Items in one turn, and in one commit."""

MOST_WAITING, MOST_BYTES = 20_000, 64 << 20
"""Letters that wait at most, and their bytes: a child whose letter is dropped asks again."""

LINGER_S = 5.0
"""At its end, how long it waits for the parent to hear the last report."""


class Server:
    """One aggregator.

    Parameters
    ----------
    desk : Desk
    downlinks : sequence of Downlink
    uplink : Uplink or None
        None at the root.
    clock : callable
    watchdog : Watchdog or None
        Hears that turns are taken.
    admits : callable
        Whether a child may say one thing more.
    herald : Herald or None
        Has people told of alarms.

    Attributes
    ----------
    ready : bool
        It has started, and serves.
    refusals : Refusals
        The desk's.
    downlinks : tuple of Downlink
    sent_bytes, heard_bytes : int
        Of messages to and from the parent, without what the transport adds.
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
    ) -> None:
        self.worker, self.refusals = worker, worker.refusals
        self.ready = False
        self.sent_bytes = self.heard_bytes = 0
        self._reach = Reach(lambda: clock().steady)
        self._watchdog = Watchdog() if watchdog is None else watchdog
        self.downlinks, self._uplink, self._clock = tuple(downlinks), uplink, clock
        self._admits, self._notifier = admits, notifier
        self._inbox: deque[Item] = deque()
        self._waiting_bytes = 0
        self._stirred = asyncio.Event()
        self._stopping = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="commit")

    @property
    def parted(self) -> bool:
        """Whether there is a parent that cannot be reached."""
        return self._reach.why is not None

    @property
    def broker(self) -> bool | None:
        """Whether every broker that children speak through can be reached; None without any."""
        known = [each.reachable for each in self.downlinks if each.reachable is not None]
        return all(known) if known else None

    def stop(self) -> None:
        """Ask it to end; on the event loop."""
        self._stopping.set()
        self._stirred.set()

    async def run(self) -> None:
        """Serve until stopped.

        Raises
        ------
        UsageError
            If a place to listen is taken, or the store is not what it was.
        """
        loop = asyncio.get_running_loop()
        began = await loop.run_in_executor(self._thread, self.worker.start)
        for downlink in self.downlinks:
            await downlink.open(self.take)
        if self._uplink is not None:
            self._uplink.open(lambda heard: self._heard(loop, heard))
        self._perform(began)
        self.ready = True
        say("serving", incarnation=self._incarnation())
        self._watchdog.begun()
        while not self._stopping.is_set():
            self._watchdog.turned(self._status)
            await self._wait()
            await self._commit_batch(loop)
        await self._end(loop)

    async def ask(
        self, question: Callable[[AggregatorNode, Now], Any], event: Event | None = None
    ) -> Any:
        """Let the machine take an event, and return what a question to it gives, committed."""
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

    def take(self, inbound: Inbound) -> None:
        """Take a letter in, if its sender may say more, and if there is room."""
        if not self._admits(inbound.who, len(inbound.data)):
            self.refusals.count("throttled", inbound.who)
            inbound.refuse("too many messages: wait, then say the newest", "throttled")
            return
        full = len(self._inbox) >= MOST_WAITING or self._waiting_bytes > MOST_BYTES
        if full or self._stopping.is_set():
            # At once: a letter that waits for an answer holds its bytes.
            self.refusals.count("dropped", inbound.who)
            inbound.refuse("no room now, or no longer serving: ask again", "busy")
            return
        self._waiting_bytes += len(inbound.data)
        self._put(inbound)

    # -- inside ----------------------------------------------------------------

    def _put(self, item: Item) -> None:
        self._inbox.append(item)
        self._stirred.set()

    def _heard(self, loop: asyncio.AbstractEventLoop, heard: Heard) -> None:
        """The uplink's threads speak here."""
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._put, heard)

    async def _wait(self) -> None:
        """Until something has come in, or the machine wants to be woken."""
        if self._inbox:
            # Let the network in between two turns, however much waits.
            await asyncio.sleep(0)
            return
        self._stirred.clear()
        wait = max(0.0, self.worker.wakes_at - self._clock().steady)
        wait = min(wait, self._reach.due_s, self._watchdog.due_s)
        try:
            await asyncio.wait_for(self._stirred.wait(), min(wait, 3600.0))
        except TimeoutError:
            self._reach.remind()

    async def _commit_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        items = [self._inbox.popleft() for _ in range(min(BATCH, len(self._inbox)))]
        for item in items:
            if isinstance(item, Inbound):
                self._waiting_bytes -= len(item.data)
            self._notice(item)
        self._perform(await loop.run_in_executor(self._thread, self.worker.commit_batch, items))

    def _perform(self, outs: Sequence[Out]) -> None:
        for out in outs:
            match out:
                case Down(inbound, _, _, kind, data) if inbound is not None:
                    inbound.answer(kind, data)
                case Down(_, to, group, _, data):
                    for downlink in self.downlinks:
                        downlink.push(to, group, data)
                case Refuse(inbound, why, kind):
                    inbound.refuse(why, kind)
                case All(group, data):
                    for downlink in self.downlinks:
                        downlink.publish(group, data)
                case Up(group, kind, data) if self._uplink is not None:
                    try:
                        self._uplink.send(kind, group, data)
                        self.sent_bytes += len(data)
                    except TooLarge as error:
                        say("report too large", level=logging.ERROR, why=str(error))
                case AlarmsChanged() if self._notifier is not None:
                    self._notifier.tell(out)
                case Reply(asked, value):
                    asked.reply(value)

    def _notice(self, item: Item) -> None:
        """Count what the parent says, and say when it goes away and comes back."""
        if isinstance(item, Came):
            self.heard_bytes += len(item.data)
            self._reach.heard()
        elif isinstance(item, Parted):
            why, credentials = item.why, self.worker.credentials
            if credentials is not None:
                why = credentials.blamed(why, self._clock().wall)
            self._reach.parted(why)
        elif isinstance(item, Opened):
            self._reach.opened()
        elif isinstance(item, SendRefused):
            self._reach.refused(item.why)
        elif isinstance(item, Slowed):
            self._reach.slowed(item.why)

    def _status(self) -> str:
        """Return how things are, in a line for people."""
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
        """Tell the parent what there is; let answers go out; close."""
        self.ready = False
        say("stopping")
        self._watchdog.stopping(LINGER_S)
        self._inbox.append(Asked(Flush(), lambda *_: None, lambda _: None))
        until = self._clock().steady + LINGER_S
        while (self._inbox or self._unreported()) and self._clock().steady < until:
            await self._commit_batch(loop)
            if not self._inbox and self._unreported():
                self._stirred.clear()
                left = min(until, self.worker.wakes_at) - self._clock().steady
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stirred.wait(), max(0.01, left))
        if self._uplink is not None:
            await loop.run_in_executor(None, self._uplink.close)
        for downlink in self.downlinks:
            await downlink.close()
        if self._notifier is not None:
            await loop.run_in_executor(None, self._notifier.close)
        await loop.run_in_executor(self._thread, self.worker.close)
        self._thread.shutdown()
        say("ended", sent_bytes=self.sent_bytes, heard_bytes=self.heard_bytes)

    def _unreported(self) -> bool:
        """Whether a parent that is there has still to hear of something."""
        node = self.worker.node
        return node is not None and self._uplink is not None and not self.parted and node.unreported
