"""Uplink: the way to one parent, over gRPC, MQTT or in memory.

It carries bytes and decides nothing: what is said again, and when, is the node's business.
What every uplink promises (tests/live/test_transports.py holds all to it):

1. `send` never blocks and never raises for want of a connection: what cannot go now is lost,
   or replaced by the newest of its kind. Nothing piles up.
2. Whatever is heard is handed to `hear`, from any thread: `Came`, `Opened` each time that the
   way is open (again), `Parted` when it is not, saying why, once for each time; `SendRefused` and
   `Slowed`, by transports that can tell, for what was sent in vain.
3. No thread dies in silence: what fails inside one is a `Parted`, and it tries again.
4. What is too large is refused before it is sent: `send` raises `TooLarge`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from submerge import UsageError
from submerge_proto.wire.codec import Kind


class Came(NamedTuple):
    """Bytes from the parent."""

    kind: Kind
    data: bytes


class Opened(NamedTuple):
    """The way is open, or open again."""


class Parted(NamedTuple):
    """The way is closed; it is tried again without end."""

    why: str


class SendRefused(NamedTuple):
    """The way is open, and the other end does not take what was sent: a person has to look."""

    why: str


class Slowed(NamedTuple):
    """The way is open, and the other end has had too much of it: later it takes the newest."""

    why: str


Heard = Came | Opened | Parted | SendRefused | Slowed
Hear = Callable[[Heard], None]


class Uplink(Protocol):
    """The way to one parent."""

    def open(self, hear: Hear) -> None:
        """Begin to connect, and to hand over what is heard; returns at once."""

    def send(self, kind: Kind, group: str, data: bytes, *, final: bool = False) -> None:
        """Send a join or a report; a `final` one does not take a running one's place."""

    def close(self) -> None:
        """Let what is on its way go out, for a moment; then stop hearing."""


class TooLarge(UsageError):
    """A message over what the transport carries; it was not sent."""

    def __init__(self, kind: Kind, *, size: int, most: int) -> None:
        super().__init__(
            f"a {kind} of {size} bytes is over the limit of {most}: lower rank or oversample,"
            ' or say columns = "i8"'
        )


def check_size(kind: Kind, data: bytes, most: int) -> None:
    """Refuse a message that would not arrive, before it is tried."""
    if len(data) > most:
        raise TooLarge(kind, size=len(data), most=most)
