"""Uplink: the connection to one parent, over gRPC, MQTT or in memory.

It carries bytes and decides nothing: the node decides what is sent again, and when. Every uplink
makes these promises (tests/live/test_transports.py checks them for all):

1. `send` never blocks and never raises for a missing connection: a message that cannot go now is
   lost, or replaced by the newest of its kind. Nothing piles up.
2. Events go to `hear`, from any thread: `Came`; `Opened` each time that the connection opens;
   `Parted` once, with the reason, each time that it closes; `SendRefused` and `Slowed`, where
   the transport knows, for messages that were not taken.
3. No thread dies in silence: a failure inside one is a `Parted`, and it tries again.
4. A message that is too large is refused before it is sent: `send` raises `TooLarge`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from submerge import UsageError
from submerge_proto.wire.codec import Kind

# Messages of jobs wait here, and nothing else does: so they never take the place of a report.

MOST_BYTES = 8 << 20  # bytes that wait for one connection
MOST_WAITING = 4096  # messages that wait for one connection

T = TypeVar("T")


class JobRoom:
    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes, self.used = most_bytes, 0


class JobQueue(Generic[T]):
    """Messages that wait, each with its size. Its owner holds a lock where threads share it."""

    def __init__(self, most_bytes: int = MOST_BYTES, room: JobRoom | None = None) -> None:
        self._most, self._room = most_bytes, JobRoom(most_bytes) if room is None else room
        self._waiting: deque[tuple[T, int]] = deque()
        self._held = self.dropped = 0

    def __len__(self) -> int:
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
        while self._waiting:
            self.take()


class Came(NamedTuple):
    kind: Kind
    data: bytes


class Opened(NamedTuple):
    """The connection is open, or open again."""


class Parted(NamedTuple):
    """The connection is closed. It is tried again without end."""

    why: str


class SendRefused(NamedTuple):
    """The connection is open, and the parent refuses the message: a person has to look."""

    why: str


class Slowed(NamedTuple):
    """The connection is open, and the parent gets too much: it takes the newest one later."""

    why: str


Heard = Came | Opened | Parted | SendRefused | Slowed
Hear = Callable[[Heard], None]


class Uplink(Protocol):
    def open(self, hear: Hear) -> None:
        """Begin to connect and to hand events to `hear`; returns at once."""

    def send(self, kind: Kind, group: str, data: bytes, *, final: bool = False) -> None:
        """Send a join or a report; a `final` one does not replace a running one.

        Messages of jobs ("job") do not replace each other, wait for all others, or are lost.
        """

    def close(self) -> None:
        """Wait a moment for messages that are on their way; then end."""


class TooLarge(UsageError):
    """A message is larger than the transport carries. It was not sent."""

    def __init__(self, kind: Kind, *, size: int, most: int) -> None:
        super().__init__(
            f"a {kind} of {size} bytes is over the limit of {most}: lower rank or oversample,"
            ' or say columns = "i8"'
        )


def check_size(kind: Kind, data: bytes, most: int) -> None:
    """Raise TooLarge for a message of more than `most` bytes."""
    if len(data) > most:
        raise TooLarge(kind, size=len(data), most=most)
