"""Memory: where a parent and its children meet inside one process, for embedding and for tests.

    meeting = hub("site")                       # the same for all who say memory://site
    uplink = meeting.uplink("pump-3", ["press"])
    meeting.cut("pump-3"), meeting.heal("pump-3"), meeting.drop("pump-3", "answer")

Bytes go as they would over a network: the newest of each kind and group waits while there is
no way, and what is too large is refused. Nobody has a thread: a child hears on its parent's
event loop, so its `hear` must not block, as that of an agent does not. The parent's side is
`submerge_aggregator.downlink.in_memory`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol
from weakref import WeakValueDictionary

from submerge import UsageError
from submerge_client.config.sizes import GRPC_LIMIT
from submerge_client.uplink import Came, Hear, Heard, Opened, Parted, check_size
from submerge_proto.wire.codec import Kind

AGAIN_S = 0.5
"""After a `hear` that raised, its way stays closed for so long."""


class Parent(Protocol):
    """What children need of whoever listens."""

    def soon(self, what: Callable[[], None], *, after_s: float = 0.0) -> None:
        """Call on its event loop, from any thread; a RuntimeError if that loop has ended."""

    def take(self, child: InMemoryUplink, kind: Kind, data: bytes) -> None:
        """Take what a child sent; on the loop."""

    def newest(self, groups: Sequence[str]) -> list[bytes]:
        """Return what a child that has just come is told."""


class Memory:
    """A place to meet, for one parent at a time.

    Parameters
    ----------
    name : str
        For what people read.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._parent: Parent | None = None
        self._children: list[InMemoryUplink] = []
        self._cut: set[str] = set()
        self._drops: Counter[tuple[str, Kind]] = Counter()

    def uplink(
        self, node: str, groups: Sequence[str], *, limit: int = GRPC_LIMIT
    ) -> InMemoryUplink:
        """Return the way up for a node, not open yet."""
        return InMemoryUplink(self, node, groups, limit)

    # -- for tests ---------------------------------------------------------------

    def cut(self, node: str) -> None:
        """Let nothing through from a node or to it."""
        with self._lock:
            self._cut.add(node)
        self._stir_all()

    def heal(self, node: str) -> None:
        """Let everything through again."""
        with self._lock:
            self._cut.discard(node)
        self._stir_all()

    def drop(self, node: str, kind: Kind, times: int = 1) -> None:
        """Lose the next so many messages of a kind, from a node or to it."""
        with self._lock:
            self._drops[node, kind] += times

    # -- for both ends -----------------------------------------------------------

    def listen(self, parent: Parent) -> None:
        """Be whom all children speak to.

        Raises
        ------
        UsageError
            If somebody is already.
        """
        with self._lock:
            if self._parent is not None:
                raise UsageError(
                    f"expected nobody to listen on memory://{self.name} yet, but somebody does:"
                    " close that one, or take another name"
                )
            self._parent = parent
        self._stir_all()

    def leave(self, parent: Parent) -> None:
        """Listen no more."""
        with self._lock:
            if self._parent is not parent:
                return
            self._parent = None
        self._stir_all()

    def children(self) -> list[InMemoryUplink]:
        """Return those that are open."""
        with self._lock:
            return list(self._children)

    def parent_of(self, node: str) -> Parent | str:
        """Return who listens to a node; if nobody, why."""
        with self._lock:
            if node in self._cut:
                return f"memory://{self.name} is cut for {node}"
            return self._parent or f"nobody listens on memory://{self.name}"

    def loses(self, node: str, kind: Kind) -> bool:
        """Return whether a message is to be lost, once for each that is."""
        with self._lock:
            if not self._drops[node, kind]:
                return False
            self._drops[node, kind] -= 1
            return True

    def join(self, child: InMemoryUplink) -> None:
        """Let a child in."""
        with self._lock:
            self._children.append(child)
        self.stir(child)

    def part(self, child: InMemoryUplink) -> None:
        """Let a child go."""
        with self._lock:
            if child in self._children:
                self._children.remove(child)

    def stir(self, child: InMemoryUplink, *, after_s: float = 0.0) -> None:
        """Let a child look how things are, on the loop if there is one."""
        with self._lock:
            parent = self._parent
        if parent is None:
            child.look(None)
            return
        try:
            parent.soon(partial(child.look, parent), after_s=after_s)
        except RuntimeError:  # its loop has ended, and it did not say so
            self.leave(parent)

    def _stir_all(self) -> None:
        for child in self.children():
            self.stir(child)


class InMemoryUplink:
    """An `Uplink` in memory; `Memory.uplink` makes one.

    Attributes
    ----------
    failures : int
        Times that `hear` raised something.
    """

    def __init__(self, memory: Memory, node: str, groups: Sequence[str], limit: int) -> None:
        self.node, self.groups = node, tuple(groups)
        self.failures = 0
        self._memory, self._limit = memory, limit
        self._hear: Hear = lambda _: None
        self._lock = threading.Lock()
        self._telling = threading.RLock()  # who tells, decides what there is to tell
        self._waiting: dict[tuple[Kind, str, bytes], bytes] = {}
        self._stirred = self._open = self._closed = False
        self._why: str | None = None

    def open(self, hear: Hear) -> None:
        """Come to the meeting."""
        self._hear = hear
        self._memory.join(self)

    def send(self, kind: Kind, group: str, data: bytes, *, final: bool = False) -> None:
        """Send a join or a report, or keep it, if it is the newest, until there is a way."""
        check_size(kind, data, self._limit)
        with self._lock:
            if self._closed:
                return
            self._waiting[kind, group, data if final else b""] = data
            stirred, self._stirred = self._stirred, True
        if not stirred:
            self._memory.stir(self)

    def close(self) -> None:
        """Hear no more; what was sent still goes out."""
        with self._lock:
            self._closed = True
        self._memory.part(self)

    # -- for the other end, on its loop --------------------------------------------

    def look(self, parent: Parent | None) -> None:
        """See whether there is a way, say so if that is new, and send what waits.

        On the loop of `parent`; on any thread if there is none. A parent that has come since
        lets us look again.
        """
        with self._telling:
            self._stirred = False
            found = self._memory.parent_of(self.node)
            if isinstance(found, str):
                self._part(found)
            elif found is parent:
                self._greet(found)
                self._flush(found)

    def hear(self, kind: Kind, data: bytes) -> None:
        """Hear from the parent, if the way is open."""
        with self._telling:
            cut = isinstance(self._memory.parent_of(self.node), str)
            if self._open and not cut and not self._memory.loses(self.node, kind):
                self._hand(Came(kind, data))

    def _greet(self, parent: Parent) -> None:
        if self._open or self._closed:
            return
        self._open, self._why = True, None
        self._hand(Opened())
        for data in parent.newest(self.groups):
            self.hear("watch", data)

    def _flush(self, parent: Parent) -> None:
        if not self._open:
            return
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for (kind, *_), data in waiting.items():
            if not self._memory.loses(self.node, kind):
                parent.take(self, kind, data)

    def _part(self, why: str) -> None:
        reported, self._why, self._open = self._why == why, why, False
        if not reported:
            self._hand(Parted(why))

    def _hand(self, heard: Heard) -> None:
        """Let `hear` know; what it raises closes the way, for a moment."""
        if self._closed:
            return
        try:
            self._hear(heard)
        except Exception as error:  # whoever else is on this loop must not suffer for it
            self.failures += 1
            if not isinstance(heard, Parted):
                self._part(f"{type(error).__name__}: {error}")
                self._memory.stir(self, after_s=AGAIN_S)


_hubs: WeakValueDictionary[str, Memory] = WeakValueDictionary()
_hubs_lock = threading.Lock()


def hub(name: str) -> Memory:
    """Return the place that `memory://name` means, the same for all who ask while it is in use."""
    with _hubs_lock:
        found = _hubs.get(name)
        if found is None:
            found = _hubs[name] = Memory(name)
        return found
