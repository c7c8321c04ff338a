"""Memory: connects a parent and its children inside one process, for embedding and for tests.

    memory = hub("site")                        # the same object for every memory://site
    uplink = memory.uplink("pump-3", ["press"])
    memory.cut("pump-3"), memory.heal("pump-3"), memory.drop("pump-3", "answer")

Bytes go as over a network. There are no threads: `hear` of a child is called on its parent's event
loop and must not block.
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
from submerge_client.uplink import Came, Hear, Heard, JobQueue, Opened, Parted, check_size
from submerge_proto.wire.codec import Kind

AGAIN_S = 0.5  # how long a connection stays closed after its `hear` raised


class Parent(Protocol):
    def soon(self, what: Callable[[], None], *, after_s: float = 0.0) -> None:
        """Call on its event loop, from any thread; RuntimeError if that loop has ended."""

    def take(self, child: InMemoryUplink, kind: Kind, data: bytes) -> None:
        """Take what a child sent; on the loop."""

    def newest(self, groups: Sequence[str]) -> list[bytes]:
        """Return the messages for a child that has just connected."""


class Memory:
    """A network in memory, for one parent at a time."""

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
        return InMemoryUplink(self, node, groups, limit)

    # For tests:
    def cut(self, node: str) -> None:
        with self._lock:
            self._cut.add(node)
        self._stir_all()

    def heal(self, node: str) -> None:
        with self._lock:
            self._cut.discard(node)
        self._stir_all()

    def drop(self, node: str, kind: Kind, times: int = 1) -> None:
        """Lose the next so many messages of a kind, from a node or to it."""
        with self._lock:
            self._drops[node, kind] += times

    def listen(self, parent: Parent) -> None:
        """Make `parent` the parent of all children; raises UsageError if there is one already."""
        with self._lock:
            if self._parent is not None:
                raise UsageError(
                    f"expected no parent on memory://{self.name} yet, got a second one:"
                    " close the first, or take another name"
                )
            self._parent = parent
        self._stir_all()

    def leave(self, parent: Parent) -> None:
        with self._lock:
            if self._parent is not parent:
                return
            self._parent = None
        self._stir_all()

    def children(self) -> list[InMemoryUplink]:
        with self._lock:
            return list(self._children)

    def parent_of(self, node: str) -> Parent | str:
        with self._lock:
            if node in self._cut:
                return f"memory://{self.name} is cut for {node}"
            return self._parent or f"nothing listens on memory://{self.name}"

    def loses(self, node: str, kind: Kind) -> bool:
        """Return whether this message is lost, and count it off."""
        with self._lock:
            if not self._drops[node, kind]:
                return False
            self._drops[node, kind] -= 1
            return True

    def join(self, child: InMemoryUplink) -> None:
        with self._lock:
            self._children.append(child)
        self.stir(child)

    def part(self, child: InMemoryUplink) -> None:
        with self._lock:
            if child in self._children:
                self._children.remove(child)

    def stir(self, child: InMemoryUplink, *, after_s: float = 0.0) -> None:
        """Have a child check its connection, on the parent's loop if there is one."""
        with self._lock:
            parent = self._parent
        if parent is None:
            child.look(None)
            return
        try:
            parent.soon(partial(child.look, parent), after_s=after_s)
        except RuntimeError:  # its loop has ended without `leave`
            self.leave(parent)

    def _stir_all(self) -> None:
        for child in self.children():
            self.stir(child)


class InMemoryUplink:
    """An `Uplink` in memory; `Memory.uplink` makes one."""

    def __init__(self, memory: Memory, node: str, groups: Sequence[str], limit: int) -> None:
        self.node, self.groups = node, tuple(groups)
        self.failures = 0
        self._memory, self._limit = memory, limit
        self._hear: Hear = lambda _: None
        self._lock = threading.Lock()
        self._events = threading.RLock()  # held while the connection changes and `hear` runs
        self._waiting: dict[tuple[Kind, str, bytes], bytes] = {}
        self._jobs: JobQueue[bytes] = JobQueue()
        self._stirred = self._open = self._closed = False
        self._why: str | None = None

    def open(self, hear: Hear) -> None:
        self._hear = hear
        self._memory.join(self)

    def send(self, kind: Kind, group: str, data: bytes, *, final: bool = False) -> None:
        """Send a join or a report; the newest of its kind waits for a connection."""
        check_size(kind, data, self._limit)
        with self._lock:
            if self._closed:
                return
            if kind == "job":
                self._jobs.put(data, len(data))
            else:
                self._waiting[kind, group, data if final else b""] = data
            stirred, self._stirred = self._stirred, True
        if not stirred:
            self._memory.stir(self)

    def close(self) -> None:
        """End; what was sent still goes out."""
        with self._lock:
            self._closed = True
        self._memory.part(self)

    # For the other end, on its loop:
    def look(self, parent: Parent | None) -> None:
        """Check the connection, report a change, and send what waits; on the parent's loop."""
        with self._events:
            self._stirred = False
            found = self._memory.parent_of(self.node)
            if isinstance(found, str):
                self._part(found)
            elif found is parent:
                self._greet(found)
                self._flush(found)

    def hear(self, kind: Kind, data: bytes) -> None:
        """Take a message of the parent, if the connection is open."""
        with self._events:
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
            messages = [(kind, data) for (kind, *_), data in waiting.items()]
            messages += [("job", self._jobs.take()) for _ in range(len(self._jobs))]
        for kind, data in messages:
            if not self._memory.loses(self.node, kind):
                parent.take(self, kind, data)

    def _part(self, why: str) -> None:
        known, self._why, self._open = self._why == why, why, False
        with self._lock:
            self._jobs.clear()  # their senders repeat them
        if not known:
            self._hand(Parted(why))

    def _hand(self, heard: Heard) -> None:
        """Call `hear`; an exception closes the connection for `AGAIN_S`."""
        if self._closed:
            return
        try:
            self._hear(heard)
        except Exception as error:  # others on this loop must not suffer from it
            self.failures += 1
            if not isinstance(heard, Parted):
                self._part(f"{type(error).__name__}: {error}")
                self._memory.stir(self, after_s=AGAIN_S)


_hubs: WeakValueDictionary[str, Memory] = WeakValueDictionary()
_hubs_lock = threading.Lock()


def hub(name: str) -> Memory:
    """Return the network `memory://name`: one object as long as it is in use."""
    with _hubs_lock:
        return _hubs.setdefault(name, Memory(name))
