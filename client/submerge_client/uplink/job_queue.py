"""JobQueue: messages of jobs that wait for a connection, in bounded memory.

First in, first out. What finds no room is dropped: its sender sends it again until it has arrived.
Messages of jobs wait here, and nothing else does: so they never take the place of a report.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

MOST_BYTES = 8 << 20
"""Bytes that wait for one connection."""

MOST_WAITING = 4096
"""Messages that wait for one connection."""

T = TypeVar("T")


class JobRoom:
    """Bytes that several queues share.

    used : Bytes that wait now, in all of them.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes, self.used = most_bytes, 0


class JobQueue(Generic[T]):
    """Messages that wait, each with its size. Its owner holds a lock where threads share it.

    room : What it shares with other queues.

    dropped : Messages that found no room.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, room: JobRoom | None = None) -> None:
        self._most, self._room = most_bytes, JobRoom(most_bytes) if room is None else room
        self._waiting: deque[tuple[T, int]] = deque()
        self._held = self.dropped = 0

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def put(self, message: T, size: int) -> bool:
        """Let a message wait; return whether there was room."""
        full = self._held + size > self._most or len(self._waiting) >= MOST_WAITING
        if full or self._room.used + size > self._room.most_bytes:
            self.dropped += 1
            return False
        self._waiting.append((message, size))
        self._held += size
        self._room.used += size
        return True

    def take(self) -> T:
        """Return the oldest message; IndexError if none waits."""
        message, size = self._waiting.popleft()
        self._held -= size
        self._room.used -= size
        return message

    def clear(self) -> None:
        """Forget what waits."""
        while self._waiting:
            self.take()
