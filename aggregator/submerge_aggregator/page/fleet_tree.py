"""FleetTree: every node below an aggregator, asked for level by level, for all who look at once.

It is asked for only while a page is open, and at most every `FRESH_S`: five pages cost what one
does. Aggregators are asked `AT_ONCE` at a time; one that says nothing is named, and the rest is
shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

import msgspec

from submerge.protocol.messages import DEEPEST
from submerge_aggregator.page.calls import AdminCalls, CallRefused, ask_patiently
from submerge_aggregator.questions.views import NodesPage, NodeView, RowView, SealedView

State = Literal[
    "alarm", "silent", "banned", "quarantined", "stale", "far", "bounded", "paused",
    "learning", "armed", "sealed", "unwatched",
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
    """A node, and the aggregators above it.

    under : Their names, from the one below the aggregator that is asked, with slashes between.
    holds : Every state that holds, the worst first: `state` is the first of them.
    nodes : Nodes below an aggregator that raise alarms; of a client 1, or 0.
    certified_until_s : 0 without a certificate.
    note : What is unusual about it, in words.
    """

    under: str
    node: str
    kind: str
    state: State
    holds: list[State]
    open: int
    nodes: int
    heard_s: float | None
    learnt: int
    withheld: int
    lost: int
    model: int
    software: str
    certified_until_s: float
    wanted: str
    note: str


def row_of(view: NodeView, under: str, at: float) -> FleetRow:
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
        0 if watch is None else watch.nodes,
        None if last is None else round(at - last.silent_s, 1),
        sum(each.learnt for each in parts),
        sum(each.withheld for each in parts),
        sum(each.lost for each in parts),
        0 if last is None else last.model_version,
        "" if last is None else last.software,
        0.0 if last is None else last.certified_until_s,
        view.wanted,
        _note(view),
    )


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
        said.append(view.watch.waiting)
    return "; ".join(said)


@dataclass(frozen=True, slots=True)
class OneNode:
    """A node.

    row : As the fleet lists it; None where the aggregator that was asked does not know it.
    """

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
    """The nodes of a group.

    silent : Aggregators that said nothing, a line each.
    more : There are more than `MOST`.
    """

    group: str
    at: float
    rows: list[FleetRow] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    more: bool = False


class FleetTrees:
    """The newest tree of each group."""

    def __init__(self, calls: AdminCalls, wall: Callable[[], float]) -> None:
        self._calls, self._wall = calls, wall
        self._known: dict[str, FleetTree] = {}
        self._bodies: dict[str, bytes] = {}
        self._under_way: dict[str, asyncio.Task[FleetTree]] = {}

    async def tree(self, group: str) -> FleetTree:
        """Return a group's tree; a new one where the last is too old."""
        known = self._known.get(group)
        if known is not None and abs(self._wall() - known.at) < FRESH_S:
            return known
        task = self._under_way.get(group)
        if task is None:
            task = asyncio.create_task(self._collect(group))
            self._under_way[group] = task
            task.add_done_callback(lambda _: self._under_way.pop(group, None))
        # One who leaves ends nothing for the others.
        return await asyncio.shield(task)

    async def body(self, group: str) -> bytes:
        """Return a group's tree as JSON."""
        tree = await self.tree(group)
        if group not in self._bodies or self._known.get(group) is not tree:
            self._bodies[group] = msgspec.json.encode(tree)
        return self._bodies[group]

    async def _collect(self, group: str) -> FleetTree:
        tree = FleetTree(group, self._wall())
        level: list[tuple[str, ...]] = [()]
        turns, until = asyncio.Semaphore(AT_ONCE), asyncio.get_running_loop().time() + ASKS_S
        while level and not tree.more:
            found = await asyncio.gather(*(self._ask(group, path, turns, until) for path in level))
            below = list[tuple[str, ...]]()
            for path, (rows, silent) in zip(level, found, strict=True):
                tree.rows.extend(rows)
                tree.silent.extend(silent)
                # A wrong kind in a reply must lead nowhere twice.
                names = [row.node for row in rows if row.kind == "aggregator"]
                below += [(*path, name) for name in names if name not in path]
            level = [path for path in below if len(path) < DEEPEST]
            if len(tree.rows) > MOST:
                tree = FleetTree(group, tree.at, tree.rows[:MOST], tree.silent, more=True)
        self._known[group] = tree
        self._bodies.pop(group, None)
        return tree

    async def _ask(
        self, group: str, path: tuple[str, ...], turns: asyncio.Semaphore, until: float
    ) -> tuple[list[FleetRow], list[str]]:
        """Return the nodes that report to one aggregator, and what it did not say."""
        loop = asyncio.get_running_loop()
        rows, under, after, more = list[FleetRow](), "/".join(path), "", True
        while more and len(rows) <= MOST:
            try:
                async with turns:
                    if path and loop.time() >= until:
                        return rows, [f"{under}: {NOT_ASKED}"]
                    page = await self._page(group, under, after)
            except CallRefused as error:
                if not path:
                    raise
                return rows, [f"{under}: {error}"]
            at = self._wall()
            rows += [row_of(view, under, at) for view in page.nodes]
            more, after = page.more, page.nodes[-1].node if page.nodes else ""
        return rows, []

    async def _page(self, group: str, under: str, after: str) -> NodesPage:
        body = await ask_patiently(self._calls, f"/tree/{group}", path=under, after=after)
        return msgspec.json.decode(body, type=NodesPage)
