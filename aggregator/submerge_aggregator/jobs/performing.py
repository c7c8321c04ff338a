"""JobEffects: performs what a part in jobs wants done: records, messages, and what people hear."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from submerge.aggregator.node import AggregatorNode
from submerge.jobs.job import Job, JobOutcome
from submerge.jobs.machine import JobEffect, JobEnded, JobProgress, SendJob
from submerge.protocol.machine import Keep, Note, Now
from submerge_aggregator.downlink import Downlink
from submerge_aggregator.jobs.following import JobFollower, NoFollower
from submerge_aggregator.worker import CommitWorker
from submerge_client.logs import Notes, say
from submerge_client.uplink import TooLarge
from submerge_proto.kept import records
from submerge_proto.wire import jobs

AT_ONCE = 64
"""Effects that are performed before other work has its turn."""


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
    """Performs effects, in order. For the event loop.

    on_end : Hears of each end, after the board.
    messages, sent_bytes : Messages that were sent, and their bytes, without what the transport
        adds.
    """

    def __init__(self, board: JobFollower | None = None) -> None:
        self.board: JobFollower = NoFollower() if board is None else board
        self.messages = self.sent_bytes = 0
        self.on_end: Callable[[JobOutcome], None] | None = None
        self._notes = Notes()

    async def perform(
        self, host: JobHost, effects: Sequence[JobEffect], opened: Job | None = None
    ) -> None:
        """Perform the effects of a step, in which `opened` was opened.

        Raises SubmergeError if a record cannot be written: nothing that follows is performed.
        """
        now = host.clock()
        for i, effect in enumerate(effects):
            match effect:
                case SendJob():
                    self._send(host, effect, now)
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
        """Log the end of a job, and let the board know."""
        outcome = ended.outcome
        facts: dict[str, Any] = {"job": outcome.job.id, "kind": outcome.job.kind}
        facts |= {"why": outcome.failure} if outcome.failure else {}
        say("job failed" if outcome.failure else "job ended", **facts)
        self.board.ended(outcome, now.wall)
        if self.on_end is not None:
            self.on_end(outcome)

    def _send(self, host: JobHost, send: SendJob, now: Now) -> None:
        """Send a message to a child, or to the parent."""
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
