"""Calls under way: calls whose message is still arriving, and how many of them may be.

A message takes memory when it begins to arrive, gRPC does not say how long it will be, and its
sender is still unknown to the rate limit: a sender may begin a thousand and end none. So each
reading counts as the largest message, and only so many are read at a time: over all senders as
many as a budget of bytes has room for, and of one sender an eighth of these. The others wait,
unread, and their number is bounded too. Senders take turns, whatever number of calls each has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

SHARES = 8  # one sender has at most an eighth of the places
LEAST_PLACES = 4  # with messages so large that fewer fit into the budget
COPIES = 2  # a message in memory: as gRPC has received it, and as Python's bytes
GRPC_CALLS = 8  # calls of one kind and group that a child makes at once; and there are two kinds


class ReadingLimits(NamedTuple):
    # bytes of messages that are being read, half of them on streams that stay open
    max_bytes: int = 16 << 20
    max_connections: int = 1200  # connections; a child has one
    groups: int = 16  # groups that are served; a child has a watch of each, and may call for each

    @property
    def call_bytes(self) -> int:
        return self.max_bytes - self.stream_bytes - self.job_bytes

    @property
    def job_bytes(self) -> int:
        return self.max_bytes // 8

    @property
    def stream_bytes(self) -> int:
        return self.max_bytes // 2

    @staticmethod
    def places(room: int) -> tuple[int, int]:
        """Return for how many messages there is room, and for how many of one sender."""
        places = max(LEAST_PLACES, room)
        return places, max(1, places // SHARES)

    @property
    def watches_each(self) -> int:
        """Streams of one sender: one of each group, and those of connections that have died."""
        return 4 + 4 * self.groups

    @property
    def calls_each(self) -> int:
        """Calls of one sender, read or waiting."""
        return 16 + 2 * GRPC_CALLS * self.groups

    @property
    def calls(self) -> int:
        """Calls of all senders, read or waiting: one of each, and many of some."""
        return self.max_connections + 4 * self.calls_each

    @property
    def streams_each(self) -> int:
        """Streams of one connection. Further ones wait at the child."""
        return self.watches_each + self.calls_each


class TooMany(Exception):
    """One sender has begun more calls than any needs, or all together have."""


class CallsUnderWay:
    """The senders being read. For one event loop."""

    def __init__(self, size: int, limits: ReadingLimits, room: int | None = None) -> None:
        self._size, self._limits = size, limits
        room = limits.call_bytes if room is None else room
        self.places, self.places_each = limits.places(room // (COPIES * size))
        self.read = self._begun = 0
        self._senders: dict[str, _Sender] = {}
        self._turns: dict[_Sender, None] = {}  # those with a call that may be read, next one first

    def __len__(self) -> int:
        return len(self._senders)

    @property
    def used(self) -> int:
        """Bytes that the messages being read may come to."""
        return self.read * COPIES * self._size

    @property
    def most(self) -> int:
        return self.places * COPIES * self._size

    @asynccontextmanager
    async def place(self, who: str) -> AsyncIterator[None]:
        """Wait until one more message of a sender may be read, and hold the place."""
        sender = self._senders.get(who) or _Sender()
        if sender.begun >= self._limits.calls_each or self._begun >= self._limits.calls:
            raise TooMany
        self._senders[who] = sender
        sender.begun += 1
        self._begun += 1
        try:
            await self._turn(sender)
            try:
                yield
            finally:
                self._leave(sender)
        finally:
            sender.begun -= 1
            self._begun -= 1
            if not sender.begun:
                del self._senders[who]

    async def _turn(self, sender: _Sender) -> None:
        """Wait for a place, and take it."""
        call = asyncio.get_running_loop().create_future()
        sender.waiting[call] = None
        self._queue(sender)
        try:
            await call
        except asyncio.CancelledError:
            if call.done() and not call.cancelled():  # it got its place at the same moment
                self._leave(sender)
            else:
                sender.waiting.pop(call, None)
                self._queue(sender)
            raise

    def _leave(self, sender: _Sender) -> None:
        sender.read -= 1
        self.read -= 1
        self._queue(sender)

    def _queue(self, sender: _Sender) -> None:
        """Let a sender take turns if it has a call that may be read; give free places away."""
        if not sender.waiting or sender.read >= self.places_each:
            self._turns.pop(sender, None)
        elif sender not in self._turns:
            self._turns[sender] = None
        while self._turns and self.read < self.places:
            turn = next(iter(self._turns))
            del self._turns[turn]
            call = next(iter(turn.waiting))
            del turn.waiting[call]
            if not call.done():  # else its task is about to leave: it was cancelled
                turn.read += 1
                self.read += 1
                call.set_result(None)
            if turn.waiting and turn.read < self.places_each:
                self._turns[turn] = None


class _Sender:
    def __init__(self) -> None:
        self.begun = self.read = 0
        self.waiting: dict[asyncio.Future[None], None] = {}  # the oldest first
