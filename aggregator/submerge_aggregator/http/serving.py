"""Serving: an ASGI app on one socket, in the running event loop, by uvicorn.

The aggregator owns signals and the log. A slow peer delays the end by at most GRACE_S.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
import struct
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import h11
import msgspec
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from submerge import SubmergeError, UsageError
from submerge.aggregator.node import AggregatorNode
from submerge.protocol.machine import Event, Level, Now
from submerge.protocol.messages import DEEPEST
from submerge.protocol.names import is_name
from submerge_aggregator.operators.access import OrderLog
from submerge_aggregator.operators.identify import Denial, Peer
from submerge_aggregator.operators.tls_files import TlsFiles
from submerge_aggregator.server import Server
from submerge_client.logs import say
from submerge_client.uplink.tls import Tls
from submerge_proto.wire import parts

REQUEST_S = 20.0
"""From the first byte of a request, or from the connection, to the end of its answer. The machine
answers within 10 s."""

MOST_OPEN, MOST_EACH = 128, 32
"""Connections in all, and of one address. Further ones are closed at once."""

MOST_HEADERS = 16_384  # bytes of a request's line and headers, however they arrive

PIECE = 1024
"""Bytes that are looked at in one go: h11 bounds headers by what it holds before they are whole."""


class BoundedProtocol(H11Protocol):
    _limit: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._unread = bytearray()

    def connection_made(self, transport: Any) -> None:
        """Begin, if there is room."""
        super().connection_made(transport)
        # The operator's socket has no addresses: it is for its owner alone.
        same = [each for each in self.connections if _address(each) == _address(self)]
        if len(self.connections) > MOST_OPEN or (self.client and len(same) > MOST_EACH):
            transport.abort()
            return
        self._begin()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request; those of the next one wait until this one is answered."""
        self._begin()
        self._unread += data
        while self._unread and not self.transport.is_closing():
            state = self.conn.their_state
            if state not in (h11.IDLE, h11.SEND_BODY):
                break
            size = PIECE if state is h11.IDLE else MOST_HEADERS - PIECE
            piece = bytes(self._unread[:size])
            del self._unread[:size]
            super().data_received(piece)
        if self._unread:
            self.flow.pause_reading()

    def on_response_complete(self) -> None:
        self._end()
        super().on_response_complete()
        if self._unread or (self.cycle is not None and not self.cycle.response_complete):
            self.data_received(b"")  # it had come already

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def _begin(self) -> None:
        if self._limit is None:
            self._limit = self.loop.call_later(REQUEST_S, self.transport.abort)

    def _end(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


def _address(connection: Any) -> str | None:
    return None if connection.client is None else str(connection.client[0])


UCRED = struct.Struct("3i")  # process, user, group


class LocalProtocol(BoundedProtocol):
    """HTTP over a socket; the peer of a request is the user of the process that sends it."""

    def connection_made(self, transport: Any) -> None:
        """Begin, and ask the system who is there."""
        super().connection_made(transport)
        peer = Peer(uid=uid_of(transport.get_extra_info("socket")))
        self.app_state = self.app_state | {"peer": peer}


def uid_of(connection: socket.socket | None) -> int | None:
    """Return the user of the process at the other end of a Unix socket; None if unknown."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None or connection is None or connection.family != socket.AF_UNIX:
        return None
    try:
        _, uid, _ = UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, option, UCRED.size))
    except OSError:
        return None
    return int(uid)


def note_order(server: Server, request: Request, verb: str, **facts: Any) -> None:
    """Log and record an order that was carried out, with who gave it."""
    server.order_log.note(request.scope["operator"], verb, **facts)


ANSWER_S = 10.0  # Longest wait for the machine. It takes longer only if its disk hangs.
GRACE_S = 2  # for requests under way when it closes; uvicorn takes whole seconds
MOST_AT_ONCE = 64  # Connections and requests. One more is answered with 503.


AGAIN_S, MOST_KINDS = 60.0, 100
"""Each kind of event loop error is logged once a minute: without free files there are 2000 a
second."""


class Busy(SubmergeError):
    """The machine cannot answer now."""


class Serving:
    """An app and the socket that it answers on, which listens already; `stop` closes it."""

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        protocol: Callable[..., asyncio.Protocol] = LocalProtocol,
    ) -> None:
        self.listener = listener
        config = uvicorn.Config(
            app,
            http=cast("type[asyncio.Protocol]", protocol),
            h11_max_incomplete_event_size=MOST_HEADERS - PIECE,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_AT_ONCE,
            backlog=MOST_AT_ONCE,
            timeout_graceful_shutdown=GRACE_S,
        )
        _hear_uvicorn()
        self._server = _Unsignalled(config)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self.listener]))

    async def stop(self) -> None:
        """Let answers under way go out, then close."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self.listener.close()


async def ask(
    server: Server, question: Callable[[AggregatorNode, Now], Any], event: Event | None = None
) -> Any:
    """Ask the machine, with a time limit; raises Busy if it is starting, stopping, or stuck."""
    if not server.ready:
        raise Busy("the aggregator is starting or stopping: try again")
    try:
        async with asyncio.timeout(ANSWER_S):
            return await server.ask(question, event)
    except TimeoutError:
        late = "; the change may still happen" if event is not None else ""
        raise Busy(f"no answer within {ANSWER_S:g} s: the store's disk may hang{late}") from None


def as_json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


async def unknown_path(request: Request, error: Exception) -> Response:
    return as_json(
        {"error": f"{request.method} {request.scope['path']}: {getattr(error, 'detail', error)}"},
        getattr(error, "status_code", 404),
    )


class _Unsignalled(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them to the aggregator."""
        yield


class _Ours(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            say("request failed", level="error", why=f"{type(error).__name__}: {error}")
        else:
            # Bytes that are no HTTP. At debug level, so that a port scan does not fill the log.
            say("http", level="debug", why=record.getMessage())


class Complaints(logging.Handler):
    """Logs what the event loop reports, each kind once a minute."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._again: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record, unless its like was logged within a minute."""
        what = record.getMessage().partition("\n")[0]
        if record.created < self._again.get(what, 0.0):
            return
        if len(self._again) >= MOST_KINDS:
            self._again.clear()
        self._again[what] = record.created + AGAIN_S
        trace = {}
        if record.exc_info:
            trace["trace"] = "".join(traceback.format_exception(record.exc_info[1]))
        level: Level = "error" if record.levelno >= logging.ERROR else "warning"
        say("event loop", level=level, why=what, **trace)


def _hear_uvicorn() -> None:
    for name, handler in (("uvicorn.error", _Ours(logging.WARNING)), ("asyncio", Complaints())):
        log = logging.getLogger(name)
        log.handlers[:] = [handler]
        log.setLevel(logging.WARNING)
        log.propagate = False


def path_names(request: Request, *keys: str) -> tuple[str, ...]:
    """Return names in the path; raises PeerError if one is no valid name."""
    return tuple(parts.name(request.path_params[key]) for key in keys)


def query_names(request: Request, *keys: str) -> tuple[str | None, ...]:
    """Return names in the query; None for those left out."""
    given = (request.query_params.get(key) for key in keys)
    return tuple(None if each is None else parts.name(each) for each in given)


async def body_of(request: Request, what: str, most: int) -> bytes:
    """Return the body of a request; UsageError if it is too large."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > most:
            raise UsageError(f"expected {what} of at most {most:,} bytes, got more")
    return bytes(data)


def route_of(
    server: Server, path: str, question: Callable[[AggregatorNode, Now, Request], Any]
) -> Route:
    async def answer(request: Request) -> Response:
        return as_json(await ask(server, lambda node, now: question(node, now, request)))

    return Route(path, answer, methods=["GET"])


def flag(request: Request, key: str) -> bool:
    """Return whether a flag in the query is on; raises UsageError if it is neither 0 nor 1."""
    given = request.query_params.get(key, "0")
    if given not in ("0", "1"):
        raise UsageError(f"{key} is 0 or 1, got {given!r}")
    return given == "1"


def whole(request: Request, key: str, default: int) -> int:
    """Return a whole number in the query; raises UsageError if it is none, or below 0."""
    given = request.query_params.get(key)
    if given is None:
        return default
    if not (given.isascii() and given.isdecimal() and len(given) <= 18):
        raise UsageError(f"{key} is a whole number of at least 0, got {given!r}")
    return int(given)


def moment(request: Request, key: str) -> float:
    """Return a time in the query, in Unix seconds; infinite if it is left out."""
    given = request.query_params.get(key, "inf")
    try:
        found = float(given)
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise UsageError(f"{key} is a time in Unix seconds, got {given!r}")
    return found


def tree_path(request: Request) -> tuple[str, ...]:
    """Return the names of nodes below each other in the query's `path`; none for this one."""
    text = request.query_params.get("path", "")
    path = tuple(text.split("/")) if text else ()
    if len(path) > DEEPEST or not all(map(is_name, path)):
        raise UsageError(f"a path is like site-1/room-2, of {DEEPEST} names at most, got {text!r}")
    return path


# NetworkProtocol, TlsProtocol: connections of operators over the network.
#
# Uvicorn would make the handshake itself, and report of one that fails neither that it did nor from
# where. Here it is a step of its own: bounded in time, in number, and for one address; and counted.

HANDSHAKE_S = 10.0

MOST_HANDSHAKES, MOST_HANDSHAKES_EACH = 64, 16
"""Handshakes under way, in all and of one address. Further connections are closed at once."""


class NetworkProtocol(BoundedProtocol):
    """HTTP with one operator; requests come with the address, and the certificate if any."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        shown = transport.get_extra_info("peercert") or None
        peer = Peer(address=address_of(transport), certificate=shown)
        self.app_state = self.app_state | {"peer": peer}


class TlsProtocol(asyncio.Protocol):
    """A connection until its handshake is over; then `NetworkProtocol` has it.

    failed : Called with the address and the reason of a handshake that failed.
    under_way : The address of each connection in its handshake; shared by all of a server.
    """

    def __init__(
        self,
        context: Callable[[], ssl.SSLContext],
        failed: Callable[[str, str], None],
        under_way: dict[TlsProtocol, str],
        **server: Any,
    ) -> None:
        self._context, self._failed, self._under_way = context, failed, under_way
        self._server = server
        self._early = bytearray()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin the handshake, if there is room."""
        address = address_of(transport)
        same = sum(each == address for each in self._under_way.values())
        if len(self._under_way) >= MOST_HANDSHAKES or same >= MOST_HANDSHAKES_EACH:
            transport.abort()
            return
        self._under_way[self] = address
        self._task = asyncio.get_running_loop().create_task(self._begin(transport, address))

    def data_received(self, data: bytes) -> None:
        """Keep what comes with the end of the handshake; reading stops until it is passed on."""
        self._early += data

    async def _begin(self, transport: Any, address: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            secure = await loop.start_tls(
                transport,
                self,
                self._context(),
                server_side=True,
                ssl_handshake_timeout=HANDSHAKE_S,
            )
        except OSError as error:
            # One that hung up was no attempt: a check whether the port is open does that.
            if not isinstance(error, ConnectionResetError | BrokenPipeError):
                self._failed(address, _why(error))
            return
        finally:
            self._under_way.pop(self, None)
        if secure is None or secure.is_closing():
            return
        inner = NetworkProtocol(**self._server)
        secure.set_protocol(inner)
        inner.connection_made(secure)
        if self._early and not secure.is_closing():
            inner.data_received(bytes(self._early))


def protocol_of(tls: Tls | None, log: OrderLog) -> Callable[..., asyncio.Protocol]:
    """Return how connections over the network are served; a failed handshake is counted."""
    if tls is None:
        return NetworkProtocol

    def failed(address: str, why: str) -> None:
        log.deny(Denial(403, "handshake", why), address, "handshake")

    return partial(TlsProtocol, TlsFiles(tls).current, failed, {})


def address_of(transport: Any) -> str:
    """Return the address at the other end, without the port."""
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) and peer else "unknown"


def _why(error: OSError) -> str:
    said = getattr(error, "verify_message", "") or getattr(error, "reason", "")
    return str(said or error or type(error).__name__)
