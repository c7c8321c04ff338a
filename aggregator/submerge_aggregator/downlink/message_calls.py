"""MessageCalls: the gRPC calls of children that bring messages: joins, and reports.

A join or a report alone is a call of its own: the response is the answer. Reports one after the
other come on one stream, and each is answered before the next is read. A refusal ends the call,
or the stream, with a status; the child then makes another.

gRPC refuses what is over the limit by its first bytes, before memory for the rest is allocated,
also where it is compressed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

from submerge_aggregator.downlink import Inbound, Refusal, Take, WatchAdmission
from submerge_aggregator.downlink.identity import identity_of
from submerge_aggregator.downlink.readings import CallsUnderWay, ReadingLimits, TooMany
from submerge_aggregator.downlink.report_streams import (
    CallSender,
    OpenReportStream,
    ReportStreams,
    StreamEnded,
    turns_away,
)
from submerge_aggregator.refusals import Refusals
from submerge_client.uplink.over_grpc import THROTTLED
from submerge_proto.wire.codec import Kind

ANSWER_S = 30.0
"""A message unanswered by then never will be: the child has asked again long before."""

READ_S = 12.0
"""From the beginning of a call to the end of its message. A child waits 10 s for an answer:
after that it has given up, and the memory would be held in vain."""

MOST_ASKED = 1024
"""Bytes of a request that is a name or two, and is held as long as its stream is open."""

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
    """Reads the messages of calls, hands them over, and answers. For one event loop.

    limit : Most bytes of a message.
    note_call : Notes a call, and returns the other end of its connection.

    readings : The calls whose messages are being read.
    job_readings : The same for messages of jobs, which take no place from reports.
    """

    def __init__(
        self,
        limit: int,
        limits: ReadingLimits,
        refusals: Refusals,
        note_call: Callable[[Any], str],
    ) -> None:
        self._take: Take = lambda _: None
        self.readings = CallsUnderWay(limit, limits)
        self.job_readings = CallsUnderWay(limit, limits, limits.job_bytes)
        self.streams = ReportStreams(limit, limits)
        self._limit, self._refusals, self._note_call = limit, refusals, note_call
        self._unanswered: dict[asyncio.Future[bytes], float] = {}  # the oldest first
        self._closing = False

    def open(self, take: Take) -> None:
        """Begin to hand over messages."""
        self._take, self._closing = take, False
        self.streams.open()

    async def join(self, _: Any, context: Any) -> bytes:
        """Answer a call with a join."""
        return await self._answered_once("join", context)

    async def report(self, _: Any, context: Any) -> bytes:
        """Answer a call with a report."""
        return await self._answered_once("report", context)

    async def drill(self, _: Any, context: Any) -> bytes:
        """Answer a call with an answer to a drill."""
        return await self._answered_once("drill", context)

    async def reply(self, _: Any, context: Any) -> bytes:
        """Answer a call with a reply to a question."""
        return await self._answered_once("reply", context)

    async def job(self, _: Any, context: Any) -> bytes:
        """Take a message of a job."""
        sender = self._sender(context)
        data = await self.read_message(context, self.job_readings)
        return await self._answered("job", data, sender, context)

    async def reports(self, _: Any, context: Any) -> None:
        """Answer the reports of a stream, one after the other."""
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
        """End the streams of nodes that are refused by now."""
        self.streams.cut(admission)

    def close(self) -> None:
        """End streams that wait; let answers under way go out."""
        self._closing = True
        self.streams.close()

    def _sender(self, context: Any) -> CallSender:
        peer, name = self._note_call(context), name_of(context)
        return CallSender(peer, peer if name is None else name, name, identity_of(context))

    async def _answered_once(self, kind: Kind, context: Any) -> bytes:
        sender = self._sender(context)
        return await self._answered(kind, await self.read_message(context), sender, context)

    async def _answered(self, kind: Kind, data: bytes, sender: CallSender, context: Any) -> bytes:
        """Hand a message over, and return the answer; without one, end the call."""
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def answer(_: Kind, data: bytes) -> None:
            if not answered.done():
                answered.set_result(data)

        def refuse(why: str, kind: Refusal) -> None:
            if not answered.done():
                answered.set_exception(Unanswered(why, kind))

        self._take(
            Inbound(
                kind,
                data,
                sender.name,
                shared=False,
                answer=answer,
                refuse=refuse,
                peer=sender.peer,
                identity=sender.identity,
            )
        )
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
        """End the stream of a node that may not report."""
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
    """Return the name that a call counts against."""
    name = name_of(context)
    return str(context.peer()) if name is None else name
