"""HTTP/2 by hand: a client that sends any frames, also those that no library would send.

It follows flow control, since a server ends connections that do not. Everything else is up to
the caller. It answers pings and settings, and reads and drops all responses.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from contextlib import suppress
from typing import Self

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME = 16_384
"""Bytes of a frame, at most."""


class Closed(Exception):
    """The server has ended the connection or the stream."""


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    """Return one frame."""
    return (
        struct.pack(">I", len(content))[1:]
        + bytes((kind, flags))
        + struct.pack(">I", stream)
        + content
    )


def headers_of(path: str, secure: bool) -> bytes:
    """Return the header block of a gRPC call: literals, no table and no Huffman code."""
    pairs = (
        (":method", "POST"),
        (":scheme", "https" if secure else "http"),
        (":path", path),
        (":authority", "root"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    )
    return b"".join(
        bytes((0, len(name))) + name.encode() + bytes((len(value),)) + value.encode()
        for name, value in pairs
    )


def message_head(size: int) -> bytes:
    """Return what gRPC sends before a message of so many bytes."""
    return b"\0" + struct.pack(">I", size)


class Http2:
    """One connection.

    Attributes
    ----------
    closed : bool
        The server has ended it.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.secure = writer.get_extra_info("ssl_object") is not None
        self.closed = False
        self._window, self._initial = 65_535, 65_535
        self._streams: dict[int, int] = {}  # what each may still send
        self._last = -1
        self._changed = asyncio.Event()
        writer.write(PREFACE + frame(SETTINGS, 0, 0))
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def opened(cls, host: str, port: int, tls: ssl.SSLContext | None) -> Self:
        """Connect; the context must offer "h2" by ALPN."""
        name = None if tls is None else host
        return cls(*await asyncio.open_connection(host, port, ssl=tls, server_hostname=name))

    async def close(self) -> None:
        """Hang up."""
        self._task.cancel()
        self._writer.transport.abort()
        with suppress(asyncio.CancelledError):
            await self._task

    async def begin(self, path: str, flags: int = END_HEADERS) -> int:
        """Begin a call; return its stream."""
        self._last += 2
        self._streams[self._last] = self._initial
        await self.write(frame(HEADERS, flags, self._last, headers_of(path, self.secure)))
        return self._last

    async def send(self, stream: int, content: bytes, *, end: bool = False) -> None:
        """Send bytes of a call as the server makes room for them."""
        rest = memoryview(content)
        while rest:
            room = min(FRAME, len(rest), self._window, self._streams.get(stream, 0))
            if stream not in self._streams:
                raise Closed
            if room <= 0:
                await self._wait()
                continue
            self._window -= room
            self._streams[stream] -= room
            last = end and room == len(rest)
            await self.write(frame(DATA, END_STREAM * last, stream, bytes(rest[:room])))
            rest = rest[room:]

    async def ended(self, stream: int) -> None:
        """Wait until the server has ended a call."""
        while stream in self._streams and not self.closed:
            await self._wait()

    async def write(self, data: bytes) -> None:
        """Send frames."""
        if self.closed:
            raise Closed
        self._writer.write(data)
        try:
            await self._writer.drain()
        except OSError as error:
            raise Closed from error

    async def _wait(self) -> None:
        if self.closed:
            raise Closed
        self._changed.clear()
        await self._changed.wait()

    async def _read(self) -> None:
        try:
            while True:
                head = await self._reader.readexactly(9)
                size = int.from_bytes(head[:3], "big")
                content = await self._reader.readexactly(size)
                self._heard(head[3], head[4], int.from_bytes(head[5:], "big"), content)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.closed = True
            self._changed.set()

    def _heard(self, kind: int, flags: int, stream: int, content: bytes) -> None:
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(content), 6):
                key, value = struct.unpack_from(">HI", content, at)
                if key == 4:
                    for each in self._streams:
                        self._streams[each] += value - self._initial
                    self._initial = value
            self._writer.write(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self._writer.write(frame(PING, ACK, 0, content))
        elif kind == WINDOW:
            (more,) = struct.unpack(">I", content)
            if stream == 0:
                self._window += more
            elif stream in self._streams:
                self._streams[stream] += more
        elif kind == RESET or (kind in (HEADERS, DATA) and flags & END_STREAM):
            self._streams.pop(stream, None)
        elif kind == GOAWAY:
            self.closed = True
        self._changed.set()
