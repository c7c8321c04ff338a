"""Nodes that hear and keep nothing but bytes, as on a real wire and a real disk."""

from __future__ import annotations

from typing import Any

from submerge.protocol.machine import Effect, Event, Keep, Now, Received, Start
from submerge_proto.kept import records
from support.nodes import Host, Table
from support.wire import travelled


class Wired:
    """A node that hears bytes and keeps bytes; `seen` collects what it kept, as it was."""

    def __init__(self, node: Any, seen: list[tuple[Any, Any]]) -> None:
        self._node, self._seen = node, seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def step(self, event: Event, now: Now) -> list[Effect]:
        """Step the node; bytes become records and messages, and records become bytes."""
        match event:
            case Start(kept):
                event = Start(records.unpack_all(kept))
            case Received(message, shared):
                event = Received(travelled(message), shared)
        return [self._kept(effect) for effect in self._node.step(event, now)]

    def _kept(self, effect: Effect) -> Effect:
        if not isinstance(effect, Keep):
            return effect
        packed: dict[Any, Any] = {}
        for key, record in effect.records.items():
            packed[key] = None if record is None else records.pack(key, record)
            if record is not None:
                self._seen.append((key, record))
        return Keep(packed, new_store=effect.new_store)


class WiredTable(Table):
    """A table whose nodes are `Wired`.

    Attributes
    ----------
    seen : list of (key, record)
        Everything that any of them kept.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.seen: list[tuple[Any, Any]] = []
        super().__init__(*args, **kwargs)

    def _seat(self, host: Host, *, start: bool = True) -> Host:
        make = host.make
        host.make = lambda rng: Wired(make(rng), self.seen)
        return super()._seat(host, start=start)
