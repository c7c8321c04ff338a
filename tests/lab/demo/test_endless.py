"""A room without an end: it turns round, and nothing jumps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from submerge_lab.demo.page import EndlessRoom
from submerge_lab.plants.room import Room

ROOM = Room(seed=1, days=0.05, n_faults=0)
TOTAL = ROOM.n_snapshots


@given(st.integers(0, 10**9))
def test_time_goes_on_a_snapshot_at_a_time(number):
    """Or stands for one snapshot, where it turns."""
    endless = EndlessRoom(ROOM)
    here, there = endless.place(number), endless.place(number + 1)

    assert 0 <= here < TOTAL
    assert (here == there) == (number % TOTAL == TOTAL - 1)
    assert abs(here - there) <= 1


def test_its_rows_are_the_rooms_there_and_back():
    endless = EndlessRoom(ROOM)
    rows = np.array([endless.row(number) for number in range(2 * TOTAL)])
    whole = ROOM.readings(0, TOTAL)

    np.testing.assert_array_equal(np.concatenate([whole, whole[::-1]]), rows)
