"""What operators do to a simulated fleet: other channels, histories.

`HistoryOperator` pushes histories to a root, right ones and wrong ones, and takes them back.

`ChannelOperator`: a device comes or goes, and an operator writes it into the configuration of the
root and of each client, and restarts them: at different times, some late, in any order. Aggregators
between hear of it from above. A second order may come before the first has reached everyone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np

from submerge._linalg import Array
from submerge.aggregator.node import STORE, AggregatorNode
from submerge.protocol.history import Chunk, History
from submerge.protocol.machine import Flush, ForgetHistory, PushHistory
from submerge.protocol.messages import Counts, Incarnation, Model
from submerge.schema import Channel, Scaling, Schema
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.nodes import GROUP

OTHERS = ("heat", "flow", "power")
"""Channels that come and go, beside that of the ids."""

SOON_S, LATE_S = 300.0, 3600.0
"""Mean time until a node has its new configuration; one in five is late."""

DOWN_S = 20.0
"""Mean time that a restart takes."""


def first_schema() -> Schema:
    """Return the schema that a group of ids begins with."""
    return _schema(OTHERS[:1])


class ChannelOperator:
    """An operator who changes the channels of a group again and again."""

    def __init__(self, fleet: SimulatedFleet) -> None:
        self._fleet, self._rng = fleet, fleet.rng
        self._orders: list[tuple[str, ...]] = [OTHERS[:1]]
        self._reached: dict[str, int] = {}

    def act(self, root: Host) -> None:
        """Give the group other channels; each node gets them in its own time."""
        if isinstance(self._fleet.feed.schema.channels, int):
            return
        before = self._orders[-1]
        self._orders.append(self._changed(before))
        number, fleet = len(self._orders) - 1, self._fleet
        fleet.log(root, "is to have", ", ".join(self._orders[-1]) or "ids only")
        for host in (root, *fleet.levels[0]):
            mean = LATE_S if self._rng.random() < 0.2 else SOON_S
            delay = mean * float(self._rng.exponential())
            fleet.at(fleet.time + delay, self._configure, host, number)

    def finish(self) -> None:
        """Let the last order reach every node."""
        for host in (self._fleet.root, *self._fleet.levels[0]):
            self._configure(host, len(self._orders) - 1)

    def _changed(self, before: tuple[str, ...]) -> tuple[str, ...]:
        """Return other channels: one comes or goes, or they change places."""
        rng = self._rng
        if len(before) > 1 and rng.random() < 0.2:
            return before[::-1]
        name = OTHERS[int(rng.integers(len(OTHERS)))]
        if name in before:
            return tuple(each for each in before if each != name)
        place = int(rng.integers(len(before) + 1))
        return (*before[:place], name, *before[place:])

    def _configure(self, host: Host, number: int) -> None:
        """Restart a node with a configuration, unless it has it or a later one."""
        fleet = self._fleet
        if self._reached.get(host.name, 0) >= number:
            return
        self._reached[host.name] = number
        orderly = self._rng.random() < 0.7
        down_s = DOWN_S * float(self._rng.exponential())
        fleet.log(host, "is configured with", ", ".join(self._orders[number]) or "ids only")
        for each in dict.fromkeys((host, *fleet.network.hosts[host.name])):
            each.schema = _schema(self._orders[number])
            if each.node is None:
                continue  # it starts with it
            if orderly:
                fleet.step(each, Flush())
            fleet.kill(each)
            fleet.at(fleet.time + down_s, fleet.start, each)


def _schema(others: tuple[str, ...]) -> Schema:
    """Return the schema of ids beside other channels."""
    return Schema((Channel("id"), *map(Channel, others)))


ELSEWHERE = f"{GROUP} {Incarnation(1, 1)}"
"""Origin of what another fleet has learnt."""

MACHINES = ("old-1", "old-2", "old-3")
"""Machines that have no node."""

MOST_ROWS = 12
"""Rows of a file, at most."""

OFFSET, SCALE, GAMMA = 20.0, 1.5, 0.03
"""Of a history that settles what a group's schema leaves open."""

HALF_LIFE_S = 1e6
"""Of another schema than any group's."""

Files = Sequence["RecordedFile"]


@dataclass(frozen=True, slots=True, eq=False)
class RecordedFile:
    """A file of one chunk; `rows`: (n, channels), in units of the channels."""

    chunk: Chunk
    rows: Array


class HistoryOperator:
    """An operator with files, whose orders are of all kinds.

    Files are written as they are needed. Later orders use them again: the same history once more,
    more files, some of them together with others.
    """

    def __init__(self, fleet: SimulatedFleet) -> None:
        self._fleet, self._rng = fleet, fleet.rng
        self._given: list[Files] = []
        self._rows: dict[str, Array] = {}  # of each history
        self._written = 0
        self._elsewhere: Files = ()
        self._own: list[History] = []
        self._saved: list[tuple[int, Files, Files]] = []
        self._orders = (
            *(self._push_new, self._push_new, self._push_again, self._push_again),
            *(self._push_more, self._push_more, self._push_some, self._forget, self._forget),
            *(self._push_own_model, self._push_other_model, self._push_other_schema),
            *(self._push_rows_of_a_node, self._push_below, self._forget_unknown),
        )

    def act(self, root: Host) -> None:
        """Give one order."""
        if isinstance(root.node, AggregatorNode):
            # Who orders something else first has nothing to order it of.
            orders = self._orders if self._given else self._orders[:1]
            orders[int(self._rng.integers(len(orders)))]()

    def rows_held(self) -> list[tuple[Array, float]]:
        """Return the rows that the root holds beside readings, and for how much each counts."""
        root = self._fleet.root.node
        held = root.histories(GROUP).values() if isinstance(root, AggregatorNode) else ()
        return [(self._rows[each.name], each.factor) for each in held]

    # -- right ones ------------------------------------------------------------

    def _push_new(self) -> None:
        self._push(self._new_files())

    def _push_again(self) -> None:
        self._push(self._earlier())

    def _push_more(self) -> None:
        """Add files to a history: it takes the place of the one that it covers."""
        self._push((*self._earlier(), *self._new_files()))

    def _forget(self) -> None:
        self._step(ForgetHistory(GROUP, list(self._rows)[self._any(len(self._rows))]))

    def _push_other_model(self) -> None:
        """Push what another fleet has learnt: more each time, or what was saved earlier."""
        # At times that fleet has been given a history that is known here.
        if not self._saved or self._rng.random() < 0.6:
            known = self._earlier()[:1] if self._rng.random() < 0.3 else ()
            self._elsewhere = (*self._elsewhere, *self._new_files())
            self._saved.append((self._written, self._elsewhere, known))
        version, files, known = self._saved[-1 - self._any(min(2, len(self._saved)))]
        chunks = tuple(each.chunk for each in known)
        self._push((*files, *known), version=version, chunks=chunks, origin=ELSEWHERE)

    # -- wrong ones ------------------------------------------------------------

    def _push_some(self) -> None:
        """Push a part of a history with other files: they share rows, and neither covers."""
        self._push((*self._earlier()[:1], *self._new_files()))

    def _push_own_model(self) -> None:
        """Push what this very fleet has learnt, now or earlier, perhaps under another root."""
        root, model = self._fleet.root.node, self._fleet.root_model
        if isinstance(root, AggregatorNode) and model is not None and model.summary is not None:
            origin = f"{GROUP} {root.root(GROUP)}"
            self._own.append(History(model, model.summary, None, (), origin))
        if self._own:
            own = self._own[self._any(len(self._own))]
            if self._is_known_here(own):
                self._step(PushHistory(GROUP, own))

    def _is_known_here(self, own: History) -> bool:
        """Return whether the root can know a model of its fleet again."""
        # By its own name; under another, once a node has reported that is older than the model. The
        # operator waits for that, and gives up where clocks cannot tell.
        root, made = self._fleet.root, 1000 * own.model.created
        if own.origin == f"{GROUP} {root.records[STORE].incarnation}":
            return True
        rows = [int(key[3]) for key in root.records if key[:2] == ("row", GROUP)]
        return not self._fleet.suffered.clock and any(created < made for created in rows)

    def _push_other_schema(self) -> None:
        """Push rows of another schema, or without a scaling where the group learns one."""
        ledger = self._fleet.root_ledger
        if ledger is None or not ledger.schema.features.settled:
            return
        schema = ledger.schema
        if not self._learns_scaling(schema) or self._rng.random() < 0.5:
            schema = replace(schema, half_life=HALF_LIFE_S)
        self._push(self._new_files(), schema=schema)

    def _push_rows_of_a_node(self) -> None:
        """Push rows of a child of the root, read while it may have reported them or before."""
        fleet = self._fleet
        children = fleet.levels[-2]
        name = children[self._any(len(children))].name
        last = fleet.root.now(fleet.time).wall + 1.0 if self._rng.random() < 0.7 else 0.0
        file = self._new_file()
        file = replace(file, chunk=replace(file.chunk, machine=name, first=last, last=last))
        self._push((file,), anyway=bool(self._rng.random() < 0.3))

    def _push_below(self) -> None:
        below = [host for hosts in self._fleet.levels[1:-1] for host in hosts]
        if below:
            self._push(self._new_files(), host=below[self._any(len(below))])

    def _forget_unknown(self) -> None:
        self._step(ForgetHistory(GROUP, "0" * 12))

    # -- files -----------------------------------------------------------------

    def _new_files(self) -> Files:
        return [self._new_file() for _ in range(1 + self._any(3))]

    def _new_file(self) -> RecordedFile:
        fleet = self._fleet
        self._written += 1
        rows = fleet.feed.recorded(1 + self._any(MOST_ROWS), fleet.time, self._rng)
        key = sha256(f"{self._written}".encode()).digest()
        last = fleet.root.now(0.0).wall
        machine = MACHINES[self._any(len(MACHINES))]
        file = f"{self._written}.csv"
        return RecordedFile(Chunk(key, machine, len(rows), last, last, file), rows)

    def _earlier(self) -> Files:
        return self._given[self._any(len(self._given))]

    def _any(self, n: int) -> int:
        return int(self._rng.integers(n))

    # -- histories -------------------------------------------------------------

    def _push(
        self,
        files: Files,
        *,
        host: Host | None = None,
        schema: Schema | None = None,
        anyway: bool = False,
        **facts: Any,
    ) -> None:
        """Push what is learnt of files, if there is a schema to learn them in."""
        schema = self._schema() if schema is None else schema
        if schema is None:
            return
        history = self._history(files, schema, **facts)
        self._rows[history.name] = np.concatenate([each.rows for each in files])
        # Rows of a node are of now: later they may be of a time before it reported.
        if not history.origin and all(each.chunk.machine in MACHINES for each in files):
            self._given.append(files)
        self._step(PushHistory(GROUP, history, anyway), host)

    def _history(self, files: Files, schema: Schema, *, version: int = 1, **facts: Any) -> History:
        fleet, now = self._fleet, self._fleet.root.now(self._fleet.time).wall
        summary = fleet.feed.learnt(np.concatenate([each.rows for each in files]), schema)
        counts = Counts(sum(each.chunk.rows for each in files))
        model = Model(
            GROUP,
            version,
            schema.canonical,
            schema.fingerprint,
            summary=None,
            limits=None,
            counts=counts,
            nodes=0,
            staleness=(0.0, 0.0, 0.0),
            created=now,
            expires=now,
            rank=fleet.plan.rank,
        )
        most_rows = float("inf") if self._rng.random() < 0.5 else 1.0 + self._any(2 * MOST_ROWS)
        facts = {"chunks": _by_key(files), "most_rows": most_rows, **facts}
        return History(model, summary, None, pushed=now, **facts)

    def _schema(self) -> Schema | None:
        """Return the group's schema, most of the time only once it is settled."""
        ledger = self._fleet.root_ledger
        if ledger is None:
            return None
        schema = ledger.schema
        learns_scaling = self._learns_scaling(schema)
        learns_gamma = not schema.features.settled
        if (learns_scaling or learns_gamma) and self._rng.random() < 0.7:
            return None
        if learns_scaling:
            scaling = Scaling((OFFSET,) * schema.width, (SCALE,) * schema.width)
            schema = replace(schema, scaling=scaling)
        if learns_gamma:
            schema = replace(schema, features=schema.features.settled_at(GAMMA))
        return schema

    def _learns_scaling(self, schema: Schema) -> bool:
        return self._fleet.plan.learns_scaling and schema.scaling is None

    def _step(self, order: PushHistory | ForgetHistory, host: Host | None = None) -> None:
        fleet = self._fleet
        host = fleet.root if host is None else host
        fleet.log(host, "is ordered to", _words(order))
        fleet.step(host, order)


def _by_key(files: Iterable[RecordedFile]) -> tuple[Chunk, ...]:
    return tuple(sorted((each.chunk for each in files), key=lambda chunk: chunk.key))


def _words(order: PushHistory | ForgetHistory) -> str:
    if isinstance(order, ForgetHistory):
        return f"forget {order.name}"
    history = order.history
    files = ", ".join(chunk.file for chunk in history.chunks)
    return f"take history {history.name} {history.origin} ({files})"
