"""Nodes on a table: the test hands over every message, and time passes when it says so.

    table = Table()
    table.root("r"), table.aggregator("a", under="r"), table.client("c", under="a")
    table.reads("c", 5)
    table.passes(300)

The nodes are the ones that ship. A host is a process on a disk; two hosts may run one
node's store (`copy`). What is sent to a host that is dead, cut off or not there is lost.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rows.ledger import Ledger
from submerge.client.node import ClientNode
from submerge.protocol.machine import (
    Effect,
    Event,
    Keep,
    Linked,
    Note,
    Now,
    Publish,
    Reading,
    Received,
    Send,
    Start,
    Tick,
)
from submerge.protocol.messages import (
    Answer,
    Counts,
    Incarnation,
    Join,
    Joined,
    Message,
    Model,
    Reason,
    Report,
    Stamp,
)
from submerge.protocol.settings import AggregatorSettings, ClientSettings
from submerge.protocol.summaries import Summaries
from submerge.schema import Schema
from submerge_lab.simulator.samples import Samples, SampleSets

EPOCH = 1_700_000_000.0
GROUP = "room"
IDS = Schema.anonymous(1)
"""One channel: a reading is nothing but its own number."""


# -- messages made by hand -------------------------------------------------------


def new_incarnation(number: int, nonce: int | None = None) -> Incarnation:
    """Return the incarnation that was created so many milliseconds after the epoch of a test."""
    return Incarnation(int(EPOCH * 1000) + number, number if nonce is None else nonce)


MOST = 5000
"""Messages, or ticks, that any event leads to at one time: more are an endless loop."""

ME, OTHER = new_incarnation(-9), new_incarnation(-8)
"""A parent's incarnation, and another."""


def samples(ids: Iterable[int]) -> Samples:
    """Return the set of these ids."""
    return Samples(sum(1 << i for i in set(ids)))


def report(
    node: str = "c",
    incarnation: Incarnation = new_incarnation(1),  # noqa: B008 - a value
    seq: int = 1,
    ids: Iterable[int] = range(3),
    **fields: Any,
) -> Report:
    """Return a client's report of these sample ids; `fields` replace what follows from them."""
    ids = list(ids)
    reported: dict[str, Any] = {
        "final": False,
        "pinned": ME,
        "fence": b"",
        "fingerprint": IDS.fingerprint,
        "summary": samples(ids),
        "moments": None,
        "counts": Counts(len(ids)),
        "as_of": EPOCH,
        "synced": True,
        "version": 0,
        "lifetime": len(ids),
    }
    return Report(Stamp(node, GROUP, incarnation, seq), **{**reported, **fields})


def answer(to: Report | Stamp, reason: Reason = Reason.ACK, **fields: Any) -> Answer:
    """Return a parent's answer: it echoes the fence, and an acknowledgement holds what was said."""
    stamp, fence = (to, b"") if isinstance(to, Stamp) else (to.stamp, to.fence)
    newest = stamp.seq if reason is Reason.ACK else 0
    return Answer(stamp, reason, **{"fence": fence, "pinned": ME, "newest": newest, **fields})


def joined(to: Join, reason: Reason = Reason.ACK, *, seq: int = 0, **fields: Any) -> Joined:
    """Return a parent's answer to a join."""
    schema = IDS.canonical if reason is Reason.ACK else b""
    reported = {"pinned": ME, "top": False, "floor": 0, "schema": schema}
    return Joined(to.stamp._replace(seq=seq), reason, to.fence, **{**reported, **fields})


# -- the table ---------------------------------------------------------------------


class Inbound(NamedTuple):
    """A message on its way from one host to another."""

    source: str
    to: str
    message: Message


@dataclass
class Host:
    """A process on a disk; `label` is the host's, `name` the node's."""

    label: str
    name: str
    parent: str | None
    make: Callable[[np.random.Generator], Any]
    disk: dict[Any, Any] = field(default_factory=dict)
    node: Any = None
    starts: int = 0
    cut: bool = False
    clock_error: float = 0.0
    synced: bool = True
    notes: list[Note] = field(default_factory=list)

    @property
    def ledger(self) -> Ledger:
        return self.node.ledger(GROUP)

    @property
    def model(self) -> Model:
        return self.node.model(GROUP)

    @property
    def counted(self) -> int:
        """Readings that the rows hold, by their ids."""
        summary = self.ledger.summary()
        return 0 if summary is None else summary.bits.bit_count()

    def why(self, what: str) -> list[str]:
        """Return the reasons given in notes of one kind."""
        return [note.facts.get("why", "") for note in self.notes if note.what == what]


def write(disk: dict[Any, Any], keep: Keep) -> None:
    """Perform a transaction."""
    if keep.new_store:
        disk.clear()
    for key, record in keep.records.items():
        if record is None:
            disk.pop(key, None)
        else:
            disk[key] = record


class Table:
    """Hosts, and the messages between them.

    Attributes
    ----------
    wire : list of Letter
        On the way; `run` delivers them, first come first served.
    said : list of Letter
        Everything that was ever sent.
    lost : list of Letter
        What reached nobody.
    published : list of (label, message)
        What was said to all children, also where there are none.
    heard : callable or None
        Told of each letter, and whether it arrives.
    """

    def __init__(
        self, summaries: Summaries | None = None, schema: Schema = IDS, seed: int = 0
    ) -> None:
        self.summaries = SampleSets() if summaries is None else summaries
        self.schema, self.seed = schema, seed
        self.time = 0.0
        self.hosts: dict[str, Host] = {}
        self.wire: list[Inbound] = []
        self.said: list[Inbound] = []
        self.lost: list[Inbound] = []
        self.published: list[tuple[str, Message]] = []
        self.heard: Callable[[Inbound, bool], None] | None = None
        self.ids = 0

    # -- who is there

    def root(self, label: str = "r", **settings: Any) -> Host:
        return self.aggregator(label, under=None, **settings)

    def aggregator(self, label: str, *, under: str | None = "r", **settings: Any) -> Host:
        plans, start = settings.pop("plans", None), settings.pop("start", True)
        plan = GroupPlan(self.summaries, None if under else self.schema)
        chosen = AggregatorSettings(label, under, **settings)
        groups = plans or {GROUP: plan}
        host = Host(label, label, under, lambda rng: AggregatorNode(chosen, groups, rng))
        return self._seat(host, start=start)

    def client(self, label: str, *, under: str = "a", **settings: Any) -> Host:
        schema = settings.pop("schema", self.schema)
        kept = {"group": GROUP, **settings}
        chosen = ClientSettings(label, parent=under, **kept)
        return self._seat(
            Host(label, label, under, lambda rng: ClientNode(chosen, schema, self.summaries, rng))
        )

    def copy(self, label: str, twin: str) -> Host:
        """Start a second process on a copy of a disk."""
        host = self.hosts[label]
        return self._seat(Host(twin, host.name, host.parent, host.make, dict(host.disk)))

    def double(self, label: str, twin: str) -> Host:
        """Copy a machine with its memory: two processes go on with one life."""
        host = self.hosts[label]
        self.hosts[twin] = Host(twin, host.name, host.parent, host.make, dict(host.disk))
        shared = {id(each): each for each in (self.summaries, self.schema)}
        self.hosts[twin].node = copy.deepcopy(host.node, shared)
        return self.hosts[twin]

    def moved(self, label: str, *, under: str | None, **settings: Any) -> Host:
        """Start an aggregator on its old disk under another parent."""
        disk, starts = self.hosts[label].disk, self.hosts[label].starts
        host = self.aggregator(label, under=under, start=False, **settings)
        host.disk, host.starts = disk, starts
        self.starts(label)
        return host

    def _seat(self, host: Host, *, start: bool = True) -> Host:
        self.hosts[host.label] = host
        if start:
            self.starts(host.label)
        return host

    # -- what happens to them

    def starts(self, label: str) -> None:
        host = self.hosts[label]
        host.starts += 1
        seed = self.seed, zlib.crc32(label.encode()), host.starts
        host.node = host.make(np.random.default_rng(seed))
        self.step(label, Start(dict(host.disk)))
        self.run()

    def dies(self, label: str) -> None:
        self.hosts[label].node = None

    def restarts(self, label: str) -> None:
        self.dies(label)
        self.starts(label)

    def back(self, label: str) -> None:
        """Reconnect a host that was cut off."""
        self.hosts[label].cut = False
        self.step(label, Linked())
        self.run()

    def reads(self, label: str, n: int) -> list[int]:
        """Have a client read `n` new ids."""
        ids = list(range(self.ids, self.ids + n))
        self.ids += n
        self.step(label, Reading(np.array(ids, dtype=float)[:, None]))
        self.run()
        return ids

    def passes(self, seconds: float) -> None:
        """Let time pass: each node is woken when it asks to be."""
        end, woken = self.time + seconds, 0
        while True:
            running = [host for host in self.hosts.values() if host.node is not None]
            wake, label = min(
                ((host.node.wakes_at, host.label) for host in running), default=(np.inf, "")
            )
            if wake > end:
                break
            woken = woken + 1 if wake <= self.time else 0
            if woken > MOST:
                raise AssertionError(f"{label} is woken for ever")
            self.time = max(self.time, wake)
            self.step(label, Tick())
            self.run()
        self.time = end
        for host in list(self.hosts.values()):
            if host.node is not None:
                self.step(host.label, Tick())
        self.run()

    # -- messages

    def now(self, label: str) -> Now:
        host = self.hosts[label]
        return Now(self.time, EPOCH + self.time + host.clock_error, host.synced)

    def step(self, label: str, event: Event, *, asked_by: str | None = None) -> list[Effect]:
        """Have a node decide; write what it keeps, and put what it says on the wire."""
        host = self.hosts[label]
        effects: list[Effect] = host.node.step(event, self.now(label))
        for effect in effects:
            match effect:
                case Keep():
                    write(host.disk, effect)
                case Send():
                    to = self._label(effect.to, asked_by)
                    self._post(Inbound(label, to, effect.message))
                case Publish():
                    self.published.append((label, effect.message))
                    for child in self.hosts.values():
                        if child.parent == host.name:
                            self._post(Inbound(label, child.label, effect.message))
                case Note():
                    host.notes.append(effect)
                case _:
                    pass
        return effects

    def tell(self, label: str, message: Message, *, shared: bool = False) -> list[Message]:
        """Have a host receive a message; return what it sends in answer."""
        effects = self.step(label, Received(message, shared))
        return [effect.message for effect in effects if isinstance(effect, Send)]

    def run(self) -> None:
        """Deliver all that is on the wire, and what comes of it."""
        for _ in range(MOST):
            if not self.wire:
                return
            self.deliver(self.wire.pop(0))
        raise AssertionError(f"they talk for ever: {self.said[-6:]}")

    def deliver(self, letter: Inbound) -> None:
        host, source = self.hosts.get(letter.to), self.hosts[letter.source]
        arrives = host is not None and host.node is not None and not (host.cut or source.cut)
        if self.heard is not None:
            self.heard(letter, arrives)
        if arrives:
            self.step(letter.to, Received(letter.message), asked_by=letter.source)
        else:
            self.lost.append(letter)

    def _post(self, letter: Inbound) -> None:
        self.said.append(letter)
        self.wire.append(letter)

    def _label(self, name: str, asked_by: str | None) -> str:
        """An answer goes to the process that asked; other messages to one that runs."""
        if asked_by is not None and self.hosts[asked_by].name == name:
            return asked_by
        there = [host for host in self.hosts.values() if host.name == name and host.node]
        return there[0].label if there else name

    def messages(self, source: str, kind: type) -> list[Any]:
        """Return what a host has said, of one kind."""
        return [m for s, _, m in self.said if s == source and isinstance(m, kind)]

    def spread(self, source: str, kind: type) -> list[Any]:
        """Return what a host has said to all its children, of one kind."""
        return [m for label, m in self.published if label == source and isinstance(m, kind)]

    def reports(self, source: str) -> list[Report]:
        return self.messages(source, Report)


def sent(effects: Iterable[Effect], kind: type) -> list[Any]:
    """Return the messages of one kind that are to be sent."""
    messages = [effect.message for effect in effects if isinstance(effect, Send | Publish)]
    return [message for message in messages if isinstance(message, kind)]


def kept(effects: Iterable[Effect]) -> dict[Any, Any]:
    """Return the records that are to be written."""
    records: dict[Any, Any] = {}
    for effect in effects:
        if isinstance(effect, Keep):
            records.update(effect.records)
    return records
