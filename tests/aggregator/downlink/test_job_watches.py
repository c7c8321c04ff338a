"""Messages of jobs on watches: for children that read them, after all others, in bounded memory."""

from __future__ import annotations

import asyncio

from submerge_aggregator.downlink.watches import ALL_JOB_BYTES, JOB_BYTES, JOBS_AT_ONCE, Watches


def test_a_child_that_does_not_read_jobs_gets_none():
    """One of an earlier version; and one of another name or group."""
    watches = Watches(8)
    reads = watches.begin("c", "c", "g", jobs=True)
    others = [
        watches.begin("d", "d", "g", jobs=True),
        watches.begin("c", "c", "h", jobs=True),
        watches.begin("c", "c", "g"),
    ]
    watches.push_job("c", "g", b"job")

    assert [b"job"] == asyncio.run(reads.news())
    assert not any(each._stirred.is_set() for each in others)


def test_jobs_go_after_all_others_and_few_at_a_time():
    """A model that comes while they wait overtakes them."""
    watches = Watches(8)
    watch = watches.begin("c", "c", "g", jobs=True)
    for number in range(JOBS_AT_ONCE + 1):
        watches.push_job("c", "g", b"%d" % number)
    watches.publish("g", b"model")
    first = asyncio.run(watch.news())
    watches.push_more("c", "g", b"answer")

    assert [b"model", *(b"%d" % number for number in range(JOBS_AT_ONCE))] == first
    assert [b"answer", b"%d" % JOBS_AT_ONCE] == asyncio.run(watch.news())


def test_what_waits_is_bounded_for_each_and_for_all():
    """And what a stream held is given back when it ends."""
    watches, data = Watches(8), bytes(1 << 16)
    names = [f"c{number}" for number in range(2 * ALL_JOB_BYTES // JOB_BYTES)]
    begun = [watches.begin(name, name, "g", jobs=True) for name in names]
    for name in names:
        for _ in range(2 * JOB_BYTES // len(data)):
            watches.push_job(name, "g", data)
    held = [len(watch._jobs) * len(data) for watch in begun]

    assert JOB_BYTES == max(held)
    assert ALL_JOB_BYTES == sum(held)
    for watch in begun:
        watches.end(watch)
    assert 0 == watches._room.used
    watches.push_job(names[0], "g", data)
    assert {} == watches._of_jobs


def test_a_child_with_many_streams_takes_the_room_of_one():
    """The newest has its messages; when that ends, the one before it has those that follow."""
    watches, data = Watches(8), bytes(1 << 16)
    begun = []
    for _ in range(8):
        begun.append(watches.begin("c", "c", "g", jobs=True))
        for _ in range(2 * JOB_BYTES // len(data)):
            watches.push_job("c", "g", data)

    assert [0] * 7 + [JOB_BYTES] == [len(watch._jobs) * len(data) for watch in begun]
    assert JOB_BYTES == watches._room.used
    watches.end(begun[-1])
    watches.push_job("c", "g", b"job")
    assert [b"job"] == asyncio.run(begun[-2].news())
