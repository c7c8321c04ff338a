"""Floods: what one kit, or none, can send to a root that speaks gRPC, for as long as it likes.

Each flood keeps a number of connections busy, and opens another one when the root ends one.
`python tests/support/floods.py NAME HOST PORT CONNECTIONS [KIT...]` runs one until it is killed:
in a process of its own, it takes nothing from the event loop of whoever measures.
"""

from __future__ import annotations

import asyncio
import itertools
import ssl
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from submerge.protocol.messages import Incarnation, Stamp
from submerge_client.uplink.over_grpc import SERVICE
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import parts
from support.http2 import PING, RESET, SETTINGS, Closed, Http2, frame, message_head

LARGE = 4 << 20
"""Bytes of a message that is garbage."""

REPORT, REPORTS, JOIN, WATCH = (
    f"/{SERVICE}/{name}" for name in ("Report", "Reports", "Join", "Watch")
)
AGAIN_S = 0.02
"""Before a connection that has ended is opened again."""

Flood = Callable[["Target"], Awaitable[None]]


class Target:
    """A root, as the flooder reaches it: address, and the kits that it has."""

    def __init__(self, host: str, port: int, kits: Sequence[Path] = ()) -> None:
        self.host, self.port, self.nodes = host, port, [kit.stem for kit in kits]
        self._contexts = [_context(kit) for kit in kits]
        self._numbers = itertools.count()

    async def connection(self) -> tuple[Http2, str]:
        """Connect with the next kit; return the connection and the kit's name."""
        number = next(self._numbers)
        if not self._contexts:
            return await Http2.opened(self.host, self.port, None), f"flood-{number}"
        which = number % len(self._contexts)
        return await Http2.opened(self.host, self.port, self._contexts[which]), self.nodes[which]


def _context(kit: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=kit)
    context.load_cert_chain(kit)
    context.set_alpn_protocols(["h2"])
    return context


def over_http2(work: Callable[[Http2, str], Awaitable[None]]) -> Flood:
    """Do something with a connection, then with another one, without end."""

    async def flood(target: Target) -> None:
        while True:
            with suppress(OSError, Closed, asyncio.IncompleteReadError):
                connection, node = await target.connection()
                try:
                    await work(connection, node)
                finally:
                    await connection.close()
            await asyncio.sleep(AGAIN_S)

    return flood


def over_tcp(said: bytes, then: bytes, every_s: float) -> Flood:
    """Say something on a plain connection, and more of it now and then."""

    async def flood(target: Target) -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(target.host, target.port)
                writer.write(said)
                ended = asyncio.create_task(reader.read(-1))
                while not ended.done():
                    await asyncio.wait((ended,), timeout=every_s)
                    writer.write(then)
                writer.close()
            await asyncio.sleep(AGAIN_S)

    return flood


async def garbage(connection: Http2, _: str) -> None:
    """Send 4 MiB, wait for what comes of it, and send them again."""
    while True:
        with suppress(Closed):
            stream = await connection.begin(REPORT)
            await connection.send(stream, message_head(LARGE) + bytes(LARGE), end=True)
            await connection.ended(stream)
        if connection.closed:
            return


async def many_calls(connection: Http2, node: str) -> None:
    """Do that in 64 calls at once."""
    async with asyncio.TaskGroup() as group:
        for _ in range(64):
            group.create_task(garbage(connection, node))


async def fitting(connection: Http2, _: str) -> None:
    """Send messages of 64 KiB, 64 at a time: garbage, but within the limit."""
    size = 65_536

    async def one() -> None:
        while not connection.closed:
            with suppress(Closed):
                stream = await connection.begin(REPORT)
                await connection.send(stream, message_head(size) + bytes(size), end=True)
                await connection.ended(stream)

    async with asyncio.TaskGroup() as group:
        for _ in range(64):
            group.create_task(one())


async def slow(connection: Http2, _: str) -> None:
    """Begin 64 messages of 128 KiB, send all but the last bytes, and these one by one."""
    size = 131_072

    async def one() -> None:
        while not connection.closed:
            with suppress(Closed):
                stream = await connection.begin(REPORT)
                await connection.send(stream, message_head(size) + bytes(size - 4096))
                while True:
                    await asyncio.sleep(1.0)
                    await connection.send(stream, b"\0")

    async with asyncio.TaskGroup() as group:
        for _ in range(64):
            group.create_task(one())


async def unread(connection: Http2, _: str) -> None:
    """Begin 2000 calls, and fill the window of each without ending a message."""
    size = 131_072
    streams = []
    for _ in range(2000):
        streams.append(await connection.begin(REPORT))

    async def fill(stream: int) -> None:
        with suppress(Closed):
            await connection.send(stream, message_head(size) + bytes(size - 1))

    async with asyncio.TaskGroup() as group:
        for stream in streams:
            group.create_task(fill(stream))
    while not connection.closed:
        await asyncio.sleep(1.0)


async def headers_only(connection: Http2, _: str) -> None:
    """Begin calls without end, and say nothing in them."""
    for count in itertools.count():
        await connection.begin(REPORT)
        if count % 100 == 99:
            await asyncio.sleep(0.1)


async def half_headers(connection: Http2, _: str) -> None:
    """Begin headers that never end."""
    await connection.begin(REPORT, flags=0)
    while not connection.closed:
        await asyncio.sleep(1.0)


async def idle(connection: Http2, _: str) -> None:
    """Connect, and stay."""
    while not connection.closed:
        await asyncio.sleep(1.0)


async def pings(connection: Http2, _: str) -> None:
    """Ping as fast as the line takes them."""
    while True:
        await connection.write(frame(PING, 0, 0, bytes(8)) * 100)
        await asyncio.sleep(0)


async def settings(connection: Http2, _: str) -> None:
    """Send settings as fast as the line takes them: each is to be acknowledged."""
    while True:
        await connection.write(frame(SETTINGS, 0, 0) * 100)
        await asyncio.sleep(0)


async def resets(connection: Http2, _: str) -> None:
    """Begin calls and take each back at once (CVE-2023-44487)."""
    while True:
        stream = await connection.begin(REPORT)
        await connection.write(frame(RESET, 0, stream, bytes(4)))
        await asyncio.sleep(0)


async def watches(connection: Http2, node: str) -> None:
    """Open watches by the hundred, and read nothing else."""
    header = parts.header(Stamp(node, "room", Incarnation(0, 0), 0))
    request = pb.WatchRequest(header=header).SerializeToString()
    for _ in range(1500):
        stream = await connection.begin(WATCH)
        await connection.send(stream, message_head(len(request)) + request, end=True)
    while not connection.closed:
        await asyncio.sleep(1.0)


async def stalled_streams(connection: Http2, node: str) -> None:
    """Have streams of reports kept open by an answer each, and end no other report on them."""
    header = parts.header(Stamp(node, "room", Incarnation(1, 1), 1))
    report = pb.ReportRequest(header=header).SerializeToString()  # answered: it has no fingerprint
    size = 65_536

    async def one() -> None:
        with suppress(Closed):
            stream = await connection.begin(REPORTS)
            await connection.send(stream, message_head(len(report)) + report)
            await asyncio.sleep(1.0)
            await connection.send(stream, message_head(size) + bytes(size - 1))
            await connection.ended(stream)

    while not connection.closed:
        async with asyncio.TaskGroup() as group:
            for _ in range(64):
                group.create_task(one())


GET = b"GET /metrics HTTP/1.1\r\nHost: root\r\n"

FLOODS: dict[str, Flood] = {
    **{
        work.__name__: over_http2(work)
        for work in (
            *(garbage, many_calls, fitting, slow, unread, headers_only, half_headers),
            *(idle, pings, settings, resets, watches, stalled_streams),
        )
    },
    "no_handshake": over_tcp(b"", b"", 1.0),
    "http_silent": over_tcp(b"", b"", 1.0),
    "http_slow": over_tcp(GET, b"X: y\r\n", 1.0),
    "http_gets": over_tcp((GET + b"\r\n") * 100, (GET + b"\r\n") * 100, 0.1),
    "http_body": over_tcp(GET + b"Content-Length: 99999999\r\n\r\n", bytes(65536), 0.01),
}
"""By name. Those that begin with "http" are for the status address."""


async def run(name: str, target: Target, connections: int) -> None:
    """Run a flood on so many connections, without end."""
    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(FLOODS[name](target))


if __name__ == "__main__":
    NAME, HOST, PORT, CONNECTIONS, *KITS = sys.argv[1:]
    asyncio.run(run(NAME, Target(HOST, int(PORT), [Path(kit) for kit in KITS]), int(CONNECTIONS)))
