"""OverGrpc: the way down over gRPC, on the event loop.

A watch is a stream: the hello and the newest model of its group, then whatever is newer. Without
mutual TLS the sender is unknown, and its messages count against the connection.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2

from submerge import PeerError, UsageError
from submerge_aggregator.downlink import Admits, Take, WatchAdmission, everybody, identity_of
from submerge_aggregator.downlink.message_calls import STATUS, MessageCalls, name_of, who_of
from submerge_aggregator.downlink.readings import ReadingLimits
from submerge_aggregator.downlink.watches import Watches
from submerge_aggregator.listening import listen
from submerge_aggregator.refusals import Refusals
from submerge_client.config.links import endpoint_of
from submerge_client.config.sizes import GRPC_LIMIT
from submerge_client.logs import say
from submerge_client.uplink.tls import Tls
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import codec, parts
from submerge_proto.wire.codec import Kind

MOST_WATCHING = 64  # streams of the health service: load balancers hold some, and children none


class Health(health.aio.HealthServicer):  # type: ignore[misc]
    """The standard health service; `read` returns the request of a call, or ends the call."""

    _watching = 0

    def __init__(self, read: Callable[[Any], Awaitable[bytes]]) -> None:
        super().__init__()
        self._read = read

    def handlers(self) -> Any:
        """Return its handlers; as streams, so that we read the requests ourselves."""
        form = health_pb2.HealthCheckResponse.SerializeToString
        methods = {
            "Check": grpc.stream_unary_rpc_method_handler(self._check, None, form),
            "Watch": grpc.stream_stream_rpc_method_handler(self._watch, None, form),
        }
        return grpc.method_handlers_generic_handler(health.SERVICE_NAME, methods)

    async def _check(self, _: Any, context: Any) -> Any:
        return await self.Check(await self._request(context), context)

    async def _watch(self, _: Any, context: Any) -> None:
        request = await self._request(context)
        if self._watching >= MOST_WATCHING:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many health watches")
        self._watching += 1
        try:
            await self.Watch(request, context)
        finally:
            self._watching -= 1

    async def _request(self, context: Any) -> Any:
        try:
            return health_pb2.HealthCheckRequest.FromString(await self._read(context))
        except (DecodeError, UnicodeDecodeError):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "expected a service's name")


class Unknown(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Handles what no other handler does; `refuses` gets each call, and its method."""

    def __init__(self, refuses: Callable[[Any, str], object]) -> None:
        self._refuses = refuses

    def service(self, call: Any) -> Any:
        """Answer that there is no such method, without reading the message."""

        async def answer(_: Any, context: Any) -> None:
            self._refuses(context, call.method)
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")

        return grpc.stream_stream_rpc_method_handler(answer)


# It does not report that a handshake has failed: without a certificate, with an untrusted one, or
# because the other end spoke no TLS.

PATIENCE_S = 20.0
"""From a handshake to the first call, on the slowest of lines; gRPC waits no longer for a
handshake."""

LIFE_S = 4000.0  # each connection ends after an hour: later its address belongs to another one
MOST_KNOWN = 65_536  # connections remembered; of more, the one that called first is dropped


class Handshakes:
    """Handshakes that began, and those that failed. Time is an argument."""

    def __init__(self) -> None:
        self._seen = 0
        self._open: list[tuple[float, int]] = []  # since when, and how many; oldest first
        self._known: dict[str, float] = {}
        self._watches: Counter[str] = Counter()

    def note_call(self, peer: str, begun: int, at: float) -> None:
        """Note a call from an address; `begun` handshakes have begun by now."""
        self._note(begun, at)
        since = self._known.get(peer)
        if since is not None and at < since + LIFE_S:
            return
        self._known.pop(peer, None)
        self._known[peer] = at
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        if self._open:
            since, count = self._open.pop()
            if count > 1:
                self._open.append((since, count - 1))

    def note_stream(self, peer: str) -> None:
        """Note an open stream: while one is open, so is its connection."""
        self._watches[peer] += 1

    def note_stream_end(self, peer: str) -> None:
        """Note the end of a stream; after the last one the connection may be gone."""
        self._watches[peer] -= 1
        if not self._watches[peer]:
            del self._watches[peer]
            self._known.pop(peer, None)

    def take_failed(self, begun: int, at: float) -> int:
        """Return how many have failed since the last time."""
        self._note(begun, at)
        count = 0
        while self._open and self._open[0][0] <= at - PATIENCE_S:
            count += self._open.pop(0)[1]
        return count

    def _note(self, begun: int, at: float) -> None:
        if begun > self._seen:
            self._open.append((at, begun - self._seen))
            self._seen = begun


WINDOW = 16_384
"""Bytes of an unread message that come in. The rest follows when it is read: one round trip."""

IDLE_S = 60
"""A connection without a call is closed. A child's connection has a watch, or comes again."""

OPTIONS = (
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # A child pings once a minute. One that pings sooner three times, with nothing sent to it in
    # between, loses its connection.
    ("grpc.http2.min_ping_interval_without_data_ms", 30_000),
    ("grpc.http2.max_ping_strikes", 2),
    ("grpc.http2.lookahead_bytes", WINDOW),
    ("grpc.http2.bdp_probe", 0),  # it would raise the window on fast lines
    ("grpc.http2.settings_timeout", int(1000 * PATIENCE_S)),
    ("grpc.max_connection_idle_ms", 1000 * IDLE_S),
    ("grpc.so_reuseport", 0),  # a port in use is an error, not a second server
    ("grpc.server_handshake_timeout_ms", int(1000 * PATIENCE_S)),
)

AGING = (("grpc.max_connection_age_ms", 3_600_000), ("grpc.max_connection_age_grace_ms", 10_000))
"""With TLS a connection ends after an hour, and the child connects again: its certificate, checked
at the handshake, may have expired since."""


def server_options(
    limit: int, limits: ReadingLimits, *, secure: bool
) -> tuple[tuple[str, int], ...]:
    """Return the options of a server; `limit` is of messages that come in."""
    return (
        *OPTIONS,
        *(AGING if secure else ()),
        ("grpc.max_concurrent_streams", limits.streams_each),
        ("grpc.max_allowed_incoming_connections", limits.max_connections),
        ("grpc.max_receive_message_length", limit),
        ("grpc.max_send_message_length", max(limit, GRPC_LIMIT)),
    )


SERVICE = pb.DESCRIPTOR.services_by_name["AggregatorService"].full_name

LOOK_S = 5.0
"""Between two looks for such messages. A timer for each would cost more than the messages."""

GRACE_S = 2.0  # for calls under way when it closes

LIMITS = ReadingLimits()


ONCE: tuple[Kind, ...] = ("join", "report", "drill", "reply", "job")
"""Kinds of messages that a call brings one of."""


class GrpcDownlink:
    """A `Downlink` over gRPC; without `tls` unprotected, without `admission` all may watch."""

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
        self._refusals = Refusals() if refusals is None else refusals
        self._admits, self._admission, self._revision = admits, admission, 0
        self._watches = Watches(limits.watches_each)
        self._handshakes = Handshakes()
        self.calls = MessageCalls(limit, limits, self._refusals, self._note_call)
        self._closing = asyncio.Event()
        self.handshakes_begun = 0
        self._stamp: tuple[object, ...] = ()

    @property
    def reading(self) -> tuple[int, int]:
        parts = self.calls.readings, self.calls.job_readings, self.calls.streams
        return sum(part.used for part in parts), sum(part.most for part in parts)

    async def open(self, take: Take) -> None:
        self._closing = asyncio.Event()
        self.calls.open(take)
        options = server_options(self._limit, self._limits, secure=self._tls is not None)
        self._server = grpc.aio.server(options=options)
        generic = grpc.method_handlers_generic_handler(SERVICE, self._handlers())
        self._server.add_generic_rpc_handlers((generic,))
        self._health = Health(self.calls.read_request)
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
        self._watches.publish(group, data)

    def push(self, node: str, group: str, kind: Kind, data: bytes) -> None:
        if kind == "watch":
            self._watches.push(node, group, data)
        elif kind == "job":
            self._watches.push_job(node, group, codec.as_watched(kind, data))
        else:
            self._watches.push_more(node, group, codec.as_watched(kind, data))

    async def close(self) -> None:
        """Mark the service as ending, end the watches, let calls end."""
        await self._health.enter_graceful_shutdown()
        self._closing.set()
        self.calls.close()
        self._watches.wake()
        await self._server.stop(GRACE_S)
        self._looking.cancel()

    def _handlers(self) -> dict[str, Any]:
        return {
            # As streams of one message: gRPC does not report a unary message that it refuses,
            # and would read as many at once as a sender begins.
            **{
                kind.capitalize(): grpc.stream_unary_rpc_method_handler(
                    partial(self.calls.once, kind)
                )
                for kind in ONCE
            },
            "Reports": grpc.stream_stream_rpc_method_handler(self.calls.reports),
            "Watch": grpc.stream_stream_rpc_method_handler(self._watch),
        }

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

    def _note_call(self, context: Any) -> str:
        """Note that a connection is in use; return its other end."""
        peer = str(context.peer())
        self._handshakes.note_call(peer, self.handshakes_begun, asyncio.get_running_loop().time())
        return peer

    def _unknown(self, context: Any, method: str) -> None:
        self._note_call(context)
        self._refusals.count("foreign_topic", who_of(context), why=f"no method {method[:100]}")

    async def _look(self) -> None:
        """Refuse what was not answered in time, cut denied streams, count failed handshakes."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK_S)
            self._cut_streams()
            for _ in range(self._handshakes.take_failed(self.handshakes_begun, loop.time())):
                self._refusals.count("handshake", why="see the other end's log")
            self.calls.refuse_overdue(loop.time())

    def _cut_streams(self) -> None:
        """End the streams of nodes that may no longer listen."""
        try:
            if self._admission is not None and self._revision != self._admission.revision:
                self._revision = self._admission.revision
                self._watches.cut(self._admission)
                self.calls.cut(self._admission)
        except Exception as error:  # no file may end the task that calls this
            say("a bug, please report it", level="error", why=repr(error))

    async def _watch(self, _: Any, context: Any) -> AsyncIterator[bytes]:
        data = await self.calls.read_request(context)
        peer, who, name = str(context.peer()), who_of(context), name_of(context)
        if not self._admits(who, len(data)):
            self._refusals.count("throttled", who, why="a watch")
            await context.abort(STATUS["throttled"], "too many watches: wait")
        try:
            request = pb.WatchRequest.FromString(data)
            header = request.header
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
        watch = self._watches.begin(who, node, group, identity, jobs=request.jobs)
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


def _certificate(tls: Tls) -> tuple[Any, bool]:
    """Return our certificate as it is now, and whether children need one of our authorities."""
    ca, key, cert = tls.contents()
    return grpc.ssl_server_certificate_configuration([(key, cert)], ca), ca is not None
