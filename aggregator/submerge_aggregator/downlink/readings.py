"""Calls under way: calls whose message is still arriving, and how many of them may be.

A message takes memory when it begins to arrive, and its sender is still unknown to the rate
limit: a sender may begin a thousand and end none. So only a few messages of a sender are read at
a time. Its others wait, unread, which costs next to nothing; their number is bounded too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

MOST_READ = 16
"""Messages of one sender that are read at once. A hostile sender can make each
take the limit on a message in memory."""

MOST_BEGUN = 1024
"""Calls of one sender that wait to be read: of an aggregator, one for each of its groups."""


class TooMany(Exception):
    """One sender has begun more calls than any needs."""


class CallsUnderWay:
    """The senders being read. For one event loop."""

    def __init__(self) -> None:
        self._senders: dict[str, _Sender] = {}

    def __len__(self) -> int:
        """Return how many senders are being read."""
        return len(self._senders)

    @asynccontextmanager
    async def place(self, who: str) -> AsyncIterator[None]:
        """Wait until one more message of a sender may be read, and hold the place.

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
