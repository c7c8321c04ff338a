"""Watches: streams that are open, and what each has still to say: the newest of each kind.

A child that reads slowly skips what has been overtaken, so a stream holds one hello and one
model that wait, at most. Nobody holds more than so many streams.
"""

from __future__ import annotations

import asyncio
from collections import Counter

MOST_STREAMS = 65_536
"""Watches at once; more children than one aggregator serves."""

MOST_EACH = 1024
"""Of one node, or of one connection where there are no names: one for each of its groups."""


class WatchStream:
    """One stream; `who` holds it."""

    def __init__(self, who: str, node: str, group: str) -> None:
        self.who, self.node, self.group = who, node, group
        self._hello = self._model = b""
        self._stirred = asyncio.Event()

    def put_hello(self, data: bytes) -> None:
        """Say a hello, in place of one that waits."""
        self._hello = data
        self._stirred.set()

    def put_model(self, data: bytes) -> None:
        """Say a model, in place of one that waits."""
        self._model = data
        self._stirred.set()

    def end(self) -> None:
        """Wake it: nothing more is said."""
        self._stirred.set()

    async def news(self) -> list[bytes]:
        """Wait for something to say."""
        await self._stirred.wait()
        self._stirred.clear()
        said, self._hello, self._model = [self._hello, self._model], b"", b""
        return [data for data in said if data]


class Watches:
    """All that are open, and what one that comes now has to hear."""

    def __init__(self) -> None:
        self._hello = b""
        self._models: dict[str, bytes] = {}
        self._open: dict[int, WatchStream] = {}
        self._held: Counter[str] = Counter()

    def begin(self, who: str, node: str, group: str) -> WatchStream | None:
        """Return another, which has the newest to say; None if there are too many."""
        if len(self._open) >= MOST_STREAMS or self._held[who] >= MOST_EACH:
            return None
        watch = WatchStream(who, node, group)
        self._open[id(watch)] = watch
        self._held[who] += 1
        if self._hello:
            watch.put_hello(self._hello)
        if group in self._models:
            watch.put_model(self._models[group])
        return watch

    def end(self, watch: WatchStream) -> None:
        """Let go of one."""
        del self._open[id(watch)]
        self._held[watch.who] -= 1
        if not self._held[watch.who]:
            del self._held[watch.who]

    def publish(self, group: str, data: bytes) -> None:
        """Let them know: all of them a hello, "", those of a group its model."""
        if group:
            self._models[group] = data
        else:
            self._hello = data
        for watch in self._open.values():
            if not group:
                watch.put_hello(data)
            elif watch.group == group:
                watch.put_model(data)

    def push(self, node: str, group: str, data: bytes) -> None:
        """Let those of one child know a model again."""
        for watch in self._open.values():
            if (watch.node, watch.group) == (node, group):
                watch.put_model(data)

    def wake(self) -> None:
        """Let all of them see that it is over."""
        for watch in self._open.values():
            watch.end()
