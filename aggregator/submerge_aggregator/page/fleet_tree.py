"""FleetTree: every node below an aggregator, asked for level by level, for all who look at once.

It is asked for only while a page is open, and at most every `FRESH_S`. Aggregators are asked
`AT_ONCE` at a time; one that says nothing is named, and the rest is shown.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar, get_args

import msgspec

from submerge.client.alarms.highest import LEAST_ROWS
from submerge.protocol.messages import DEEPEST
from submerge_aggregator.history.file import ScoresPage
from submerge_aggregator.page.calls import AdminCalls, CallRefused, ask_patiently
from submerge_aggregator.questions.views import GroupWatch, NodesPage, NodeView, RowView, SealedView

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = TypeVar("P", NodesPage, ScoresPage)

State = Literal[
    "alarm", "silent", "banned", "quarantined", "stale", "far", "bounded", "paused",
    "learning", "armed", "sealed", "unwatched"
]  # fmt: skip
STATES: tuple[State, ...] = get_args(State)
"""How a node is, the worst first: an alarm is open; it was not heard for long; an operator refuses
it; its rows stay out of the model; its model has expired; it is far from the others; it counts for
less than it reports; it learns nothing; it has no limits yet; it has; its incarnations are over; it
raises no alarms."""

SILENT_S = 900.0
"""A node that was not heard for longer is silent: three reports are missing, unless a configuration
says otherwise."""


@dataclass(frozen=True, slots=True)
class FleetRow:
    """A node, and the aggregators above it."""

    under: str  # their names, from the one below the aggregator that is asked, with slashes between
    node: str
    kind: str
    state: State
    holds: list[State]  # every state that holds, the worst first: `state` is the first of them
    open: int
    heard_s: float | None
    learnt: int
    lost: int
    software: str
    certified_until_s: float  # 0 without a certificate
    note: str  # what is unusual about it, in words
    judged: bool  # its rows are held against limits now, if provisional ones
    ready_in_s: float | None  # until it has limits, as its rows have come so far; None: unknown


def row_of(view: NodeView, under: str, at: float, for_model: float = 0.0) -> FleetRow:
    """Return a node's row; the group's first model needs so many more rows of each node."""
    last = view.rows[0] if view.rows else None
    states = states_of(view)
    parts: list[RowView | SealedView] = [*view.rows, *view.sealed]
    watch = view.watch
    return FleetRow(
        under,
        view.node,
        view.kind or "",
        states[0] if states else "unwatched",
        states,
        0 if watch is None else watch.open,
        None if last is None else round(at - last.silent_s, 1),
        sum(each.learnt for each in parts),
        sum(each.lost for each in parts),
        "" if last is None else last.software,
        0.0 if last is None else last.certified_until_s,
        _note(view),
        watch is not None
        and not {"silent", "stale"} & set(states)
        and (bool({"alarm", "armed"} & set(states)) or watch.provisional_rows > 0),
        None
        if watch is None or last is None
        else _ready_in_s(for_model + LEAST_ROWS if for_model else watch.missing, last),
    )


def _ready_in_s(missing: float, last: RowView) -> float | None:
    rows = last.learnt + last.withheld
    if not missing or not rows:
        return None
    return round(max(0.0, missing * (last.as_of_s - last.created_s) / rows - last.silent_s), 1)


def states_of(view: NodeView) -> list[State]:
    """Return how a node is: every state that holds, the worst first."""
    last, watch = (view.rows[0] if view.rows else None), view.watch
    found: set[State] = set()
    if watch is not None and watch.open:
        found.add("alarm")
    if last is not None and last.silent_s > SILENT_S and not last.final:
        found.add("silent")
    named: tuple[tuple[State, object], ...] = (
        ("banned", view.banned),
        ("quarantined", view.quarantined),
        ("far", view.outlier),
        ("bounded", view.bounded),
        ("paused", view.paused),
        ("sealed", last is None),
    )
    found |= {state for state, holds in named if holds}
    if watch is not None and view.kind == "client":
        found |= {state for state, nodes in watch.states.items() if nodes}
    elif watch is not None and any(watch.states.values()):
        found.add("armed" if watch.states.get("armed") else "learning")
    return sorted(found, key=STATES.index)


def _note(view: NodeView) -> str:
    said = []
    if view.quarantined:
        said.append(f"quarantined: {view.cause}")
    if view.outlier:
        said.append(f"far from the others: {view.outlier}")
    if view.bounded:
        said.append(view.bounded)
    if view.at_once:
        said.append(f"{view.at_once} machines run with its kit")
    if view.wanted:
        said.append(f"to {view.wanted}, not confirmed yet")
    if view.watch is not None and view.watch.waiting:
        said.append(f"{view.watch.waiting}, as last heard")
    return "; ".join(said)


@dataclass(frozen=True, slots=True)
class OneNode:
    """A node; `row` is as the fleet lists it, None where the asked aggregator knows no such."""

    group: str
    at: float
    row: FleetRow | None
    view: NodeView | None


async def one_node(calls: AdminCalls, group: str, path: str, node: str, at: float) -> OneNode:
    """Return a node, by asking the aggregator to which it reports; no path: this one."""
    body = await calls.get(f"/tree/{group}", path=path, node=node)
    nodes = msgspec.json.decode(body, type=NodesPage).nodes
    found = next((each for each in nodes if each.node == node), None)
    row = None if found is None else row_of(found, path, at)
    return OneNode(group, at, row, found)


FRESH_S = 20.0
"""How long a tree is shown before it is asked for again."""

AT_ONCE = 8
"""Aggregators that are asked at a time."""

MOST = 50_000
"""Nodes of one group that a page shows."""

ASKS_S = 20.0
"""For how long aggregators are asked; those that were not by then are named as silent ones are. So
the rest is shown though many never reply, or one names thousands below it."""

NOT_ASKED = "not asked: others took too long to reply"


@dataclass(frozen=True, slots=True)
class FleetTree:
    """The nodes of a group."""

    group: str
    at: float
    watches: msgspec.Raw  # as `/alarm-status` has it, of the same time
    rows: list[FleetRow] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)  # aggregators that said nothing, a line each
    more: bool = False  # there are more than `MOST`


class Shared(Generic[K, V]):
    """Values by key: collected once for all who ask meanwhile, and again when they are too old."""

    def __init__(
        self,
        collect: Callable[[K, float], Coroutine[Any, Any, V]],
        wall: Callable[[], float],
        *,
        fresh_s: float,
        most: float = math.inf,
    ) -> None:
        self._collect, self._wall, self._fresh_s, self._most = collect, wall, fresh_s, most
        self._known: dict[K, tuple[float, V]] = {}
        self._under_way: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K) -> V:
        known = self._known.get(key)
        # By the marks that pages go by: what was collected before the newest one is old.
        if known is not None and known[0] // self._fresh_s == self._wall() // self._fresh_s:
            return known[1]
        task = self._under_way.get(key)
        if task is None:
            if len(self._under_way) >= self._most:
                raise CallRefused(503, "too much is asked for at once: try again")
            task = self._under_way[key] = asyncio.create_task(self._collected(key))
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        # One who leaves ends nothing for the others.
        return await asyncio.shield(task)

    async def _collected(self, key: K) -> V:
        at = self._wall()
        value = await self._collect(key, at)
        self._known.pop(key, None)
        self._known[key] = at, value
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return value


@dataclass(frozen=True, slots=True)
class Collector:
    """Asks aggregators of a fleet, as many at once as there are turns, up to a time of the loop."""

    calls: AdminCalls
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    until: float = field(default_factory=lambda: asyncio.get_running_loop().time() + ASKS_S)

    async def collect(
        self, route: str, under: str, kind: type[P], take: Callable[[P], bool], **query: str
    ) -> CallRefused | None:
        """Hand an aggregator's pages to `take`, until it wants no more; return why some are not."""
        after, more, loop = "", True, asyncio.get_running_loop()
        try:
            while more:
                async with self.turns:
                    if under and loop.time() >= self.until:
                        raise CallRefused(503, NOT_ASKED)
                    asked = {"path": under, "after": after} | query
                    body = await ask_patiently(self.calls, route, **asked)
                page = msgspec.json.decode(body, type=kind)
                # Each is asked for by the last name of the one before.
                more, after = take(page) and page.more, page.nodes[-1].node if page.nodes else ""
        except CallRefused as error:
            return error
        return None


class FleetTrees:
    """The newest tree of each group, and its JSON."""

    def __init__(self, calls: AdminCalls, wall: Callable[[], float]) -> None:
        self._calls, self._wall = calls, wall
        self._trees = Shared(self._collect, wall, fresh_s=FRESH_S)

    async def tree(self, group: str) -> FleetTree:
        """Return a group's tree; a new one where the last is too old."""
        return (await self._trees.get(group))[0]

    async def body(self, group: str) -> bytes:
        return (await self._trees.get(group))[1]

    async def _collect(self, group: str, at: float) -> tuple[FleetTree, bytes]:
        watches = msgspec.Raw(await self._calls.get("/alarm-status", group=group))
        known = msgspec.json.decode(watches, type=list[GroupWatch])
        for_model = sum(each.missing / max(each.clients, 1) for each in known)
        tree = FleetTree(group, at, watches)
        level: list[tuple[str, ...]] = [()]
        collector = Collector(self._calls)
        while level and not tree.more:
            found = await asyncio.gather(
                *(self._ask(group, path, collector, for_model) for path in level)
            )
            below = list[tuple[str, ...]]()
            for path, (rows, silent) in zip(level, found, strict=True):
                tree.rows.extend(rows)
                tree.silent.extend(silent)
                # A wrong kind in a reply must lead nowhere twice.
                names = [row.node for row in rows if row.kind == "aggregator"]
                below += [(*path, name) for name in names if name not in path]
            level = [path for path in below if len(path) < DEEPEST]
            if len(tree.rows) > MOST:
                tree = replace(tree, rows=tree.rows[:MOST], more=True)
        return tree, msgspec.json.encode(tree)

    async def _ask(
        self, group: str, path: tuple[str, ...], collector: Collector, for_model: float
    ) -> tuple[list[FleetRow], list[str]]:
        """Return the nodes that report to one aggregator, and what it did not say."""
        rows, under = list[FleetRow](), "/".join(path)

        def take(page: NodesPage) -> bool:
            at = self._wall()
            rows.extend(row_of(view, under, at, for_model) for view in page.nodes)
            return len(rows) <= MOST

        error = await collector.collect(f"/tree/{group}", under, NodesPage, take)
        if error is not None and not path:
            raise error
        return rows, [] if error is None else [f"{under}: {error}"]
