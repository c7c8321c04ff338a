"""OverGrpc: the way down over gRPC, on the event loop.

Join and report are unary: the letter's answer is the response. A watch is a stream: the
hello and the newest model of its group, then whatever is newer; a child that reads slowly
skips what has been overtaken, so a stream holds at most one model that waits.

With mutual TLS a child is whom its certificate names; without, nobody says who it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from submerge import PeerError, UsageError
from submerge_aggregator.downlink import Letter, Refusal, Take
from submerge_aggregator.listening import listen
from submerge_client.links import endpoint_of
from submerge_client.uplink.tls import Tls
from submerge_proto import parts
from submerge_proto.codec import Kind
from submerge_proto.v1 import aggregator_service_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["AggregatorService"].full_name

MOST_STREAMS = 65_536
"""Watches at once; more children than one aggregator serves."""

ANSWER_S = 30.0
"""A letter that is not answered by then never will be: the child has long asked again."""

LOOK_S = 5.0
"""Between two looks for such letters: a timer of its own for each would cost more than they do."""

GRACE_S = 2.0
"""For calls that are on their way when it closes."""

OPTIONS = (
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 30_000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.so_reuseport", 0),  # a port that is taken is an error, not a second server
)


STATUS: dict[Refusal, grpc.StatusCode] = {
    "foreign": grpc.StatusCode.INVALID_ARGUMENT,
    "denied": grpc.StatusCode.PERMISSION_DENIED,
    "busy": grpc.StatusCode.UNAVAILABLE,
}


class Unanswered(Exception):
    """A letter to which there is no answer, and of which kind that is."""

    def __init__(self, why: str, kind: Refusal) -> None:
        self.kind = kind
        super().__init__(why)


class OverGrpc:
    """A `Downlink` over gRPC.

    Parameters
    ----------
    address : str
        host:port to listen on.
    limit : int
        Most bytes of a message, either way.
    tls : Tls or None
        Certificate and key of this side; with `ca`, children must show one that it signed.
        None: unprotected.
    """

    def __init__(self, address: str, *, limit: int, tls: Tls | None = None) -> None:
        if tls is not None:
            if tls.cert is None or tls.key is None:
                raise UsageError("a gRPC server with TLS needs cert and key, got one or none")
            tls.context()  # said at once
        self.address, self.port = address, 0
        self._limit, self._tls = limit, tls
        self._take: Take = lambda _: None
        self._hello = b""
        self._models: dict[str, bytes] = {}
        self._watches: dict[int, _Watch] = {}
        self._unanswered: dict[asyncio.Future[bytes], float] = {}  # the oldest first
        self._closing = asyncio.Event()

    async def open(self, take: Take) -> None:
        """Listen."""
        self._take, self._closing = take, asyncio.Event()
        options = (
            *OPTIONS,
            ("grpc.max_receive_message_length", self._limit),
            ("grpc.max_send_message_length", self._limit),
        )
        self._server = grpc.aio.server(options=options)
        handlers = {
            "Join": grpc.unary_unary_rpc_method_handler(self._join),
            "Report": grpc.unary_unary_rpc_method_handler(self._report),
            "Watch": grpc.unary_stream_rpc_method_handler(self._watch),
        }
        generic = grpc.method_handlers_generic_handler(SERVICE, handlers)
        self._server.add_generic_rpc_handlers((generic,))
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        # gRPC finds out too, but prints lines of its own first.
        listen(endpoint_of(self.address), setting="listen.grpc.address").close()
        if self._tls is None:
            self.port = self._server.add_insecure_port(self.address)
        else:
            self.port = self._server.add_secure_port(self.address, _credentials(self._tls))
        await self._server.start()
        self._looking = asyncio.create_task(self._look())
        for name in ("", SERVICE):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    def publish(self, group: str, data: bytes) -> None:
        """Let watches know: all of them a hello, those of a group its model."""
        if group:
            self._models[group] = data
        else:
            self._hello = data
        for watch in self._watches.values():
            if not group:
                watch.put_hello(data)
            elif watch.group == group:
                watch.put_model(data)

    def push(self, node: str, group: str, data: bytes) -> None:
        """Let one child's watches know the model again."""
        for watch in self._watches.values():
            if (watch.node, watch.group) == (node, group):
                watch.put_model(data)

    async def close(self) -> None:
        """Tell the health service, end the watches, let calls end."""
        await self._health.enter_graceful_shutdown()
        self._closing.set()
        for watch in self._watches.values():
            watch.end()
        await self._server.stop(GRACE_S)
        self._looking.cancel()

    # -- calls -----------------------------------------------------------------

    async def _join(self, data: bytes, context: Any) -> bytes:
        return await self._deliver("join", data, context)

    async def _report(self, data: bytes, context: Any) -> bytes:
        return await self._deliver("report", data, context)

    async def _deliver(self, kind: Kind, data: bytes, context: Any) -> bytes:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[bytes] = loop.create_future()

        def answer(_: Kind, data: bytes) -> None:
            if not answered.done():
                answered.set_result(data)

        def refuse(why: str, kind: Refusal) -> None:
            if not answered.done():
                answered.set_exception(Unanswered(why, kind))

        self._unanswered[answered] = loop.time()
        self._take(Letter(kind, data, _identity(context), False, answer, refuse))
        try:
            return await answered
        except Unanswered as error:
            await context.abort(STATUS[error.kind], str(error)[:1000])
            raise
        finally:
            del self._unanswered[answered]

    async def _look(self) -> None:
        """Give up letters that nobody will answer."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK_S)
            for answered, since in self._unanswered.items():
                if since > loop.time() - ANSWER_S:
                    break
                if not answered.done():
                    answered.set_exception(Unanswered("no answer", "busy"))

    async def _watch(self, data: bytes, context: Any) -> AsyncIterator[bytes]:
        try:
            header = pb.WatchRequest.FromString(data).header
            node, group = parts.name(header.node), parts.name(header.group)
        except (DecodeError, PeerError, UnicodeDecodeError) as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error)[:1000])
        who = _identity(context)
        if who not in (None, node):
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, f"this certificate is of {who}")
        if len(self._watches) >= MOST_STREAMS:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many watches")
        watch = _Watch(node, group)
        self._watches[id(watch)] = watch
        try:
            if self._hello:
                watch.put_hello(self._hello)
            if group in self._models:
                watch.put_model(self._models[group])
            while not self._closing.is_set():
                for message in await watch.news():
                    yield message
        finally:
            del self._watches[id(watch)]


class _Watch:
    """One stream: what it has still to say, the newest of each kind."""

    def __init__(self, node: str, group: str) -> None:
        self.node, self.group = node, group
        self._hello = self._model = b""
        self._stirred = asyncio.Event()

    def put_hello(self, data: bytes) -> None:
        self._hello = data
        self._stirred.set()

    def put_model(self, data: bytes) -> None:
        self._model = data
        self._stirred.set()

    def end(self) -> None:
        self._stirred.set()

    async def news(self) -> list[bytes]:
        await self._stirred.wait()
        self._stirred.clear()
        said, self._hello, self._model = [self._hello, self._model], b"", b""
        return [data for data in said if data]


def _identity(context: Any) -> str | None:
    """Whom the certificate names; None without one."""
    names = context.auth_context().get("x509_common_name", ())
    return names[0].decode(errors="replace") if names else None


def _credentials(tls: Tls) -> Any:
    """Our certificate; with a ca, children need one of theirs."""
    ca, key, cert = tls.contents()
    return grpc.ssl_server_credentials([(key, cert)], ca, require_client_auth=ca is not None)
