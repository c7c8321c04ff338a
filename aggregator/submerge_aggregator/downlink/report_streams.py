"""ReportStreams: streams on which children report, kept open from one report to the next.

To set up a call costs more than to answer a report, so a child that reports often keeps a stream.
gRPC does not say when a message begins to arrive, and reads the whole of it once one is awaited.
So each stream that waits for its next report counts as the largest message, out of a budget of
bytes, and of one sender an eighth of these streams. A child without a place is answered all the
same: its stream ends after the answer, and the next report begins another, as a call does.

A stream ends when nothing has come for `IDLE_S`, when its node is refused by now or has just been
answered so, and when the aggregator closes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import DecodeError

from submerge_aggregator.downlink import WatchAdmission
from submerge_aggregator.downlink.identity import PeerIdentity
from submerge_aggregator.downlink.readings import ReadingLimits
from submerge_proto.v1 import aggregator_service_pb2 as pb

IDLE_S = 120.0
"""A stream without a report for so long ends: a child that reports oftener may use its place
better."""


class CallSender(NamedTuple):
    """The other end of a call.

    peer : the connection's other end
    who : the name that it counts against
    name : in its certificate; None without one, "" if it has no name
    """

    peer: str
    who: str
    name: str | None
    identity: PeerIdentity


class StreamEnded(Exception):
    """No further report comes on a stream."""


class OpenReportStream:
    """One stream that waits for its next report, or for the answer to it.

    why_cut : Why its node may report no longer; None while it may.
    idle_since : On the event loop's clock; None while a report is being answered.
    """

    def __init__(self, sender: CallSender, node: str, group: str) -> None:
        self.sender, self.node, self.group = sender, node, group
        self.why_cut: str | None = None
        self.idle_since: float | None = None
        self._ends = asyncio.Event()
        self._reader: asyncio.Task[Any] | None = None

    async def read(self, context: Any) -> bytes:
        """Return the next report; raises StreamEnded if none comes any more."""
        task = asyncio.current_task()
        if self._ends.is_set() or task is None:
            raise StreamEnded
        self._reader, self.idle_since = task, asyncio.get_running_loop().time()
        try:
            data = await context.read()
        except asyncio.CancelledError:
            if not self._ends.is_set():
                raise  # the child is gone, or has sent too much
            task.uncancel()
            raise StreamEnded from None
        finally:
            self._reader = self.idle_since = None
        if data is grpc.aio.EOF:
            raise StreamEnded
        return bytes(data)

    def end(self, why_cut: str | None = None) -> None:
        """End it: now if it waits for a report, else after the answer."""
        self.why_cut = why_cut
        self._ends.set()
        if self._reader is not None:
            self._reader.cancel()


def turns_away(answer: bytes) -> bool:
    """Return whether an answer says that its node may not report: no stream stays open for it."""
    try:
        # Ours; one that cannot be read is no reason to wait for more.
        reason = pb.ReportResponse.FromString(answer).reason
    except DecodeError:
        return True
    return reason in (pb.REASON_DENIED, pb.REASON_BANNED)


class ReportStreams:
    """The streams that are kept open.

    size : Most bytes of a message.
    """

    def __init__(self, size: int, limits: ReadingLimits) -> None:
        self._size = size
        self.places, self.places_each = limits.places(limits.stream_bytes // size)
        self._open: set[OpenReportStream] = set()
        self._held: Counter[str] = Counter()
        self._closed = True

    def __len__(self) -> int:
        """Return how many are kept open."""
        return len(self._open)

    @property
    def used(self) -> int:
        """Bytes that unfinished messages on the streams kept open may come to."""
        return len(self._open) * self._size

    @property
    def most(self) -> int:
        """The most that `used` may be."""
        return self.places * self._size

    def open(self) -> None:
        """Begin to keep streams open."""
        self._closed = False

    def keep(self, sender: CallSender, answer: bytes) -> OpenReportStream | None:
        """Return a stream to be kept open after its first answer; None if there is no place."""
        held = self._held[sender.who]
        if self._closed or len(self._open) >= self.places or held >= self.places_each:
            return None
        try:
            # Ours, and it names the child; only the header, which is the same in every message.
            header = pb.WatchRequest.FromString(answer).header
        except DecodeError:
            return None
        stream = OpenReportStream(sender, header.node, header.group)
        self._open.add(stream)
        self._held[sender.who] = held + 1
        return stream

    def release(self, stream: OpenReportStream) -> None:
        """Give the place of a stream to others."""
        self._open.discard(stream)
        self._held[stream.sender.who] -= 1
        if not self._held[stream.sender.who]:
            del self._held[stream.sender.who]

    def end_idle(self, now: float) -> None:
        """End the streams on which nothing has come for a while."""
        for stream in self._open:
            if stream.idle_since is not None and stream.idle_since <= now - IDLE_S:
                stream.end()

    def cut(self, admission: WatchAdmission) -> None:
        """End the streams of nodes that are refused by now."""
        for stream in self._open:
            identity = stream.sender.identity
            why = admission.objection_to_watch(identity, stream.node, stream.group)
            if why is not None and stream.why_cut is None:
                stream.end(why)

    def close(self) -> None:
        """End all, and keep no other open."""
        self._closed = True
        for stream in self._open:
            stream.end()
