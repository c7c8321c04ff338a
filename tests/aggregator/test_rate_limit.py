"""What each child may say: so much at once, so much for long, and none at the others' cost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from submerge_aggregator.limits import PIECE, RateLimit


def taken(pace: RateLimit, who: str, *times: float) -> list[bool]:
    """Whether each of a child's messages is let in."""
    return [pace.takes(who, at) for at in times]


def test_a_burst_passes_and_no_more():
    """The messages that it sends at once, up to the burst."""
    assert [True] * 3 + [False] * 2 == taken(RateLimit(1.0, 3), "c", *[5.0] * 5)


def test_a_bucket_fills_with_time():
    """At the pace, whatever came in vain meanwhile."""
    pace = RateLimit(2.0, 1)

    assert [True, False, True, False, True] == taken(pace, "c", 0.0, 0.25, 0.5, 0.75, 1.0)


def test_a_bucket_holds_no_more_than_the_burst():
    """However long a child was quiet."""
    pace = RateLimit(1.0, 2)
    pace.takes("c", 0.0)

    assert [True, True, False] == taken(pace, "c", *[1e9] * 3)


def test_one_that_floods_costs_the_others_nothing():
    """Each has a bucket of its own."""
    pace = RateLimit(1.0, 2)
    taken(pace, "wild", *[0.0] * 1000)

    assert [True, True] == taken(pace, "c", 0.0, 0.0)


def test_a_long_message_costs_as_much_as_many():
    """One token, and one more for each piece: room and time to check are what is short."""
    pace = RateLimit(1.0, 10)

    assert [True, False, True] == [pace.takes("c", 0.0, size) for size in (5 * PIECE,) * 2 + (0,)]
    assert pace.takes("c", 3.0, 5 * PIECE)


def test_a_message_worth_more_than_a_full_bucket_takes_all_of_it():
    """It is let in, or it would never be; and nothing else then."""
    pace = RateLimit(1.0, 3)

    assert [True, False] == [pace.takes("c", 0.0, size) for size in (100 * PIECE, 0)]
    assert [False, True] == [pace.takes("c", at, 100 * PIECE) for at in (2.0, 5.0)]


@given(st.lists(st.floats(0.0, 10.0), max_size=60), st.floats(0.1, 20.0), st.integers(1, 10))
def test_no_sender_exceeds_the_rate(waits, rate, burst):
    """In any time: the burst, and what the time is worth."""
    pace, at, times = RateLimit(rate, burst), 0.0, list[float]()
    for wait in waits:
        at += wait
        if pace.takes("c", at):
            times.append(at)

    for i, begin in enumerate(times):
        for j in range(i, len(times)):
            assert j - i + 1 <= burst + rate * (times[j] - begin) + 1e-6


def test_buckets_are_bounded_and_the_longest_idle_falls_off():
    """Invented names cost no memory, and a flooding sender does not get a full bucket again."""
    pace = RateLimit(1.0, 1, most=3)
    taken(pace, "wild", 0.0)
    for number in range(100):
        pace.takes(f"made up {number}", 0.0)
        assert not pace.takes("wild", 0.0)

    assert 3 == len(pace)
