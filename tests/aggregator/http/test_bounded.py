"""The status address: peers that say nothing, or half of it, are hung up on."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

pytest.importorskip("uvicorn")

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from submerge_aggregator.http import serving as bounded
from submerge_aggregator.http.serving import MOST_HEADERS, Serving
from support.patience import PATIENCE_S

LONG = 64 << 20
GET = b"GET /short HTTP/1.1\r\nHost: x\r\n"


async def short(request: Request) -> Response:
    """Answer, once the whole body is there."""
    await request.body()
    return Response(b"yes")


ended: list[bool] = []
"""The long answer is over, one way or the other."""


async def long(_: Request) -> Response:
    """Answer more than sockets hold."""

    async def parts() -> AsyncIterator[bytes]:
        try:
            for _ in range(LONG >> 20):
                yield bytes(1 << 20)
        finally:
            ended.append(True)

    ended.clear()
    return StreamingResponse(parts())


class Visitor(NamedTuple):
    """One connection to the app."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def rest(self) -> bytes:
        """Return what comes until the end, and hang up."""
        got = b""
        with suppress(ConnectionResetError):
            while more := await self.reader.read(1 << 20):
                got += more
        self.writer.close()
        with suppress(ConnectionResetError, BrokenPipeError):
            await self.writer.wait_closed()
        return got


async def connected(place: Any) -> Visitor:
    """Connect."""
    return Visitor(*await asyncio.open_connection(*place, limit=1024))


@pytest.fixture
def hurried(monkeypatch) -> Callable[[Callable[[Any], Awaitable[Any]]], Any]:
    """Run something against an app whose requests have a twentieth of a second."""
    monkeypatch.setattr(bounded, "REQUEST_S", 0.05)

    def run(work: Callable[[Any], Awaitable[Any]]) -> Any:
        async def served() -> Any:
            listener = socket.create_server(("127.0.0.1", 0))
            routes = [Route("/short", short, methods=["GET", "POST"]), Route("/long", long)]
            serving = Serving(Starlette(routes=routes), listener)
            serving.start()
            try:
                return await asyncio.wait_for(work(listener.getsockname()), PATIENCE_S)
            finally:
                await serving.stop()

        return asyncio.run(served())

    return run


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET /sho",
        GET,
        b"POST /short HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf",
        GET + b"\r\n" + GET,
    ],
    ids=["nothing", "half a line", "half of the headers", "half a body", "a second one, by half"],
)
def test_a_request_that_does_not_end_is_hung_up_on(hurried, said):
    """After a time; however much of it has come."""

    async def work(place: Any) -> bytes:
        peer = await connected(place)
        peer.writer.write(said)
        return await peer.rest()

    heard = hurried(work)

    assert (b"yes" in heard) == (said.count(b"GET") == 2)


@pytest.mark.parametrize("step", [1 << 20, 4096, 700], ids=["at once", "in pieces", "in crumbs"])
@pytest.mark.parametrize("before", [b"", GET + b"\r\n", b"BODY"], ids=["first", "next", "body"])
@pytest.mark.parametrize(
    ("lines", "fits"),
    [
        (b"X: " + b"y" * 14_000, True),
        (b"X: " + b"y" * MOST_HEADERS, False),
        (b"a:\r\n" * 9000, False),
    ],
    ids=["long", "too long", "too many"],
)
def test_headers_are_bounded_however_they_arrive(hurried, monkeypatch, step, before, lines, fits):
    """Also those of a request that comes with the one before it."""
    monkeypatch.setattr(bounded, "REQUEST_S", PATIENCE_S)
    if before == b"BODY":
        before = b"POST /short HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n" + bytes(50_000)
    said = before + GET + lines + b"\r\nConnection: close\r\n\r\n"

    async def work(place: Any) -> bytes:
        peer = await connected(place)
        for first in range(0, len(said), step):
            with suppress(ConnectionResetError, BrokenPipeError):
                peer.writer.write(said[first : first + step])
                await peer.writer.drain()
        return await peer.rest()

    heard = hurried(work)

    assert (bool(before) + fits, not fits) == (heard.count(b" 200 "), b" 400 " in heard)


def test_an_answer_that_is_not_read_is_hung_up_on(hurried):
    """It would be held in memory for as long as the peer likes."""

    async def work(place: Any) -> int:
        peer = await connected(place)
        peer.writer.write(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
        while not ended:
            await asyncio.sleep(0.01)
        return len(await peer.rest())

    assert hurried(work) < LONG


def test_one_address_leaves_room_for_others(hurried, monkeypatch):
    """Connections over its share are closed at once; those that it has are answered."""
    monkeypatch.setattr(bounded, "REQUEST_S", PATIENCE_S)
    monkeypatch.setattr(bounded, "MOST_EACH", 3)

    async def work(place: Any) -> tuple[list[bytes], bytes]:
        opened = [await connected(place) for _ in range(3)]
        refused = await (await connected(place)).rest()
        for peer in opened:
            peer.writer.write(GET + b"Connection: close\r\n\r\n")
        return [(await peer.rest())[-3:] for peer in opened], refused

    assert ([b"yes"] * 3, b"") == hurried(work)
