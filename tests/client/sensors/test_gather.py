"""Rows that come fast share a step; a row on its own waits for none; none waits too long."""

from __future__ import annotations

import math
import os
import threading
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submerge_client.sensors import ndjson
from submerge_client.sensors.gather import AHEAD, BLOCK, RowGatherer
from submerge_client.sensors.lines import MANY_BYTES, SPAN_S, ReadPace
from support.patience import until


class Woken:
    """A gatherer with a loop that only counts how often it was woken."""

    def __init__(self, gather_s):
        self.times = 0
        self.gatherer = RowGatherer(gather_s, self._wake)

    def _wake(self):
        self.times += 1

    def put(self, *numbers, waited=False):
        """A block of rows, each with its number."""
        self.gatherer.put(np.array(numbers, dtype=float).reshape(-1, 1), waited=waited)

    def take(self, steady):
        """Numbers of the rows that are taken."""
        taken = self.gatherer.take(steady)
        return None if taken is None else taken.rows[:, 0].tolist()


def test_what_is_held_stays_with_its_rows():
    """Also beside rows of which nothing is."""
    gatherer = RowGatherer(1.0, lambda: None)
    rows, held = np.ones((2, 1)), np.array([[True], [False]])
    gatherer.put(rows)
    gatherer.put(rows, held=held)
    gatherer.put(rows)
    taken = gatherer.take(0.0)
    plain = RowGatherer(0.0, lambda: None)
    plain.put(rows)

    assert [0, 0, 1, 0, 0, 0] == taken.held[:, 0].tolist()
    assert plain.take(0.0).held is None


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
    """The first opens it; the others wait for its end without waking the node."""
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


def test_rows_that_have_waited_are_taken_at_once():
    """With those that wait for others, whose window closes."""
    woken = Woken(1.0)
    woken.put(0)
    woken.take(0.0)
    woken.put(1)
    woken.put(2, 3, waited=True)

    assert 2 == woken.times
    assert [1, 2, 3] == woken.take(0.5)
    assert math.inf == woken.gatherer.due_at


def test_without_a_time_each_block_is_taken_by_itself():
    """`gather_s = 0`: as the sensor hands them over, at once."""
    woken = Woken(0.0)
    woken.put(0)
    woken.put(1, 2)

    assert 2 == woken.times
    assert [[0], [1, 2], None] == [woken.take(0.0) for _ in range(3)]
    assert math.inf == woken.gatherer.due_at


@given(
    st.lists(
        st.tuples(st.floats(0.0, 3.0), st.integers(1, BLOCK + 5), st.booleans()),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([0.0, 0.25, 1.0]),
)
@example([(0.0, 1, False), (0.1, BLOCK - 1, False), (0.1, 2, True)], 1.0)
def test_every_row_is_taken_once_in_order_and_in_time(arrivals, gather_s):
    """At any times: a loop that wakes when it is woken or due takes each row within `gather_s`.

    One that has waited at its source is taken at once.
    """
    woken = Woken(gather_s)
    came, taken, now, number, seen = dict[float, float](), list[float](), 0.0, 0, 0

    def take(at):
        rows = woken.take(at) or []
        taken.extend(rows)
        assert all(at - came[row] <= gather_s + 1e-9 for row in rows)

    for wait, rows, waited in arrivals:
        while woken.gatherer.due_at <= now + wait:
            take(woken.gatherer.due_at)
        now += wait
        at = now - waited * gather_s
        came |= dict.fromkeys(map(float, range(number, number + rows)), at)
        woken.put(*range(number, number + rows), waited=waited)
        number += rows
        while seen < woken.times:
            seen += 1
            take(now)
    while woken.gatherer.due_at < math.inf:
        take(woken.gatherer.due_at)

    assert list(range(number)) == taken


def test_a_sensor_waits_while_the_node_is_behind():
    """It goes on when there is room."""
    woken = Woken(1.0)
    woken.put(*range(AHEAD))
    sensor = threading.Thread(target=lambda: woken.put(-1.0))
    sensor.start()

    assert AHEAD == len(woken.take(0.0))
    until(lambda: not sensor.is_alive())
    assert [-1.0] == woken.take(0.0)


class Counted(np.ndarray):
    """A block of rows that says when they are counted: `put` does so while it has the lock."""

    counted = threading.Event()

    def __len__(self):
        self.counted.set()
        return super().__len__()


def test_a_sensor_that_waits_at_the_end_goes_on_and_its_rows_are_kept():
    """At once, though nothing was taken; and so does what it hands over after that."""
    woken = Woken(1.0)
    woken.put(*range(AHEAD))
    rows = np.full((1, 1), -1.0).view(Counted)
    sensor = threading.Thread(target=woken.gatherer.put, args=(rows,), daemon=True)
    sensor.start()
    until(rows.counted.is_set)
    woken.gatherer.end()  # it gets the lock when the sensor waits
    until(lambda: not sensor.is_alive())
    woken.put(-2.0)

    assert AHEAD == len(woken.take(0.0))
    assert [-1.0, -2.0] == woken.take(0.0)


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


class SlowPipe:
    """A writer, a pipe, its reader, a gatherer and a node, all on one clock that is set by hand.

    It is the reader's `stop`: asked for it with nothing to read, time goes on to the next row;
    a wait lets time go on, too. Rows have the time at which they are written.
    """

    def __init__(self, arrivals, gather_s, monkeypatch):
        self.now, self.latest_s = 0.0, 0.0
        self._arrivals, self._gather_s = list(arrivals)[::-1], gather_s
        self._gatherer = RowGatherer(gather_s, self._take)
        self._in_pipe, self._is_handing = 0, False
        there, self._into = os.pipe()
        self._out = os.fdopen(there, "rb", buffering=0)
        monkeypatch.setattr(ndjson, "ReadPace", partial(ReadPace, steady=lambda: self.now))

    def run(self):
        """Let all be read; return the longest that a row waited."""
        readings = ndjson.NdjsonReadings(("t",), stream=self._out, pause_s=self._gather_s)
        with self._out:
            readings.read(self._hand, self)
            os.close(self._into)
        self._go_on(math.inf)
        return self.latest_s

    def is_set(self):
        """Whether all rows are read."""
        if self._is_handing or self._in_pipe:
            self._is_handing = False
            return False
        if self._arrivals:
            self._go_on(self._arrivals[-1])
        return not self._in_pipe

    def wait(self, seconds):
        self._go_on(self.now + seconds)
        return False

    def _go_on(self, to):
        """Let rows come, and windows end, until then."""
        while True:
            comes = self._arrivals[-1] if self._arrivals else math.inf
            at = min(comes, self._gatherer.due_at)
            if at > to or at == math.inf:
                break
            self.now = at
            if comes == at:
                os.write(self._into, b"[%.17g]\n" % self._arrivals.pop())
                self._in_pipe += 1
            else:
                self._take()
        self.now = self.now if to == math.inf else to

    def _hand(self, rows, /, **waited):
        self._in_pipe -= len(rows)
        self._is_handing = True
        self._gatherer.put(rows, **waited)

    def _take(self):
        taken = self._gatherer.take(self.now)
        if taken is not None:
            self.latest_s = max(self.latest_s, self.now - taken.rows.min())


@pytest.mark.parametrize("fast_s", [2.3, 2.55, 2.8])
def test_a_row_waits_no_longer_in_the_pipe_and_the_gatherer_together(monkeypatch, fast_s):
    """Ninety rows a second, then ten: windows and pauses may begin at different times."""
    fast = np.arange(0.0, fast_s, 1 / 90)
    slow = np.arange(fast_s, fast_s + 6.0, 0.1)
    pipe = SlowPipe([*fast.tolist(), *slow.tolist()], 1.0, monkeypatch)

    assert 0.5 < pipe.run() <= 1.0 + 1e-9
