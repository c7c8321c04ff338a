"""Readings: calls whose message is still on its way, and how many of them may be.

A message takes its room when it begins to come in, and nobody knows it yet: no pace holds who
begins a thousand and ends none. So a sender has a few of them read at a time. Its others wait,
unread, which costs next to nothing; of those, too, there are only so many.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

MOST_READ = 16
"""Messages of one sender that are read at once. Raising it costs as many times the limit on a
message in memory, for each sender that means ill."""

MOST_BEGUN = 1024
"""Calls of one sender that wait to be read: of an aggregator, one for each of its groups."""


class TooMany(Exception):
    """One sender has begun more calls than anybody needs."""


class CallsUnderWay:
    """Who is being read. For one event loop."""

    def __init__(self) -> None:
        self._senders: dict[str, _Sender] = {}

    def __len__(self) -> int:
        """How many senders are being read."""
        return len(self._senders)

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """Wait until one more of somebody's may be read, and hold the place.

        Raises
        ------
        TooMany
            If too many wait already.
        """
        sender = self._senders.setdefault(who, _Sender())
        if sender.begun >= MOST_BEGUN:
            raise TooMany
        sender.begun += 1
        try:
            async with sender.places:
                yield
        finally:
            sender.begun -= 1
            if not sender.begun:
                del self._senders[who]


class _Sender:
    def __init__(self) -> None:
        self.begun = 0
        self.places = asyncio.Semaphore(MOST_READ)
