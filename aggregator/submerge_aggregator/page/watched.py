"""Watched: a fleet as the page sees it: questions to it, its newest trees, and what changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from submerge_aggregator.history.answers import ScoreSteps
from submerge_aggregator.history.file import ScoresPage
from submerge_aggregator.page.calls import AdminCalls, CallRefused
from submerge_aggregator.page.fleet_tree import (
    AT_ONCE,
    FRESH_S,
    MOST,
    Collector,
    FleetTrees,
    Shared,
)

FRESH_SCORES_S = 60.0
"""How long levels are shown before they are asked for again: a step has one minute at least, and
nodes report every few minutes."""

MOST_HOURS = 168

STEPS = 96
"""Steps of a picture, or somewhat fewer; of 24 hours each is of 15 minutes."""

MOST_SHOWN = 4000
"""Nodes of a picture: the worst."""

FALLING = bytes(range(255, -1, -1))
"""Each level as what sorts the higher one first."""

MOST_KEPT = 16
"""Pictures that are kept, and pictures that are under way at a time."""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The levels of a node, and the aggregators above it."""

    under: str
    node: str
    levels: bytes


@dataclass(frozen=True, slots=True)
class ScoreTree:
    """The levels of a group's nodes, the worst first; times are as in `ScoresPage`."""

    group: str
    at: float
    first_s: int
    step_s: int
    nodes: list[ScoreRow]
    silent: list[str]  # aggregators that said nothing, a line each
    more: bool


class ScoreTrees:
    """The newest levels of each group, as JSON of a `ScoreTree`."""

    def __init__(self, calls: AdminCalls, trees: FleetTrees, wall: Callable[[], float]) -> None:
        self._calls, self._trees = calls, trees
        self._bodies = Shared(self._collect, wall, fresh_s=FRESH_SCORES_S, most=MOST_KEPT)
        self._turns = asyncio.Semaphore(AT_ONCE)  # of all pictures: who looks may ask for many

    async def body(self, group: str, hours: int) -> bytes:
        """Return a group's levels; new ones where the last are too old."""
        if not 1 <= hours <= MOST_HOURS:
            raise CallRefused(400, f"expected 1 to {MOST_HOURS} hours, got {hours}")
        return await self._bodies.get((group, hours))

    async def _collect(self, key: tuple[str, int], at: float) -> bytes:
        group, hours = key
        step_s = step_of(hours)
        steps = ScoreSteps(max(0, int(at) - hours * 3600 + step_s), step_s)
        fleet = await self._trees.tree(group)
        paths = [""] + [
            f"{row.under}/{row.node}".lstrip("/") for row in fleet.rows if row.kind == "aggregator"
        ]
        rows, count = list[ScoreRow](), steps.count(at)
        collector = Collector(self._calls, self._turns)
        query = {"since": str(steps.since_s), "step": str(step_s)}

        async def silence(under: str) -> list[str]:
            def take(page: ScoresPage) -> bool:
                found = ((each.node, _fitted(each.levels, count)) for each in page.nodes)
                rows.extend(ScoreRow(under, node, levels) for node, levels in found)
                return len(rows) <= MOST

            error = await collector.collect(f"/scores/{group}", under, ScoresPage, take, **query)
            return [] if error is None else [f"{under}: {error}".removeprefix(": ")]

        silent = [line for lines in await asyncio.gather(*map(silence, paths)) for line in lines]
        rows.sort(key=lambda row: (-max(row.levels), _reversed(row.levels), row.under, row.node))
        more = fleet.more or len(rows) > MOST_SHOWN
        shown = rows[:MOST_SHOWN]
        return msgspec.json.encode(ScoreTree(group, at, steps.first_s, step_s, shown, silent, more))


def step_of(hours: int) -> int:
    """Return the step in which so many hours are shown: whole minutes, `STEPS` of them at most."""
    return 60 * -(-hours * 60 // STEPS)


def _fitted(levels: bytes, count: int) -> bytes:
    """Return so many levels: another clock may be a step ahead or behind."""
    return levels[:count].ljust(count, b"\0")


def _reversed(levels: bytes) -> bytes:
    """Return a key that sorts what is bad now before what was."""
    return levels[::-1].translate(FALLING)


LOOK_S = 1.0
"""How long marks are told again before it is looked for changes: each open page asks every 2 s."""


class Watched:
    """What all open pages share."""

    def __init__(self, calls: AdminCalls, wall: Callable[[], float]) -> None:
        self.calls, self.wall = calls, wall
        self.trees = FleetTrees(calls, wall)
        self.scores = ScoreTrees(calls, self.trees, wall)
        self._marks = Shared(self._look, lambda: asyncio.get_running_loop().time(), fresh_s=LOOK_S)

    async def marks(self) -> dict[str, str]:
        """Return a short text for each thing that is shown; what differs is worth a question."""
        return await self._marks.get("")

    async def _look(self, *_: object) -> dict[str, str]:
        wall = self.wall()  # it alone says when trees are worth asking for
        marks = {"fleet": str(int(wall // FRESH_S)), "scores": str(int(wall // FRESH_SCORES_S))}
        try:
            alarms = msgspec.json.decode(await self.calls.get("/alarms/mark"))
        except CallRefused as error:
            return marks | {"link": str(error)}
        return marks | {"alarms": alarms, "link": "up"}
