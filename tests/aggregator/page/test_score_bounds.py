"""Pictures of scores cost bounded bytes and questions, whoever replies and whoever asks."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from submerge_aggregator.history.file import NodeLevels, ScoresPage
from submerge_aggregator.page import watched
from submerge_aggregator.page.calls import CallRefused
from submerge_aggregator.page.fleet_tree import AT_ONCE, FleetTree, FleetTrees
from submerge_aggregator.page.watched import MOST_KEPT, ScoreTrees

NOON = 1_700_000_000.0
PAGE = 100


class Endless:
    """An aggregator whose pages of scores never end; `most` is of the questions open at a time."""

    def __init__(self) -> None:
        self.asked = self.open = self.most = 0
        self.goes_on = asyncio.Event()

    async def get(self, _: str, /, **query: str) -> bytes:
        self.asked += 1
        self.open += 1
        self.most = max(self.most, self.open)
        await self.goes_on.wait()
        self.open -= 1
        assert self.asked < 1000, "it is asked for ever"
        step = int(query["step"])
        names = [f"n{self.asked:06}-{i:03}" for i in range(PAGE)]
        nodes = [NodeLevels(name, bytes(2016)) for name in names]
        since = int(query["since"]) // step * step
        return msgspec.json.encode(ScoresPage("a", "g", step, since, nodes, more=True))

    async def tree(self, group: str) -> FleetTree:
        return FleetTree(group, NOON, msgspec.Raw(b"[]"))


def trees_of(endless: Endless) -> ScoreTrees:
    trees = FleetTrees(endless, lambda: NOON)
    trees.tree = endless.tree  # type: ignore[method-assign]
    return ScoreTrees(endless, trees, lambda: NOON)


def test_pages_that_never_end_are_asked_for_until_there_are_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was said until then is shown, and that there is more."""
    monkeypatch.setattr(watched, "MOST", 5 * PAGE)
    monkeypatch.setattr(watched, "MOST_SHOWN", PAGE)
    endless = Endless()
    endless.goes_on.set()
    found = msgspec.json.decode(asyncio.run(trees_of(endless).body("g", 24)))

    assert 6 == endless.asked
    assert (PAGE, True) == (len(found["nodes"]), found["more"])


def test_many_pictures_at_once_ask_no_more_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader who asks for every number of hours is refused; others' questions have their turn."""
    monkeypatch.setattr(watched, "MOST", PAGE)
    endless = Endless()

    async def asks() -> list[bytes | BaseException]:
        trees = trees_of(endless)
        pictures = [asyncio.ensure_future(trees.body("g", hours)) for hours in range(1, 169)]
        for _ in range(10):
            await asyncio.sleep(0)
        endless.goes_on.set()
        return await asyncio.gather(*pictures, return_exceptions=True)

    said = asyncio.run(asks())
    refused = [each for each in said if isinstance(each, CallRefused)]
    assert [503] * (168 - MOST_KEPT) == [each.status for each in refused]
    assert AT_ONCE == endless.most
