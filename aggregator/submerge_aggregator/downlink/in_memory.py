"""InMemory: the way down inside one process; see `submerge_client.uplink.in_memory`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from submerge_aggregator.downlink import Inbound, Take
from submerge_aggregator.refusals import Refusals
from submerge_client.config.sizes import GRPC_LIMIT
from submerge_client.uplink.in_memory import InMemoryUplink as Child
from submerge_client.uplink.in_memory import Memory
from submerge_proto.wire.codec import Kind


class InMemoryDownlink:
    reachable: bool | None = None  # there is no broker between
    reading = None  # messages come whole

    def __init__(
        self, memory: Memory, *, limit: int = GRPC_LIMIT, refusals: Refusals | None = None
    ) -> None:
        self._memory, self._limit = memory, limit
        self._take: Take = lambda _: None
        self._newest: dict[str, bytes] = {}
        self._refusals = Refusals() if refusals is None else refusals

    async def open(self, take: Take) -> None:
        self._take, self._loop = take, asyncio.get_running_loop()
        self._memory.listen(self)

    def publish(self, group: str, data: bytes) -> None:
        if len(data) > self._limit:
            return
        self._newest[group] = data
        for child in self._memory.children():
            if group in ("", *child.groups):
                child.hear("watch", data)

    def push(self, node: str, group: str, kind: Kind, data: bytes) -> None:
        if len(data) > self._limit:
            return
        for child in self._memory.children():
            if child.node == node:
                child.hear(kind, data)

    async def close(self) -> None:
        """Stop listening; answers have gone out when they were given."""
        self._memory.leave(self)

    # What children call, in `soon` from any thread: it is the `Parent` of the memory that they
    # share with it.
    def soon(self, what: Callable[[], None], *, after_s: float = 0.0) -> None:
        if after_s:
            self._loop.call_soon_threadsafe(self._loop.call_later, after_s, what)
        else:
            self._loop.call_soon_threadsafe(what)

    def take(self, child: Child, kind: Kind, data: bytes) -> None:
        if len(data) > self._limit:
            why = f"{len(data)} bytes, expected at most {self._limit}"
            self._refusals.count("oversize", child.node, why=why)
        else:
            # A refusal has no way back: a child gets answers, and notice of a closed way. A job's
            # messages need no answer of their own.
            answer = _unanswered if kind == "job" else child.hear
            self._take(Inbound(kind, data, child.node, False, answer, _unanswered))

    def newest(self, groups: Sequence[str]) -> list[bytes]:
        """Return the hello and the models of some groups, as far as there are any."""
        return [self._newest[group] for group in ("", *groups) if group in self._newest]


def _unanswered(*_: object) -> None:
    """Send nothing back."""
