"""FleetTree: every node below an aggregator, asked for level by level, for all who look at once.

It is asked for only while a page is open, and at most every `FRESH_S`: five pages cost what one
does. Aggregators are asked `AT_ONCE` at a time; one that says nothing is named, and the rest is
shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from submerge.protocol.messages import DEEPEST
from submerge_aggregator.page.calls import AdminCalls, CallRefused, ask_patiently
from submerge_aggregator.page.fleet_rows import FleetRow, row_of
from submerge_aggregator.questions.views import NodesPage

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

    at : When it was asked for, Unix seconds.
    silent : Aggregators that said nothing, a line each.
    more : There are more than `MOST`.
    """

    group: str
    at: float
    rows: list[FleetRow] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    more: bool = False


class FleetTrees:
    """The newest tree of each group.

    wall : Wall time, in seconds.
    """

    def __init__(self, calls: AdminCalls, wall: Callable[[], float]) -> None:
        self._calls, self._wall = calls, wall
        self._known: dict[str, FleetTree] = {}
        self._bodies: dict[str, bytes] = {}
        self._under_way: dict[str, asyncio.Task[FleetTree]] = {}

    async def tree(self, group: str) -> FleetTree:
        """Return a group's tree; a new one where the last is too old.

        Raises CallRefused if the aggregator itself does not answer.
        """
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
        """Return the nodes that report to one aggregator, and what it did not say.

        until : on the event loop's clock; no aggregator below is asked later
        """
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
