"""Refusals: each under its reason from the start, and a log that no flood can fill."""

from __future__ import annotations

import io
import threading

import pytest

from submerge.errors import KINDS
from submerge.protocol.messages import Reason
from submerge_aggregator.refusals import MINUTE_S, MOST_LINES, REASONS, Refusals
from submerge_client import logs


class Clock:
    """Time passes when the test sets it."""

    at = 100.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def refusals(clock):
    return Refusals(clock)


@pytest.fixture
def log():
    """The logged lines, without their time."""
    stream = io.StringIO()
    logs.begin("info", stream=stream)
    yield lambda: [line.split(maxsplit=1)[1] for line in stream.getvalue().splitlines()]
    logs.log.handlers.clear()


def test_all_reasons_are_there_from_the_start(refusals):
    """Those of codec and machine among them, at 0: an alarm can rest on each."""
    said = {reason.name.lower() for reason in Reason} - {"ack"}

    assert said | KINDS.keys() < REASONS.keys()
    assert dict.fromkeys(REASONS, 0) == refusals.counts


def test_a_reason_that_there_is_not_is_a_bug(refusals):
    """The set is closed."""
    with pytest.raises(KeyError):
        refusals.count("whim")


def test_each_is_logged_once_a_minute_and_counted_each_time(refusals, clock, log):
    """By sender and reason."""
    for _ in range(3):
        refusals.count("not_finite", "c", why="NaN")
        refusals.count("shape", "c")
        refusals.count("shape", "d")
    clock.at += MINUTE_S
    refusals.count("shape", "d")

    assert [
        "warning child refused node=c reason=not_finite why=NaN",
        "warning child refused node=c reason=shape",
        "warning child refused node=d reason=shape",
        "warning child refused node=d reason=shape",
    ] == log()
    assert (3, 7) == (refusals.counts["not_finite"], refusals.counts["shape"])


def test_a_flood_under_many_names_does_not_fill_the_log(refusals, clock, log):
    """So many lines in a minute, and in the next one their number."""
    for number in range(10_000):
        refusals.count("spoofed", f"n{number}")
    assert MOST_LINES == len(log())

    clock.at += MINUTE_S
    refusals.count("spoofed", "c")

    assert [
        f"warning messages refused, not logged one by one count={10_000 - MOST_LINES}",
        "warning child refused node=c reason=spoofed",
    ] == log()[MOST_LINES:]
    assert 10_001 == refusals.counts["spoofed"]


def test_what_honest_nodes_do_is_counted_and_not_logged(refusals, log):
    """Not now, taken back, overtaken: there is nothing to look into."""
    for reason in ("unavailable", "empty", "overtaken", "stranger"):
        refusals.count(reason, "c")

    assert [] == log()
    assert 4 == sum(refusals.counts.values())


def test_no_count_is_lost_between_threads(refusals):
    """Transports count on threads of their own."""

    def count() -> None:
        for _ in range(2000):
            refusals.count("throttled", "c")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 8000 == refusals.counts["throttled"]
