"""Rows by timestamp: what closes them, and in which order they come."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from submerge_client.sensors.influx.readings import REMEMBERED, TimedRow, TimedRows

nan = math.nan


def seen(rows: list[TimedRow]) -> list[tuple[int, list[str]]]:
    """Rows that compare, although they have gaps."""
    return [(row.time, [str(value) for value in row.values]) for row in rows]


def test_complete():
    """A row closes with the reading that completes it, and closes earlier ones first."""
    rows = TimedRows(2, 60.0)
    rows.put(10, 0, 1.0, 0.0)
    rows.put(20, 1, 4.0, 0.0)

    assert [] == rows.take(0.0)
    rows.put(20, 0, 3.0, 0.0)
    assert seen([TimedRow(10, [1.0, nan]), TimedRow(20, [3.0, 4.0])]) == seen(rows.take(0.0))


def test_time_is_up():
    """A row that has waited closes with gaps, at the time that was announced."""
    rows = TimedRows(2, 5.0)
    rows.put(10, 0, 1.0, 100.0)

    assert rows.due_at == 105.0
    assert [] == rows.take(104.9)
    assert seen([TimedRow(10, [1.0, nan])]) == seen(rows.take(105.0))
    assert rows.due_at == math.inf


def test_late_and_repeated():
    """A reading for a row that has closed is late; the later of two in a row counts."""
    rows = TimedRows(2, 5.0)
    for value in (1.0, 2.0):
        rows.put(10, 0, value, 0.0)
    rows.put(10, 1, 3.0, 0.0)
    rows.put(10, 1, 4.0, 0.0)

    assert [TimedRow(10, [2.0, 3.0])] == rows.take(0.0)
    assert (1, 1) == (rows.counts["late"], rows.counts["repeated"])


def test_out_of_order():
    """A row from before the last one is a row all the same, and counted."""
    rows = TimedRows(1, 5.0)
    for time in (20, 10, 30):
        rows.put(time, 0, float(time), 0.0)

    assert [20, 10, 30] == [row.time for row in rows.take(0.0)]
    assert 1 == rows.counts["out_of_order"]


def test_wrong_clock():
    """One time from the far future makes nothing late that comes after it."""
    rows = TimedRows(1, 5.0)
    for time in (2**62, *range(1000, 1100)):
        rows.put(time, 0, 1.0, 0.0)

    assert 101 == len(rows.take(0.0))
    assert 0 == rows.counts["late"]


def test_crowded():
    """Of more open rows than there may be, the oldest closes."""
    rows = TimedRows(2, 5.0, most=3)
    for time in (4, 3, 2, 1):
        rows.put(time, 0, 1.0, 0.0)

    assert [2] == [row.time for row in rows.take(0.0)]
    assert 1 == rows.counts["crowded"]


def test_without_times():
    """Readings without a time share a row until it closes; the next one has a time of its own."""
    rows = TimedRows(2, 5.0)
    first = rows.arrival(7)
    rows.put(first, 0, 1.0, 0.0)
    rows.put(rows.arrival(8), 1, 2.0, 1.0)
    again = rows.arrival(7)
    rows.put(again, 0, 3.0, 1.0)

    assert (7, 8) == (first, again)
    assert [TimedRow(7, [1.0, 2.0])] == rows.take(1.0)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.floats(0, 9)), max_size=40),
    st.integers(1, 4),
)
def test_nothing_is_lost(readings, every):
    """Each reading is in a row, late, or replaced by a later one: the counts add up."""
    rows, given_out = TimedRows(3, 2.0, most=3), []
    for now, (time, channel, value) in enumerate(readings):
        rows.put(time, channel, value, float(now))
        if now % every == 0:
            given_out += rows.take(float(now))
    given_out += rows.take(99.0, all_of_them=True)

    held = sum(not math.isnan(value) for row in given_out for value in row.values)
    assert len(readings) == held + rows.counts["late"] + rows.counts["repeated"]
    assert len({row.time for row in given_out}) == len(given_out)


@given(st.lists(st.dictionaries(st.integers(0, 2), st.floats(0, 9), min_size=1), max_size=30))
def test_in_order(by_time):
    """Readings in the order of their times give the rows that a table by time has."""
    rows = TimedRows(3, 2.0, most=2)
    for time, values in enumerate(by_time):
        for channel, value in values.items():
            rows.put(time, channel, value, 0.0)

    table = [TimedRow(t, [v.get(c, nan) for c in range(3)]) for t, v in enumerate(by_time)]
    assert seen(table) == seen(rows.take(0.0, all_of_them=True))


def test_bounded():
    """What is remembered of closed rows does not grow."""
    rows = TimedRows(1, 5.0)
    for time in range(3 * REMEMBERED):
        rows.put(time, 0, 1.0, 0.0)
        rows.take(0.0)

    assert REMEMBERED == len(rows._are_closed)
