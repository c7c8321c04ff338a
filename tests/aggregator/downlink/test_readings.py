"""Readings: so many messages come in at a time, of one sender a few; senders take turns."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge_aggregator.downlink.readings import (
    COPIES,
    LEAST_PLACES,
    CallsUnderWay,
    ReadingLimits,
    TooMany,
)

SIZE = 1000


def calls_of(places: int, *, most_each: int = 1000, all_together: int = 5000) -> CallsUnderWay:
    """Return calls of which so many are read at once."""

    class Few(ReadingLimits):
        calls_each = most_each
        calls = all_together

    return CallsUnderWay(SIZE, Few(max_connections=10, groups=1), COPIES * SIZE * places)


async def read(calls: CallsUnderWay, who: str, begun: list[str], end: asyncio.Event) -> None:
    """Be read until the end."""
    async with calls.place(who):
        begun.append(who)
        await end.wait()


def test_some_are_read_and_the_others_wait_their_turn():
    """All of them are read in the end; a sender with one call does not wait for one with many."""

    async def crowd() -> tuple[list[str], list[str]]:
        calls = calls_of(16)  # two for each sender
        begun, end = list[str](), asyncio.Event()
        tasks = [asyncio.create_task(read(calls, who, begun, end)) for who in ("a",) * 4 + ("b",)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        at_first = list(begun)
        end.set()
        await asyncio.gather(*tasks)
        assert (0, 0, 0) == (len(calls), calls.read, calls.used)
        return at_first, begun

    at_first, begun = asyncio.run(crowd())

    assert ["a", "a", "b"] == sorted(at_first)
    assert ["a"] * 4 + ["b"] == sorted(begun)


def test_a_newcomer_waits_for_one_place_however_many_calls_the_others_have_begun():
    """All places are taken by eight senders with more calls each; then a ninth one comes."""

    async def crowd() -> list[str]:
        calls = calls_of(8)
        begun, ends = list[str](), {who: asyncio.Event() for who in "abcdefghi"}
        tasks = [
            asyncio.create_task(read(calls, who, begun, ends[who])) for who in "abcdefgh" * 5 + "i"
        ]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert "abcdefgh" == "".join(begun)
        for who in "ab":  # each of a's and b's calls ends as soon as it is read
            ends[who].set()
        while "i" not in begun:
            await asyncio.sleep(0)
        for end in ends.values():
            end.set()
        await asyncio.gather(*tasks)
        return begun

    assert crowd_index(asyncio.run(crowd())) <= 9


def crowd_index(begun: list[str]) -> int:
    """Return which of all to be read the newcomer was."""
    return begun.index("i")


@given(st.integers(1, 2**24), st.integers(1, 2**28))
def test_what_is_read_stays_within_the_budget(size, budget):
    """With messages so large that too few fit, a few are read all the same."""
    calls = CallsUnderWay(size, ReadingLimits(budget))

    assert 1 <= calls.places_each <= calls.places
    assert calls.places == LEAST_PLACES or calls.places * COPIES * size <= budget


def test_no_sender_begins_more_than_so_many():
    """Whether they are read or wait; what has ended makes room."""

    async def crowd() -> None:
        few = calls_of(16, most_each=4)
        begun, end = list[str](), asyncio.Event()
        tasks = [asyncio.create_task(read(few, "a", begun, end)) for _ in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(TooMany):
            await read(few, "a", begun, end)
        tasks.pop().cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(read(few, "a", begun, end)))
        end.set()
        await asyncio.gather(*tasks)
        assert 0 == len(few)

    asyncio.run(crowd())


def test_all_senders_together_begin_no_more_than_so_many():
    """However many names or connections they have."""

    async def crowd() -> None:
        few = calls_of(16, all_together=5)
        end = asyncio.Event()
        tasks = [asyncio.create_task(read(few, f"{i}", [], end)) for i in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(TooMany):
            await read(few, "another", [], end)
        end.set()
        await asyncio.gather(*tasks)
        assert 0 == len(few)

    asyncio.run(crowd())


def test_a_call_that_is_cancelled_takes_no_other_one_with_it():
    """A place comes free between its cancellation and its end."""

    async def crowd() -> list[str]:
        calls = calls_of(4)
        begun, ends = list[str](), {who: asyncio.Event() for who in "abcdef"}
        tasks = [asyncio.create_task(read(calls, who, begun, ends[who])) for who in "abcdef"]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert "abcd" == "".join(begun)
        ends["a"].set()  # its task is the next to run, and gives its place to e
        tasks[4].cancel()
        for end in ends.values():
            end.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results.pop(4), asyncio.CancelledError)
        assert [None] * 5 == results
        assert (0, 0) == (len(calls), calls.used)
        return begun

    assert "abcdf" == "".join(asyncio.run(crowd()))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40))
def test_calls_that_are_taken_back_leave_nothing(steps):
    """Whether they were read or waited, and in whatever order."""

    async def crowd() -> None:
        calls, end = calls_of(4), asyncio.Event()
        tasks: list[asyncio.Task[None]] = []
        for who, cancels in steps:
            tasks.append(asyncio.create_task(read(calls, who, [], end)))
            await asyncio.sleep(0)
            assert calls.read <= calls.places
            if cancels:
                tasks.pop(len(tasks) // 2).cancel()
        end.set()
        await asyncio.gather(*tasks)
        for _ in range(3):
            await asyncio.sleep(0)
        assert (0, 0) == (len(calls), calls.read)
        assert not calls._turns

    asyncio.run(crowd())
