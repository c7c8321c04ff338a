"""Watches: what a stream has to say, and how many there may be."""

from __future__ import annotations

import asyncio

import pytest

from submerge_aggregator.downlink import watches as module
from submerge_aggregator.downlink.watches import Watches


@pytest.fixture
def few(monkeypatch):
    """Four streams in all, two for each."""
    monkeypatch.setattr(module, "MOST_STREAMS", 4)
    return Watches(2)


def test_no_sender_holds_more_than_so_many(few):
    """One that opens all there are leaves the others theirs; what it ends it may open again."""
    held = [few.begin("wild", "wild", "g") for _ in range(5)]
    assert [True, True, False, False, False] == [watch is not None for watch in held]
    assert few.begin("c", "c", "g")

    few.end(held[0])
    assert few.begin("wild", "wild", "g")


def test_all_together_are_bounded(few):
    """The bound holds over all senders."""
    held = [few.begin(f"c{number}", "c", "g") for number in range(6)]

    assert 4 == sum(watch is not None for watch in held)


def test_a_late_watch_hears_the_newest_of_each_kind():
    """And nothing of another group."""
    watches = Watches(2)
    for group, data in (("", b"hello"), ("g", b"old"), ("g", b"new"), ("h", b"other")):
        watches.publish(group, data)
    watch = watches.begin("c", "c", "g")

    assert [b"hello", b"new"] == asyncio.run(watch.news())
