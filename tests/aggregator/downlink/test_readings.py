"""Readings: of one sender a few messages come in at a time, and its others wait."""

from __future__ import annotations

import asyncio

import pytest

from submerge_aggregator.downlink import readings as module
from submerge_aggregator.downlink.readings import CallsUnderWay, TooMany


async def read(readings: CallsUnderWay, who: str, begun: list[str], end: asyncio.Event) -> None:
    """Be read until the end."""
    async with readings.place(who):
        begun.append(who)
        await end.wait()


@pytest.fixture
def few(monkeypatch):
    """Two are read, and four begun."""
    monkeypatch.setattr(module, "MOST_READ", 2)
    monkeypatch.setattr(module, "MOST_BEGUN", 4)
    return CallsUnderWay()


def test_some_are_read_and_the_others_wait_their_turn(few):
    """All of them are read in the end; a sender with one call does not wait."""

    async def crowd() -> tuple[list[str], list[str]]:
        begun, end = list[str](), asyncio.Event()
        calls = [asyncio.create_task(read(few, who, begun, end)) for who in ("a",) * 4 + ("b",)]
        await asyncio.sleep(0)
        at_first = list(begun)
        end.set()
        await asyncio.gather(*calls)
        return at_first, begun

    at_first, begun = asyncio.run(crowd())

    assert ["a", "a", "b"] == sorted(at_first)
    assert ["a"] * 4 + ["b"] == sorted(begun)
    assert 0 == len(few)


def test_no_sender_begins_more_than_so_many(few):
    """Whether they are read or wait; what has ended makes room."""

    async def crowd() -> None:
        begun, end = list[str](), asyncio.Event()
        calls = [asyncio.create_task(read(few, "a", begun, end)) for _ in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(TooMany):
            await read(few, "a", begun, end)
        calls.pop().cancel()
        await asyncio.sleep(0)
        calls.append(asyncio.create_task(read(few, "a", begun, end)))
        end.set()
        await asyncio.gather(*calls)

    asyncio.run(crowd())

    assert 0 == len(few)
