"""Watches: open streams to children, and the newest message of each kind for each.

A child that reads slowly skips older messages: a stream holds one hello and one model at most, and
`MOST_MORE` answers and questions. Messages of jobs wait for these, in bounded memory.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterator

from submerge_aggregator.downlink import UNPROVEN, PeerIdentity, WatchAdmission
from submerge_client.uplink import JobQueue, JobRoom

MOST_MORE = 64
"""Answers and questions that wait for one stream: what is dropped is sent again, or asked again."""

JOB_BYTES, ALL_JOB_BYTES = 2 << 20, 16 << 20
"""Bytes of jobs' messages that wait for one stream, and for all of them."""

JOBS_AT_ONCE = 4  # messages of jobs that go before it is asked again what else waits
MOST_STREAMS = 65_536  # watches at once; more children than one aggregator serves


class WatchStream:
    """One stream, held by `who`; `why_cut` says why its node may watch no longer."""

    def __init__(
        self, who: str, node: str, group: str, identity: PeerIdentity, room: JobRoom
    ) -> None:
        self.who, self.node, self.group, self.identity = who, node, group, identity
        self.why_cut: str | None = None
        self._newest: dict[str, bytes] = {}  # a hello under "", and its group's model
        self._more: deque[bytes] = deque(maxlen=MOST_MORE)
        self._jobs: JobQueue[bytes] = JobQueue(JOB_BYTES, room)
        self._stirred = asyncio.Event()

    def put(self, group: str, data: bytes) -> None:
        """Send a model, or with group "" a hello, in place of one that waits."""
        self._newest[group] = data
        self._stirred.set()

    def put_more(self, data: bytes) -> None:
        """Send an answer or a question; of too many the oldest is dropped."""
        self._more.append(data)
        self._stirred.set()

    def put_job(self, data: bytes) -> None:
        """Send a message of a job after all others; one without room is dropped."""
        self._jobs.put(data, len(data))
        self._stirred.set()

    def drop_jobs(self) -> None:
        """Forget the messages of jobs that wait: a newer stream of its child gets them."""
        self._jobs.clear()

    def end(self) -> None:
        """Wake it: nothing more is sent."""
        self.drop_jobs()
        self._stirred.set()

    async def news(self) -> list[bytes]:
        """Wait for messages to send, and return them."""
        await self._stirred.wait()
        self._stirred.clear()
        jobs = [self._jobs.take() for _ in range(min(JOBS_AT_ONCE, len(self._jobs)))]
        waiting = [*(self._newest[each] for each in sorted(self._newest)), *self._more, *jobs]
        if self._jobs:
            self._stirred.set()
        self._newest.clear()
        self._more.clear()
        return waiting


class Watches:
    """All open streams, at most `most_each` of a node, and the newest messages for the next one."""

    def __init__(self, most_each: int) -> None:
        self._most_each = most_each
        self._newest: dict[str, bytes] = {}  # models by group, and the hello under ""
        self._open: dict[int, WatchStream] = {}
        # A job has a message for each of thousands of children: they are found by name.
        self._of_jobs: dict[tuple[str, str], list[WatchStream]] = {}
        self._room = JobRoom(ALL_JOB_BYTES)
        self._held: Counter[str] = Counter()

    def begin(
        self,
        who: str,
        node: str,
        group: str,
        identity: PeerIdentity = UNPROVEN,
        *,
        jobs: bool = False,
    ) -> WatchStream | None:
        """Return another stream, which has the newest to send; None if there are too many."""
        if len(self._open) >= MOST_STREAMS or self._held[who] >= self._most_each:
            return None
        watch = WatchStream(who, node, group, identity, self._room)
        self._open[id(watch)] = watch
        if jobs:
            streams = self._of_jobs.setdefault((node, group), [])
            for older in streams[-1:]:
                older.drop_jobs()
            streams.append(watch)
        self._held[who] += 1
        for each in ("", group):
            if each in self._newest:
                watch.put(each, self._newest[each])
        return watch

    def end(self, watch: WatchStream) -> None:
        watch.end()
        del self._open[id(watch)]
        place = watch.node, watch.group
        if watch in (of_jobs := self._of_jobs.get(place, [])):
            of_jobs.remove(watch)
            if not of_jobs:
                del self._of_jobs[place]
        self._held[watch.who] -= 1
        if not self._held[watch.who]:
            del self._held[watch.who]

    def publish(self, group: str, data: bytes) -> None:
        """Send a message: with group "", a hello to all streams, else a model to the group's."""
        self._newest[group] = data
        for watch in self._open.values():
            if group in ("", watch.group):
                watch.put(group, data)

    def push(self, node: str, group: str, data: bytes) -> None:
        """Send the streams of one child a model again."""
        for watch in self._of(node, group):
            watch.put(group, data)

    def push_more(self, node: str, group: str, data: bytes) -> None:
        """Send the streams of one child an answer or a question."""
        for watch in self._of(node, group):
            watch.put_more(data)

    def push_job(self, node: str, group: str, data: bytes) -> None:
        """Send a child a message of a job on the newest of its streams that reads such."""
        # With one on each stream, a child that opens many and reads none would fill all room.
        for watch in self._of_jobs.get((node, group), [])[-1:]:
            watch.put_job(data)

    def cut(self, admission: WatchAdmission) -> None:
        """End the streams whose nodes may watch no longer."""
        for watch in self._open.values():
            why = admission.objection_to_watch(watch.identity, watch.node, watch.group)
            if why is not None and watch.why_cut is None:
                watch.why_cut = why
                watch.end()

    def wake(self) -> None:
        """Wake all streams, so that they end."""
        for watch in self._open.values():
            watch.end()

    def _of(self, node: str, group: str) -> Iterator[WatchStream]:
        return (each for each in self._open.values() if (each.node, each.group) == (node, group))
