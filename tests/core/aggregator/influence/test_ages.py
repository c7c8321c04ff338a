"""Ages of nodes: the parent's own time, whatever clocks say, and across restarts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.aggregator.rows.influence import DOWN_S, KEPT_EVERY_S, GroupTime, NodeAges
from submerge.protocol.machine import Now
from support.nodes import EPOCH, GROUP

DAY = 86400.0


def at(seconds: float, *, off: float = 0.0, synced: bool = True, boot: float = 0.0) -> Now:
    """A moment; `off`: error of the wall clock; `boot`: when the steady clock began."""
    return Now(seconds - boot, EPOCH + seconds + off, synced)


class Group:
    """Ages, and a store that they are kept in."""

    def __init__(self) -> None:
        self.kept: dict = {}
        self.writes = 0
        self.changes: dict = {}
        self.ages = NodeAges(GROUP, EPOCH, self.changes)

    def steps(self, now: Now, *heard: str) -> None:
        self.ages.advance(now)
        for node in heard:
            self.ages.hear(node)
        self.ages.keep(now)
        self.commit()

    def commit(self) -> None:
        self.writes += len(self.changes)
        for key, record in self.changes.items():
            if record is None:
                self.kept.pop(key, None)
            else:
                self.kept[key] = record
        self.changes.clear()

    def restarts(self, now: Now, *nodes: str) -> None:
        """Start another process; `nodes` have rows."""
        self.changes = {}
        self.ages = NodeAges(GROUP, EPOCH, self.changes)
        self.ages.load(dict(self.kept), nodes, now)
        self.commit()


def test_a_name_ages_from_when_it_was_first_heard():
    """Hearing it again changes nothing; one that was never heard has no age."""
    group = Group()
    group.steps(at(0), "a")
    group.steps(at(DAY), "a", "b")
    group.steps(at(3 * DAY), "a")

    assert [3 * DAY, 2 * DAY, 0.0] == [group.ages.age(name) for name in "abc"]


@given(st.lists(st.floats(-1e9, 1e9), max_size=6), st.booleans())
def test_a_clock_that_jumps_gives_no_age(jumps, synced):
    """While the process runs, only the steady clock counts."""
    group = Group()
    group.steps(at(0), "a")
    for i, off in enumerate(jumps):
        group.steps(at(60.0 * i, off=off, synced=synced))
    group.steps(at(600))

    assert 600 == group.ages.age("a")


@given(st.lists(st.tuples(st.integers(1, 10**5), st.integers(0, 10**5)), min_size=1, max_size=6))
def test_a_restart_loses_no_age(spans):
    """However often: up and down are both time."""
    group, now, boot = Group(), 0.0, 0.0
    group.steps(at(0), "a")
    for up, down in spans:
        group.steps(at(now + up, boot=boot), "a")
        now += up + down
        boot = now
        group.restarts(at(now, boot=boot), "a")

    assert now == group.ages.age("a")


def test_a_clock_that_is_wrong_at_a_restart_gives_a_week_at_most():
    """Ten years ahead; and none if it is behind, or not synchronized, then or before."""
    for off, synced, gained in (
        (10 * 365 * DAY, True, DOWN_S),
        (-10 * 365 * DAY, True, 0.0),
        (10 * 365 * DAY, False, 0.0),
    ):
        group = Group()
        group.steps(at(0), "a")
        group.restarts(at(0, off=off, synced=synced), "a")
        assert gained == group.ages.age("a")
    group = Group()
    group.steps(at(0, synced=False), "a")
    group.restarts(at(10**6), "a")
    assert 0 == group.ages.age("a")


def test_downtime_counts_once_the_clock_is_synchronized():
    """Not before; another restart before that loses it, and gives no node too much."""
    group = Group()
    group.steps(at(0), "a")
    group.restarts(at(5000, synced=False, boot=5000), "a")
    group.steps(at(5100, synced=False, boot=5000), "b")
    assert [100, 0] == [group.ages.age(name) for name in "ab"]
    group.restarts(at(9000, synced=False, boot=9000), "a", "b")
    group.steps(at(9050, synced=False, boot=9000))
    group.restarts(at(10000, boot=10000), "a", "b")

    assert group.ages.age("b") <= 4900
    assert group.ages.age("a") <= 10000


def test_a_node_that_came_after_the_downtime_is_no_older_for_it():
    """What is learnt later of the time before is not its age."""
    group = Group()
    group.steps(at(0), "a")
    group.restarts(at(5000, synced=False, boot=5000), "a")
    group.steps(at(5100, synced=False, boot=5000), "b")
    group.steps(at(5200, boot=5000))

    assert [5200, 100] == [group.ages.age(name) for name in "ab"]
    group.restarts(at(5200, boot=5200), "a", "b")
    assert [5200, 100] == [group.ages.age(name) for name in "ab"]


def test_a_forgotten_name_loses_its_age():
    """Also across a restart."""
    group = Group()
    group.steps(at(0), "a", "b")
    group.steps(at(DAY))
    group.ages.forget("a")
    group.commit()
    group.restarts(at(2 * DAY, boot=DAY), "b")
    group.steps(at(3 * DAY, boot=DAY), "a")

    assert [0, 3 * DAY] == [group.ages.age(name) for name in "ab"]


def test_a_store_without_ages_is_as_old_as_it_is():
    """Its nodes were heard since it was created; a new one begins now."""
    group = Group()
    group.restarts(at(100 * DAY, boot=100 * DAY), "a")
    group.steps(at(101 * DAY, boot=100 * DAY), "b")
    group.steps(at(102 * DAY, boot=100 * DAY))

    assert [102 * DAY, DAY] == [group.ages.age(name) for name in "ab"]


def test_ages_cost_few_writes():
    """One for each name, and one an hour."""
    group = Group()
    for minute in range(24 * 60):
        group.steps(at(60.0 * minute), "a", "b")

    assert group.writes <= 2 + 25
    assert KEPT_EVERY_S == 3600
    assert GroupTime(23 * 3600.0, EPOCH + 23 * 3600) == group.kept["elapsed", GROUP]


@pytest.mark.parametrize("records", [{}, {("elapsed", "other"): GroupTime(1e9, EPOCH)}])
def test_another_groups_records_are_not_its_own(records):
    """Each group has its own time and its own names."""
    group = Group()
    group.kept = {**records, ("first", "other", "a"): 5.0}
    group.restarts(at(0))

    assert 0 == group.ages.age("a") == group.ages.elapsed
