"""Rows that come fast share a step; a row on its own waits for none; none waits too long."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge_client.sensors.gather import AHEAD, BLOCK, RowGatherer
from submerge_client.sensors.pace import MANY_BYTES, SPAN_S, ReadPace
from support.patience import until

STOP = threading.Event()


class Woken:
    """A gatherer with a loop that only counts how often it was woken."""

    def __init__(self, gather_s):
        self.times = 0
        self.gatherer = RowGatherer(gather_s, self._wake)

    def _wake(self):
        self.times += 1

    def put(self, *numbers):
        """A block of rows, each with its number."""
        self.gatherer.put(np.array(numbers, dtype=float).reshape(-1, 1), STOP)

    def take(self, steady):
        """Numbers of the rows that are taken."""
        rows = self.gatherer.take(steady)
        return None if rows is None else rows[:, 0].tolist()


def test_a_row_on_its_own_is_taken_at_once():
    """However long ago the one before came."""
    woken = Woken(1.0)
    for number, at in enumerate([0.0, 1.5, 60.0]):
        woken.put(number)

        assert number + 1 == woken.times
        assert [number] == woken.take(at)
        assert at + 1.0 == woken.gatherer.due_at
        assert woken.take(at + 1.0) is None  # the window closes
        assert math.inf == woken.gatherer.due_at


def test_rows_within_a_window_share_a_step():
    """The first opens it; the others wait for its end, wake nobody, and open the next."""
    woken = Woken(1.0)
    woken.put(0)
    woken.take(0.0)
    for number in range(1, 10):
        woken.put(number)

    assert 1 == woken.times
    assert 1.0 == woken.gatherer.due_at
    assert list(range(1, 10)) == woken.take(1.0)
    assert 2.0 == woken.gatherer.due_at


def test_a_full_block_does_not_wait():
    """Where rows come in hundreds a second nothing is gained by waiting."""
    woken = Woken(1.0)
    woken.put(0)
    woken.take(0.0)
    for number in range(BLOCK):
        woken.put(number)

    assert 2 == woken.times
    assert BLOCK == len(woken.take(0.1))


def test_without_a_time_each_block_is_taken_by_itself():
    """`gather_s = 0`: as the sensor hands them over, at once."""
    woken = Woken(0.0)
    woken.put(0)
    woken.put(1, 2)

    assert 2 == woken.times
    assert [[0], [1, 2], None] == [woken.take(0.0) for _ in range(3)]
    assert math.inf == woken.gatherer.due_at


@given(
    st.lists(st.tuples(st.floats(0.0, 3.0), st.integers(1, BLOCK + 5)), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.25, 1.0]),
)
def test_every_row_is_taken_once_in_order_and_in_time(arrivals, gather_s):
    """At any times: a loop that wakes when it is woken or due takes each row within `gather_s`."""
    woken = Woken(gather_s)
    came, taken, now, number, seen = dict[float, float](), list[float](), 0.0, 0, 0

    def take(at):
        rows = woken.take(at) or []
        taken.extend(rows)
        assert all(at - came[row] <= gather_s + 1e-9 for row in rows)

    for wait, rows in arrivals:
        while woken.gatherer.due_at <= now + wait:
            take(woken.gatherer.due_at)
        now += wait
        came |= dict.fromkeys(map(float, range(number, number + rows)), now)
        woken.put(*range(number, number + rows))
        number += rows
        while seen < woken.times:
            seen += 1
            take(now)
    while woken.gatherer.due_at < math.inf:
        take(woken.gatherer.due_at)

    assert list(range(number)) == taken


def test_a_sensor_waits_while_the_node_is_behind():
    """It goes on when there is room; one that is stopped meanwhile drops its row."""
    woken, stop = Woken(1.0), threading.Event()
    woken.put(*range(AHEAD))
    sensor = threading.Thread(target=lambda: woken.put(-1.0))
    sensor.start()

    assert AHEAD == len(woken.take(0.0))
    until(lambda: not sensor.is_alive())
    assert [-1.0] == woken.take(0.0)

    woken.put(*range(AHEAD))
    stop.set()
    woken.gatherer.put(np.zeros((1, 1)), stop)
    assert AHEAD == len(woken.take(0.0))
    assert woken.take(0.0) is None


class FakeClock:
    """A steady clock that is set by hand."""

    now = 0.0

    def __call__(self):
        return self.now


def test_slow_rows_are_followed_by_a_pause():
    """Ten rows a second, of some hundred bytes."""
    clock = FakeClock()
    pace = ReadPace(0.7, steady=clock)
    pauses = []
    for _ in range(20):
        pauses.append(pace.pause_after(7, 3000))
        clock.now += 0.7

    assert {0.7} == set(pauses)


@pytest.mark.parametrize(("rows", "size"), [(BLOCK, 100), (1, MANY_BYTES)])
def test_after_many_rows_or_bytes_the_pipe_is_read_at_once(rows, size):
    """In that second and the next: the writer must not wait."""
    clock = FakeClock()
    pace = ReadPace(1.0, steady=clock)

    assert 0.0 == pace.pause_after(rows, size)
    assert 0.0 == pace.pause_after(1, 10)
    clock.now += SPAN_S
    assert 0.0 == pace.pause_after(1, 10)
    clock.now += SPAN_S
    assert 1.0 == pace.pause_after(1, 10)


def test_a_line_that_has_come_in_part_is_read_to_its_end():
    """A row over a whole pipe would need a pause for each part."""
    assert 0.0 == ReadPace(1.0, steady=FakeClock()).pause_after(0, 100)
