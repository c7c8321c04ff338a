"""HistoryOracle: whether a root merges each history that an operator has given it, and no other.

I12  From the answer to a push on, each row of a history counts once at the root, until the history
     is forgotten, or one of more files takes its place; then none of it is left. What is counted
     already, is of another schema, of the fleet itself, or of a node that reports, is refused.
     Only what happens to the root's store changes which histories there are: one that is lost has
     none, and one that is restored those of its copy.

It follows orders by the keys of chunks, and does not look at the root's table for what to expect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from submerge.aggregator.node import STORE, AggregatorNode
from submerge.aggregator.rows.histories import MOST_HISTORIES
from submerge.protocol.history import History
from submerge.protocol.machine import (
    Effect,
    Event,
    ForgetHistory,
    Keep,
    Note,
    Publish,
    PushHistory,
    Records,
    Start,
)
from submerge.protocol.messages import Model
from submerge.schema import Schema
from submerge_lab.simulator.feeds import Feed, Ids
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.nodes import GROUP
from submerge_lab.simulator.observer import FleetObserver
from submerge_lab.simulator.samples import bits_of

ANSWERS = ("history taken", "history refused", "history forgotten", "unknown history")

Held = Mapping[str, History]


class HistoryOracle(FleetObserver):
    """Follows the histories of a root."""

    def __init__(self, fleet: SimulatedFleet, feed: Feed) -> None:
        self._fleet, self._feed = fleet, feed
        self.violations: list[tuple[str, str]] = []
        self.taken = 0
        self._roots: set[str] = set()  # origins of what this fleet has learnt
        self._kept: Held = {}  # that the root's store has to hold
        self._next: Held | None = None  # after the write that comes next
        self._answer = ""
        self._model: Model | None = None  # the newest

    # -- during the run --------------------------------------------------------

    def on_step(self, host: Host, event: Event, effects: list[Effect]) -> None:
        """Check what a root makes of an order, before it is kept, and each model."""
        is_order = isinstance(event, PushHistory | ForgetHistory)
        if host is not self._fleet.root:
            if is_order and any(each[0] == "history" for each in _written(effects)):
                self._record(f"{host} keeps a history, and is no root")
            return
        self._next, self._answer = None, ""
        if isinstance(event, PushHistory | ForgetHistory):
            self._next, self._answer = self._after(event, host.records)
        models = [
            effect.message
            for effect in effects
            if isinstance(effect, Publish) and isinstance(effect.message, Model)
        ]
        if is_order or isinstance(event, Start) or models:
            self._check_merge(host)
        for model in models:
            self._check_model(host, model)

    def on_write(self, host: Host) -> None:
        """Follow the root's store."""
        if host is self._fleet.root:
            if self._next is not None:
                self._kept = self._next
            self._roots.add(f"{GROUP} {host.records[STORE].incarnation}")
            self._check_store(host)

    def on_note(self, host: Host, note: Note) -> None:
        """Check the answer to an order: what it says is kept by now."""
        if host is not self._fleet.root or note.what not in ANSWERS:
            return
        if note.what != self._answer:
            self._record(f"the answer is {note.what!r}, not {self._answer!r}: {note.facts}")
        if self._next is not None:
            self._kept = self._next
        self._check_store(host)

    def on_disk_change(self, host: Host, before: Records, after: Records, why: str) -> None:
        """Note which histories there are on another disk of the root."""
        if host is self._fleet.root:
            self._kept = {name: after["history", GROUP, name] for name in _names_in(after)}

    # -- at the end ------------------------------------------------------------

    def conclude(self) -> list[tuple[str, str]]:
        """Check the root at rest; return all violations."""
        self._next = None
        root, model = self._fleet.root, self._fleet.root_model
        self._check_store(root)
        self._check_merge(root)
        if model is not None:
            self._check_model(root, model)
        return list(self.violations)

    # -- what an order has to do -----------------------------------------------

    def _after(self, order: PushHistory | ForgetHistory, records: Records) -> tuple[Held, str]:
        """Return which histories there have to be after an order, and its answer."""
        before = self._kept
        if isinstance(order, ForgetHistory):
            rest = {name: each for name, each in before.items() if name != order.name}
            return rest, "unknown history" if order.name not in before else "history forgotten"
        history = order.history
        rest = {name: each for name, each in before.items() if not _replaces(history, each)}
        alike = [each for each in rest.values() if _alike(history, each)]
        shared = history.keys & {key for each in alike for key in each.keys}
        if (
            shared
            or any(history.origin and each.origin == history.origin for each in alike)
            or len(rest) >= MOST_HISTORIES
            or history.origin in self._roots
            or not self._is_of_the_schema(history, records)
            or (not order.anyway and self._reported_too(history, records))
        ):
            return before, "history refused"
        self.taken += 1
        return {**rest, history.name: history}, "history taken"

    def _is_of_the_schema(self, history: History, records: Records) -> bool:
        """Return whether it has the schema on the root's disk, or settles what that leaves open."""
        ours, theirs = (Schema.parse(each) for each in (_schema_in(records), history.model.schema))
        plan = self._fleet.plan
        if plan.learns_scaling and theirs.scaling is None:
            return False
        return ours == theirs or (plan.measures_first and theirs.is_like(ours))

    def _reported_too(self, history: History, records: Records) -> bool:
        """Return whether a child of the root, which has a row there, may have read its rows."""
        # The operator's rows of a node are of now, or of 1970.
        machines = {chunk.machine for chunk in history.chunks if chunk.last > 0}
        return any(key[:2] == ("row", GROUP) and key[2] in machines for key in records)

    # -- checks ----------------------------------------------------------------

    @property
    def _expected(self) -> Held:
        """The histories in the root's memory."""
        return self._kept if self._next is None else self._next

    def _check_store(self, host: Host) -> None:
        there = _names_in(host.records)
        if there != self._kept.keys():
            self._record(f"the store has histories {_some(there)}, not {_some(self._kept)}")

    def _check_merge(self, host: Host) -> None:
        """Check that the root merges each row of these histories, and of no others."""
        node, ledger = host.node, self._fleet.root_ledger
        if not isinstance(node, AggregatorNode) or ledger is None:
            return
        there = node.histories(GROUP).keys()
        if there != self._expected.keys():
            self._record(f"there are histories {_some(there)}, not {_some(self._expected)}")
        elif isinstance(self._feed, Ids):
            merged = bits_of(ledger.summary()) & self._feed.in_files
            ids = self._ids(ledger.fingerprint)
            if merged != ids:
                missing, more = ids & ~merged, merged & ~ids
                self._record(
                    f"{missing.bit_count()} rows of histories are missing at the root, and"
                    f" {more.bit_count()} are too many"
                )

    def _check_model(self, host: Host, model: Model) -> None:
        """Check that a model counts rows and histories."""
        ledger, before = self._fleet.root_ledger, self._model
        self._model = model
        # Where rows wait for others, a model has those of the one before.
        waits = self._fleet.plan.floors and before is not None and before.counts == model.counts
        if ledger is None or waits:
            return
        rows = sum(each.model.counts.learnt for each in self._merged(ledger.fingerprint))
        beside = model.counts.learnt - ledger.counts().learnt
        if beside != rows:
            self._record(f"the model counts {beside} rows beside those of nodes, not {rows}")
        if isinstance(self._feed, Ids):
            learnt = bits_of(model.summary) & self._feed.in_files
            ids = self._ids(ledger.fingerprint)
            if learnt != ids:
                self._record(f"{(ids ^ learnt).bit_count()} rows are wrong in the model")

    def _merged(self, fingerprint: str) -> list[History]:
        """Return the histories of the root's schema: those of earlier channels are in no model."""
        return [each for each in self._expected.values() if each.model.fingerprint == fingerprint]

    def _ids(self, fingerprint: str) -> int:
        """The ids of the histories that the root has to merge."""
        bits = 0
        for history in self._merged(fingerprint):
            bits |= bits_of(history.summary)
        return bits

    def _record(self, what: str) -> None:
        if not self.violations:
            self._fleet.log(self._fleet.root, f"!! I12: {what}")
            if self._fleet.transcript is not None:
                self._fleet.transcript.close()
            self.violations.append(("I12", f"at {self._fleet.time:.0f} s: {what}"))


def _alike(history: History, other: History) -> bool:
    """Return whether both are of one schema: of two, one counts for nothing."""
    return history.model.fingerprint == other.model.fingerprint


def _replaces(history: History, other: History) -> bool:
    """Return whether one takes the place of another: of another schema, if they share rows."""
    if _alike(history, other):
        return _covers(history, other)
    return bool(history.keys & other.keys) or (history.origin == other.origin != "")


def _covers(history: History, other: History) -> bool:
    """Return whether a history has all rows of another, and more."""
    if history.origin:
        return other.origin == history.origin and other.model.version < history.model.version
    return not other.origin and other.keys < history.keys


def _names_in(records: Records) -> set[str]:
    """Return the names of the histories in a store."""
    return {key[2] for key in records if key[:2] == ("history", GROUP)}


def _schema_in(records: Records) -> bytes:
    canonical: bytes = records[("schema", GROUP)]
    return canonical


def _written(effects: Iterable[Effect]) -> Iterable[tuple[str, ...]]:
    return (key for effect in effects if isinstance(effect, Keep) for key in effect.records)


def _some(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
