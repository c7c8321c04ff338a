"""MessageCalls: the gRPC calls of children that bring messages: joins, and reports.

Reports come one after the other on a stream (docs/decisions/0031). gRPC refuses what is over the
limit by its first bytes, also where it is compressed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import DecodeError

from submerge_aggregator.downlink import (
    Inbound,
    PeerIdentity,
    Refusal,
    Take,
    WatchAdmission,
    identity_of,
)
from submerge_aggregator.downlink.readings import CallsUnderWay, ReadingLimits, TooMany
from submerge_aggregator.refusals import Refusals
from submerge_client.uplink.over_grpc import THROTTLED
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire.codec import Kind

# A stream ends when nothing has come for `IDLE_S`, when its node is refused by now or has just
# been answered so, and when the aggregator closes.

IDLE_S = 120.0
"""A stream without a report for so long ends: a child that reports oftener may use its place
better."""


class CallSender(NamedTuple):
    peer: str  # the connection's other end
    who: str  # the name that it counts against
    name: str | None  # in its certificate; None without one, "" if it has no name
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
    def __init__(self, size: int, limits: ReadingLimits) -> None:
        self._size = size
        self.places, self.places_each = limits.places(limits.stream_bytes // size)
        self._open: set[OpenReportStream] = set()
        self._held: Counter[str] = Counter()
        self._closed = True

    def __len__(self) -> int:
        return len(self._open)

    @property
    def used(self) -> int:
        """Bytes that unfinished messages on the streams kept open may come to."""
        return len(self._open) * self._size

    @property
    def most(self) -> int:
        return self.places * self._size

    def open(self) -> None:
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
        self._open.discard(stream)
        self._held[stream.sender.who] -= 1
        if not self._held[stream.sender.who]:
            del self._held[stream.sender.who]

    def end_idle(self, now: float) -> None:
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


ANSWER_S = 30.0  # a message unanswered by then never will be: the child has asked again long before

READ_S = 12.0
"""From the beginning of a call to the end of its message. A child waits 10 s for an answer:
after that it has given up, and the memory would be held in vain."""

MOST_ASKED = 1024  # bytes of a request that is a name or two, held as long as its stream is open

SOON_S = 1.0
"""By then gRPC has ended a call whose message was over the limit. A call that is cancelled with
more than this left of its deadline was not ended by the deadline."""

STATUS: dict[Refusal, grpc.StatusCode] = {
    "foreign": grpc.StatusCode.INVALID_ARGUMENT,
    "denied": grpc.StatusCode.PERMISSION_DENIED,
    "busy": grpc.StatusCode.UNAVAILABLE,
    # "Not now", and no more: a child that does not know THROTTLED backs off all the same.
    "throttled": grpc.StatusCode.UNAVAILABLE,
}


class Unanswered(Exception):
    """There is no answer to a message; the kind of refusal."""

    def __init__(self, why: str, kind: Refusal) -> None:
        self.kind = kind
        super().__init__(why)


class MessageCalls:
    """Reads the messages of calls, hands them over, and answers. For one event loop."""

    def __init__(
        self, limit: int, limits: ReadingLimits, refusals: Refusals, note_call: Callable[[Any], str]
    ) -> None:
        self._take: Take = lambda _: None
        self.readings = CallsUnderWay(limit, limits)
        self.job_readings = CallsUnderWay(limit, limits, limits.job_bytes)
        self.streams = ReportStreams(limit, limits)
        self._limit, self._refusals, self._note_call = limit, refusals, note_call
        self._unanswered: dict[asyncio.Future[bytes], float] = {}  # the oldest first
        self._closing = False

    def open(self, take: Take) -> None:
        self._take, self._closing = take, False
        self.streams.open()

    async def once(self, kind: Kind, _: Any, context: Any) -> bytes:
        sender, readings = self._sender(context), self.readings
        if kind == "job":
            readings = self.job_readings
        data = await self.read_message(context, readings)
        return await self._answered(kind, data, sender, context)

    async def reports(self, _: Any, context: Any) -> None:
        sender, stream = self._sender(context), None
        try:
            answer = await self._answered(
                "report", await self.read_message(context), sender, context
            )
            while True:
                await context.write(answer)
                if turns_away(answer):
                    return
                stream = stream or self.streams.keep(sender, answer)
                if stream is None:
                    return
                answer = await self._answered("report", await stream.read(context), sender, context)
        except StreamEnded:
            if stream is not None and stream.why_cut is not None:
                await self._cut(context, stream)
        finally:
            if stream is not None:
                self.streams.release(stream)

    async def read_message(self, context: Any, readings: CallsUnderWay | None = None) -> bytes:
        """Return the first message of a call; count it where gRPC has refused to read it."""
        readings = readings or self.readings
        try:
            async with asyncio.timeout(READ_S), readings.place(who_of(context)):
                data = await context.read()
            if data is not grpc.aio.EOF:
                return bytes(data)
            await asyncio.sleep(SOON_S)
        except TooMany:
            why = "too many calls at once"
            self._refusals.count("throttled", who_of(context), why=why)
            await context.abort(STATUS["throttled"], f"{why}: wait", ((THROTTLED, "1"),))
        except TimeoutError:
            why = f"a call without a whole message within {READ_S:g} s"
            self._refusals.count("malformed", who_of(context), why=why)
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, why)
        except asyncio.CancelledError:
            left = context.time_remaining()
            if not self._closing and (left is None or left > SOON_S):
                why = f"more than {self._limit} bytes, or broken off on the way"
                self._refusals.count("oversize", who_of(context), why=why)
            raise
        self._refusals.count("malformed", who_of(context), why="a call without a message")
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "expected a message, got none")
        return b""  # never: abort raises

    async def read_request(self, context: Any) -> bytes:
        """Return the request for a stream or for our health: a short one."""
        self._note_call(context)
        data = await self.read_message(context)
        if len(data) > MOST_ASKED:
            why = f"{len(data)} bytes, expected at most {MOST_ASKED}"
            self._refusals.count("oversize", who_of(context), why=why)
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, why)
        return data

    def refuse_overdue(self, now: float) -> None:
        """Refuse messages that were not answered in time; end streams that stay idle."""
        self.streams.end_idle(now)
        for answered, since in self._unanswered.items():
            if since > now - ANSWER_S:
                break
            if not answered.done():
                answered.set_exception(Unanswered("no answer", "busy"))

    def cut(self, admission: WatchAdmission) -> None:
        self.streams.cut(admission)

    def close(self) -> None:
        """End streams that wait; let answers under way go out."""
        self._closing = True
        self.streams.close()

    def _sender(self, context: Any) -> CallSender:
        peer, name = self._note_call(context), name_of(context)
        return CallSender(peer, peer if name is None else name, name, identity_of(context))

    async def _answered(self, kind: Kind, data: bytes, sender: CallSender, context: Any) -> bytes:
        """Hand a message over, and return the answer; without one, end the call."""
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def answer(_: Kind, data: bytes) -> None:
            if not answered.done():
                answered.set_result(data)

        def refuse(why: str, kind: Refusal) -> None:
            if not answered.done():
                answered.set_exception(Unanswered(why, kind))

        peer, identity = sender.peer, sender.identity
        self._take(Inbound(kind, data, sender.name, False, answer, refuse, peer, identity))
        # The exception of a refusal holds this frame until the collector of cycles comes by.
        del data
        self._unanswered[answered] = asyncio.get_running_loop().time()
        try:
            return await answered
        except Unanswered as error:
            refusal, why = error.kind, str(error)[:1000]
        finally:
            del self._unanswered[answered]
        about = ((THROTTLED, "1"),) if refusal == "throttled" else ()
        await context.abort(STATUS[refusal], why, about)
        raise AssertionError("abort raises")

    async def _cut(self, context: Any, stream: OpenReportStream) -> None:
        why = stream.why_cut or ""
        facts = {"group": stream.group, "why": f"a stream of reports: {why}"}
        self._refusals.count("denied", stream.node, **facts)
        await context.abort(STATUS["denied"], why[:1000])


def name_of(context: Any) -> str | None:
    """Return the name in the certificate; None without one, "" if it has no name."""
    shown = context.auth_context()
    names = shown.get("x509_common_name", ())
    if not names:
        return "" if "x509_pem_cert" in shown else None
    return str(names[0].decode(errors="replace"))


def who_of(context: Any) -> str:
    name = name_of(context)
    return str(context.peer()) if name is None else name
