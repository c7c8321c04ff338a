"""Downlink: the way to the children of one aggregator, over gRPC, MQTT or in memory.

It carries bytes and decides nothing. What every downlink promises (tests/live/
test_transports.py holds all to it):

1. What a child sends arrives as a `Inbound`, on the event loop; each letter is answered or
   refused once, or never, and a child that waits in vain asks again.
2. `publish` reaches every child, those that connect later included: the newest hello, and the
   newest model of each group, and nothing older after it.
3. A letter larger than the limit is refused before it is read as anything, and counted.
4. A child that does not listen costs bounded memory, and holds up nobody else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from submerge_proto.wire.codec import Kind

Refusal = Literal["foreign", "denied", "busy", "throttled"]
"""Bytes that mean nothing here; a sender who is not who it says; not now; too much of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Inbound:
    """What a child sent.

    Attributes
    ----------
    node : str or None
        Who the transport says that it is from (a certificate, a topic); None where it cannot
        say. What the bytes say must agree.
    shared : bool
        It came by a way that other aggregators listen on, too.
    answer : callable
        Sends bytes of `kind` back to the child. For the event loop's thread.
    refuse : callable
        Tells the child why there is no answer, where the transport can, and of which kind that
        refusal is. Likewise.
    peer : str
        The connection's other end, where the transport cannot say who that is.
    """

    kind: Kind
    data: bytes
    node: str | None
    shared: bool
    answer: Callable[[Kind, bytes], None]
    refuse: Callable[[str, Refusal], None]
    peer: str = ""

    @property
    def who(self) -> str:
        """Whom it counts against, before it is read."""
        return self.peer if self.node is None else self.node


Take = Callable[[Inbound], None]

Admits = Callable[[str, int], bool]
"""Whether somebody may say so many bytes more now; asked once for each message."""


def everybody(_: str, __: int) -> bool:
    """Let all come in, whatever they say."""
    return True


class Downlink(Protocol):
    """The way to the children.

    Attributes
    ----------
    reachable : bool or None
        Whether the broker between can be reached; None where there is none.
    """

    reachable: bool | None

    async def open(self, take: Take) -> None:
        """Begin to hand over letters. A place that is taken is a `UsageError`."""

    def publish(self, group: str, data: bytes) -> None:
        """Let every child of a group know the newest model; of all groups, "", a hello."""

    def push(self, node: str, group: str, data: bytes) -> None:
        """Let one child know the newest model, again."""

    async def close(self) -> None:
        """Let answers that are on their way go out; then stop."""
