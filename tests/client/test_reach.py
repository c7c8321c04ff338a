"""What a log says of a parent that comes and goes."""

from __future__ import annotations

import io

import pytest

from submerge_client import logs
from submerge_client.uplink.parent_link import REMIND_S, START_S, Reach


class Clock:
    """Time passes when the test says so."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def log():
    """What was said, without time and level."""
    stream = io.StringIO()
    logs.begin("debug", stream=stream)
    yield lambda: [line.split(maxsplit=2)[2] for line in stream.getvalue().splitlines()]
    logs.log.handlers.clear()


def test_a_parent_that_goes_and_comes_back_is_said_once_each(log):
    """At once, with the reason."""
    reach = Reach(clock := Clock())
    reach.opened()
    clock.at += START_S
    reach.parted("no route")
    reach.opened()

    assert ['parent unreachable, trying on why="no route"', "parent reached again"] == log()
    assert reach.why is None


def test_a_parent_that_starts_a_moment_later_is_no_warning(log):
    """Nothing is logged if it is there within seconds; if not, `due_s` says when to look."""
    clock = Clock()
    reach = Reach(clock)
    reach.parted("refused")
    assert pytest.approx(START_S) == reach.due_s
    clock.at += START_S / 2
    reach.remind()
    reach.opened()
    assert [] == log()

    reach = Reach(clock)
    reach.parted("refused")
    clock.at += START_S
    reach.remind()
    assert ["parent unreachable, trying on why=refused"] == log()


def test_a_way_that_fails_for_many_reasons_is_said_once_a_minute(log):
    """The newest of them is said then."""
    clock = Clock()
    reach = Reach(clock)
    clock.at += START_S
    for n in range(100):
        reach.parted(f"reason-{n}")
        reach.remind()
        clock.at += 1.0

    assert [
        "parent unreachable, trying on why=reason-0",
        f"parent still unreachable why=reason-{REMIND_S:.0f}",
    ] == log()


def test_a_parent_that_comes_and_goes_is_said_once_a_minute(log):
    """And that it is back only if it was said that it had gone."""
    clock = Clock()
    reach = Reach(clock)
    clock.at += START_S
    for _ in range(100):
        reach.parted("gone")
        clock.at += 0.5
        reach.opened()
        clock.at += 0.5

    assert 4 == len(log())


def test_one_that_stays_away_is_reminded_of_when_it_is_time(log):
    """`due_s` says when; before that nothing is said."""
    clock = Clock()
    reach = Reach(clock)
    clock.at += START_S
    reach.parted("gone")
    clock.at += REMIND_S - 1.0
    reach.remind()
    assert 1 == len(log())
    assert pytest.approx(1.0) == reach.due_s
    clock.at += 1.0
    reach.remind()

    assert 2 == len(log())


def test_a_parent_that_wants_less_is_said_once_a_minute(log):
    """It is no refusal, and no person has to look."""
    clock = Clock()
    reach = Reach(clock)
    for _ in range(100):
        reach.slowed("too many messages")
        clock.at += 1.0

    assert ['the parent asks for less, trying later why="too many messages"'] * 2 == log()
    assert reach.why is None
