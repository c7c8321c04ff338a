"""What has changed, as all open pages ask every two seconds: looked at once for all of them."""

from __future__ import annotations

import asyncio

from submerge_aggregator.page.calls import CallRefused
from submerge_aggregator.page.fleet_tree import FRESH_S, Shared
from submerge_aggregator.page.watched import LOOK_S, Watched

NOON = 1_700_000_000.0


class Calls:
    """An admin API that counts how often it is asked; it may refuse."""

    def __init__(self) -> None:
        self.asked, self.refuses = 0, False

    async def get(self, path: str, /, **query: str) -> bytes:
        self.asked += 1
        await asyncio.sleep(0)
        if self.refuses:
            raise CallRefused(503, "it is starting")
        return b'"%d"' % self.asked


def test_many_pages_cost_one_look():
    """Those who ask within a moment hear the same."""
    calls = Calls()

    async def ask() -> list[dict[str, str]]:
        watched = Watched(calls, lambda: NOON)
        return await asyncio.gather(*(watched.marks() for _ in range(50)))

    found = asyncio.run(ask())
    assert 1 == calls.asked
    assert [found[0]] * 50 == found
    assert {"alarms": "1", "link": "up"}.items() <= found[0].items()


def test_what_has_changed_is_heard_though_the_clock_stands():
    """The wall clock of an aggregator may be set back: marks do not wait for it."""
    calls = Calls()

    async def ask() -> list[dict[str, str]]:
        watched = Watched(calls, lambda: NOON)
        first = await watched.marks()
        await asyncio.sleep(1.1 * LOOK_S)
        return [first, await watched.marks()]

    assert ["1", "2"] == [each["alarms"] for each in asyncio.run(ask())]


def test_an_aggregator_that_refuses_is_said_and_trees_are_asked_on():
    calls = Calls()
    calls.refuses = True
    marks = asyncio.run(Watched(calls, lambda: NOON).marks())

    assert "it is starting" == marks["link"]
    assert {"fleet", "scores", "link"} == set(marks)


def test_what_was_collected_before_a_mark_is_collected_again_after_it():
    """A page that asks because of the mark would else get the old tree, until the next one."""
    now, collected = [10 * FRESH_S - 0.5], list[float]()

    async def collect(_: str, at: float) -> int:
        collected.append(at)
        return len(collected)

    async def ask(times: list[float]) -> list[int]:
        shared, found = Shared(collect, lambda: now[0], fresh_s=FRESH_S), list[int]()
        for now[0] in times:
            found.append(await shared.get("g"))
        return found

    times = [10 * FRESH_S + each for each in (-0.5, -0.1, 0.1, FRESH_S - 0.1, FRESH_S + 0.1)]
    assert [1, 1, 2, 2, 3] == asyncio.run(ask(times))
