"""OverGrpc: the way down over gRPC, on the event loop.

Join and report are unary: the response is the answer. A watch is a stream: the hello and the
newest model of its group, then whatever is newer.

With mutual TLS a child is the name in its certificate. Without, the sender is unknown, and its
messages count against the connection. gRPC refuses what is over the limit by its first bytes,
before memory for the rest is allocated, also where it is compressed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from submerge import PeerError, UsageError
from submerge_aggregator.downlink import (
    Admits,
    Inbound,
    Refusal,
    Take,
    WatchAdmission,
    everybody,
)
from submerge_aggregator.downlink.beside import Health, Unknown
from submerge_aggregator.downlink.handshakes import Handshakes
from submerge_aggregator.downlink.identity import identity_of
from submerge_aggregator.downlink.readings import CallsUnderWay, ReadingLimits, TooMany
from submerge_aggregator.downlink.server_options import server_options
from submerge_aggregator.downlink.watches import Watches
from submerge_aggregator.listening import listen
from submerge_aggregator.refusals import Refusals
from submerge_client.config.links import endpoint_of
from submerge_client.logs import say
from submerge_client.uplink.over_grpc import THROTTLED
from submerge_client.uplink.tls import Tls
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import parts
from submerge_proto.wire.codec import Kind

SERVICE = pb.DESCRIPTOR.services_by_name["AggregatorService"].full_name

ANSWER_S = 30.0
"""A message unanswered by then never will be: the child has asked again long before."""

READ_S = 12.0
"""From the beginning of a call to the end of its message. A child waits 10 s for an answer:
after that it has given up, and the memory would be held in vain."""

LOOK_S = 5.0
"""Between two looks for such messages. A timer for each would cost more than the messages."""

GRACE_S = 2.0
"""For calls under way when it closes."""

MOST_ASKED = 1024
"""Bytes of a request that is a name or two, and is held as long as its stream is open."""

SOON_S = 1.0
"""By then gRPC has ended a call whose message was over the limit. A call that is cancelled with
more than this left of its deadline was not ended by the deadline."""

LIMITS = ReadingLimits()

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


class GrpcDownlink:
    """A `Downlink` over gRPC.

    Parameters
    ----------
    address : str
        host:port to listen on.
    limit : int
        Most bytes of a message that comes in.
    tls : Tls or None
        Certificate and key of this side; with `ca`, children must show one that it signed.
        None: unprotected.
    refusals : Refusals or None
        Counts what is refused here: too large, an unknown method, another's name.
    admits : callable
        Whether a sender may open one watch more.
    admission : WatchAdmission or None
        Which nodes may watch which groups; None: all.
    limits : ReadingLimits
        How much is read at a time.

    Attributes
    ----------
    port : int
        The port that it listens on.
    handshakes_begun : int
        TLS handshakes, whatever came of them.
    readings : CallsUnderWay
        The calls whose messages are being read.
    """

    reachable: bool | None = None  # there is no broker between

    def __init__(
        self,
        address: str,
        *,
        limit: int,
        tls: Tls | None = None,
        refusals: Refusals | None = None,
        admits: Admits = everybody,
        admission: WatchAdmission | None = None,
        limits: ReadingLimits = LIMITS,
    ) -> None:
        if tls is not None:
            if not tls.proves:
                raise UsageError("a gRPC server with TLS needs cert and key, got one or none")
            tls.context()  # a wrong file is an error at once
        self.address, self.port = address, 0
        self._limit, self._limits, self._tls = limit, limits, tls
        self._take: Take = lambda _: None
        self._refusals = Refusals() if refusals is None else refusals
        self._admits, self._admission, self._revision = admits, admission, 0
        self._watches = Watches(limits.watches_each)
        self._handshakes = Handshakes()
        self.readings = CallsUnderWay(limit, limits)
        self._unanswered: dict[asyncio.Future[bytes], float] = {}  # the oldest first
        self._closing = asyncio.Event()
        self.handshakes_begun = 0
        self._stamp: tuple[object, ...] = ()

    @property
    def reading(self) -> tuple[int, int]:
        """Bytes that messages being read may come to, and the most."""
        return self.readings.used, self.readings.most

    async def open(self, take: Take) -> None:
        """Listen."""
        self._take, self._closing = take, asyncio.Event()
        options = server_options(self._limit, self._limits, secure=self._tls is not None)
        self._server = grpc.aio.server(options=options)
        handlers = {
            # As streams of one message: gRPC does not report a unary message that it refuses,
            # and would read as many at once as a sender begins.
            "Join": grpc.stream_unary_rpc_method_handler(self._join),
            "Report": grpc.stream_unary_rpc_method_handler(self._report),
            "Watch": grpc.stream_stream_rpc_method_handler(self._watch),
        }
        generic = grpc.method_handlers_generic_handler(SERVICE, handlers)
        self._server.add_generic_rpc_handlers((generic,))
        self._health = Health(self._read_request)
        self._server.add_generic_rpc_handlers((self._health.handlers(),))
        self._server.add_generic_rpc_handlers((Unknown(self._unknown),))
        # gRPC finds out too, but prints lines of its own first.
        listen(endpoint_of(self.address), setting="listen.grpc.address").close()
        if self._tls is None:
            self.port = self._server.add_insecure_port(self.address)
        else:
            credentials = self._credentials(self._tls)
            self.port = self._server.add_secure_port(self.address, credentials)
        await self._server.start()
        self._looking = asyncio.create_task(self._look())
        for name in ("", SERVICE):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    def publish(self, group: str, data: bytes) -> None:
        """Send watches a message: all of them a hello, those of a group its model."""
        self._watches.publish(group, data)

    def push(self, node: str, group: str, data: bytes) -> None:
        """Send one child's watches the model again."""
        self._watches.push(node, group, data)

    async def close(self) -> None:
        """Mark the service as ending, end the watches, let calls end."""
        await self._health.enter_graceful_shutdown()
        self._closing.set()
        self._watches.wake()
        await self._server.stop(GRACE_S)
        self._looking.cancel()

    def _credentials(self, tls: Tls) -> Any:
        """Return credentials that read the certificate again at each handshake."""
        self._stamp = tls.stamp()
        current, mutual = _certificate(tls)

        def renew() -> Any:
            """Return another certificate, if there is one; gRPC calls it on its own thread."""
            self.handshakes_begun += 1
            stamp = tls.stamp()
            if stamp == self._stamp:
                return None
            try:
                current, _ = _certificate(tls)
            except UsageError:
                return None  # half replaced: the next handshake looks again
            self._stamp = stamp
            return current

        return grpc.dynamic_ssl_server_credentials(
            current, renew, require_client_authentication=mutual
        )

    # -- calls -----------------------------------------------------------------

    def _note_call(self, context: Any) -> str:
        """Note that a connection is in use; return its other end."""
        peer = str(context.peer())
        self._handshakes.note_call(peer, self.handshakes_begun, asyncio.get_running_loop().time())
        return peer

    def _unknown(self, context: Any, method: str) -> None:
        self._note_call(context)
        self._refusals.count("foreign_topic", _who(context), why=f"no method {method[:100]}")

    async def _join(self, _: Any, context: Any) -> bytes:
        return await self._deliver("join", context)

    async def _report(self, _: Any, context: Any) -> bytes:
        return await self._deliver("report", context)

    async def _read_message(self, context: Any) -> bytes:
        """Return the message of a call; count it where gRPC has refused to read it."""
        try:
            async with asyncio.timeout(READ_S), self.readings.place(_who(context)):
                data = await context.read()
            if data is not grpc.aio.EOF:
                return bytes(data)
            await asyncio.sleep(SOON_S)
        except TooMany:
            why = "too many calls at once"
            self._refusals.count("throttled", _who(context), why=why)
            await context.abort(STATUS["throttled"], f"{why}: wait", ((THROTTLED, "1"),))
        except TimeoutError:
            why = f"a call without a whole message within {READ_S:g} s"
            self._refusals.count("malformed", _who(context), why=why)
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, why)
        except asyncio.CancelledError:
            left = context.time_remaining()
            if not self._closing.is_set() and (left is None or left > SOON_S):
                why = f"more than {self._limit} bytes, or broken off on the way"
                self._refusals.count("oversize", _who(context), why=why)
            raise
        self._refusals.count("malformed", _who(context), why="a call without a message")
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "expected a message, got none")
        return b""  # never: abort raises

    async def _read_request(self, context: Any) -> bytes:
        """Return the request for a stream or for our health: a short one."""
        self._note_call(context)
        data = await self._read_message(context)
        if len(data) > MOST_ASKED:
            why = f"{len(data)} bytes, expected at most {MOST_ASKED}"
            self._refusals.count("oversize", _who(context), why=why)
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, why)
        return data

    async def _deliver(self, kind: Kind, context: Any) -> bytes:
        peer = self._note_call(context)
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def answer(_: Kind, data: bytes) -> None:
            if not answered.done():
                answered.set_result(data)

        def refuse(why: str, kind: Refusal) -> None:
            if not answered.done():
                answered.set_exception(Unanswered(why, kind))

        # No variable of this frame holds the message: the exception of a refusal holds the frame,
        # until the collector of cycles comes by.
        self._take(
            Inbound(
                kind,
                await self._read_message(context),
                _identity(context),
                shared=False,
                answer=answer,
                refuse=refuse,
                peer=peer,
                identity=identity_of(context),
            )
        )
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

    async def _look(self) -> None:
        """Refuse messages that were not answered in time; cut watches that are denied by now;
        count handshakes that failed.
        """
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK_S)
            self._cut_watches()
            for _ in range(self._handshakes.take_failed(self.handshakes_begun, loop.time())):
                self._refusals.count("handshake", why="see the other end's log")
            for answered, since in self._unanswered.items():
                if since > loop.time() - ANSWER_S:
                    break
                if not answered.done():
                    answered.set_exception(Unanswered("no answer", "busy"))

    def _cut_watches(self) -> None:
        """End the streams of nodes that may no longer listen."""
        try:
            if self._admission is not None and self._revision != self._admission.revision:
                self._revision = self._admission.revision
                self._watches.cut(self._admission)
        except Exception as error:  # no file may end the task that calls this
            say("a bug, please report it", level=logging.ERROR, why=repr(error))

    async def _watch(self, _: Any, context: Any) -> AsyncIterator[bytes]:
        data = await self._read_request(context)
        peer, who, name = str(context.peer()), _who(context), _identity(context)
        if not self._admits(who, len(data)):
            self._refusals.count("throttled", who, why="a watch")
            await context.abort(STATUS["throttled"], "too many watches: wait")
        try:
            header = pb.WatchRequest.FromString(data).header
            node, group = parts.name(header.node), parts.name(header.group)
        except (DecodeError, PeerError, UnicodeDecodeError) as error:
            kind = error.kind if isinstance(error, PeerError) else "malformed"
            self._refusals.count(kind, who, why=str(error))
            await context.abort(STATUS["foreign"], str(error)[:1000])
        if name not in (None, node):
            self._refusals.count("spoofed", who, why=f"a watch for {node}")
            await context.abort(STATUS["denied"], f"this certificate is of {name}")
        identity = identity_of(context)
        if self._admission is not None:
            why = self._admission.objection_to_watch(identity, node, group)
            if why is not None:
                await self._deny(context, node, group, why)
        watch = self._watches.begin(who, node, group, identity)
        if watch is None:
            self._refusals.count("throttled", who, why="too many watches at once")
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many watches")
            return
        self._handshakes.note_stream(peer)
        try:
            while not self._closing.is_set() and watch.why_cut is None:
                for message in await watch.news():
                    yield message
            if watch.why_cut is not None:
                await self._deny(context, node, group, watch.why_cut)
        finally:
            self._handshakes.note_stream_end(peer)
            self._watches.end(watch)

    async def _deny(self, context: Any, node: str, group: str, why: str) -> None:
        """End a watch of a node that may not watch."""
        self._refusals.count("denied", node, group=group, why=f"a watch: {why}")
        await context.abort(STATUS["denied"], f"{why}"[:1000])


def _identity(context: Any) -> str | None:
    """Return the name in the certificate; None without one, "" if it has no name."""
    shown = context.auth_context()
    names = shown.get("x509_common_name", ())
    if not names:
        return "" if "x509_pem_cert" in shown else None
    return str(names[0].decode(errors="replace"))


def _who(context: Any) -> str:
    """Return the name that a call counts against."""
    name = _identity(context)
    return str(context.peer()) if name is None else name


def _certificate(tls: Tls) -> tuple[Any, bool]:
    """Return our certificate as it is now, and whether children need one of our authorities."""
    ca, key, cert = tls.contents()
    return grpc.ssl_server_certificate_configuration([(key, cert)], ca), ca is not None
