"""Changes: what open pages hear while they are open: that something has changed, and what.

A page holds one stream of server-sent events. An event has a short text for each thing that is
shown; a page asks again for those that differ from what it has. So one that was away, or left
open while the aggregator began again, is right after its next event. All pages together have one
who looks, and only while there is a page.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import msgspec

from submerge_aggregator.page.calls import AdminCalls, CallRefused

LOOK_S = 2.0
"""Between two looks."""

STREAM_S = 15.0
"""A stream ends after so long, and the browser asks for another: one that has gone without a word
is forgotten then. It is shorter than any request may take."""

RETRY_MS = 1000
"""After how long a browser asks for another stream."""

MOST_STREAMS = 24
"""Browsers that listen. There has to be room for their questions, too: one address, as that of a
proxy, has 32 connections."""


class Changes:
    """Looks for changes while there are listeners.

    stamp : Returns what else is shown, as texts by name.
    """

    def __init__(self, calls: AdminCalls, stamp: Callable[[], dict[str, str]]) -> None:
        self._calls, self._stamp = calls, stamp
        self._listeners = 0
        self._marks: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._is_over = False

    @property
    def is_full(self) -> bool:
        """Whether no further page can listen."""
        return self._listeners >= MOST_STREAMS

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield events for one page, for `STREAM_S`."""
        loop = asyncio.get_running_loop()
        until, seen = loop.time() + STREAM_S, dict[str, str]()
        self._listeners += 1
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            yield f"retry: {RETRY_MS}\n\n".encode()
            while not self._is_over and (left := until - loop.time()) > 0:
                changed = self._changed
                if self._marks != seen:
                    seen = dict(self._marks)
                    yield b"event: marks\ndata: " + msgspec.json.encode(seen) + b"\n\n"
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), left)
        finally:
            self._listeners -= 1

    def end(self) -> None:
        """End every stream: nothing is served any more, and the end waits for no open page."""
        self._is_over = True
        if self._looking is not None:
            self._looking.cancel()
        self._wake()

    def _wake(self) -> None:
        """Wake those who wait; the next ones wait for another change."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _look(self) -> None:
        """Look while a page listens, and once more."""
        while True:
            marks = dict(self._stamp())
            try:
                marks["alarms"] = msgspec.json.decode(await self._calls.get("/alarms/mark"))
                marks["link"] = "up"
            except CallRefused as error:
                marks["link"] = str(error)
            self._marks = marks
            self._wake()
            if not self._listeners:
                return
            await asyncio.sleep(LOOK_S)
