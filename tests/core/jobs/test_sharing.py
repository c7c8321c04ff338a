"""Readings that leave as they are: counted before they go, and over restarts."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import UsageError
from submerge.jobs.machine import SendJob
from submerge.jobs.points import DAY_S, RECORD, PointBudget
from submerge.protocol.machine import Keep, Now
from support.job_table import JobTable, job

BEGAN = 1_800_000_000.0


def at(seconds: float, *, wall: float | None = None) -> Now:
    """A time, after so many seconds; the wall clock may be another."""
    return Now(1000.0 + seconds, BEGAN + (seconds if wall is None else wall))


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 2 * DAY_S), st.booleans()), max_size=30))
def test_no_24_hours_have_more_than_the_budget(steps):
    """However spending, waiting and restarts follow each other."""
    budget, record, time = PointBudget(50), None, 0.0
    spent: list[tuple[float, int]] = []
    for points, wait, restarts in steps:
        time += wait
        if restarts:
            budget = PointBudget(50)
            budget.load(record, at(time))
        wanted = min(points, budget.left(at(time)))
        record = budget.spend(wanted, at(time))
        spent.append((time, wanted))
        last_day = sum(n for when, n in spent if time - when < DAY_S)

        assert last_day <= 50


def test_a_day_later_all_is_left_again():
    """And a second before, nothing is."""
    budget = PointBudget(7)
    budget.spend(7, at(0))

    assert [0, 0, 7] == [budget.left(at(s)) for s in (0, DAY_S - 1, DAY_S)]


def test_more_than_is_left_is_refused():
    """With the number that is."""
    budget = PointBudget(7)
    budget.spend(5, at(0))

    with pytest.raises(UsageError, match="at most 2 readings may leave this client now, got 3"):
        budget.spend(3, at(1))


def test_a_wall_clock_that_jumps_gives_nothing_back():
    """Ahead by two days and back again, within one process."""
    budget = PointBudget(7)
    budget.spend(7, at(0))

    assert 0 == budget.left(at(10, wall=2 * DAY_S))
    assert 0 == budget.left(at(20, wall=-2 * DAY_S))


def test_what_was_shared_by_a_clock_that_was_ahead_is_held_for_a_day_of_the_right_time():
    """Not for the years that the clock was wrong by."""
    ahead = PointBudget(7)
    record = ahead.spend(7, at(0, wall=10 * 365 * DAY_S))
    budget = PointBudget(7)
    budget.load(record, at(5))

    assert [0, 7] == [budget.left(at(s)) for s in (10, DAY_S + 6)]


@pytest.mark.parametrize(
    "record",
    [b"", b"{", b"[1]", b'[["a", 1]]', b"[[1, 2, 3]]", b"null", b"[]", b"{}", b'""', b"[" * 9000],
)
def test_a_record_that_cannot_be_read_is_a_spent_budget(record):
    """Rather than a new one."""
    budget = PointBudget(7)
    budget.load(record, at(0))

    assert [0, 7] == [budget.left(at(s)) for s in (0, DAY_S)]


def test_a_record_stays_small():
    """Contributions of ten minutes are one entry."""
    budget = PointBudget(100_000)
    for minute in range(3000):
        record = budget.spend(1, at(60 * minute))

    assert len(json.loads(record)) <= 145


def kpca(**settings: object) -> dict[str, object]:
    """Settings of a small job whose contributions hold readings."""
    return {"components": 2, "points": 20, "gamma": 0.3, **settings}


def rows(n: int) -> dict[str, np.ndarray]:
    """The rows of so many clients."""
    return {f"pump-{i}": np.random.default_rng(i).standard_normal((40, 2)) for i in range(n)}


def test_readings_are_counted_before_the_first_piece_goes():
    """In one step the record comes before what is sent; what is sent again is not counted again."""
    table = JobTable(rows(2), share_points=500)
    effects: dict[str, list[object]] = {name: [] for name in rows(2)}
    for name, seen in effects.items():
        table.roles[name].step = watched(table.roles[name].step, seen)
    dropped: set[bytes] = set()

    def loses(_: str, send: SendJob) -> bool:
        first = send.message.parcel not in dropped
        dropped.add(send.message.parcel)
        return first

    table.loses = loses
    outcome = table.run(job("kpca", settings=kpca()))

    assert outcome.answer is not None, outcome.failure
    for seen in effects.values():
        keeps = [i for i, effect in enumerate(seen) if isinstance(effect, Keep)]
        spent = [sum(n for n, _ in json.loads(seen[i].records[RECORD])) for i in keeps]
        assert keeps
        assert spent == sorted(set(spent))
        assert spent[-1] <= 20
        for i in keeps:
            parcel = next(e.message for e in seen[i:] if isinstance(e, SendJob) and e.message.up)
            assert parcel.parcel not in {
                e.message.parcel for e in seen[:i] if isinstance(e, SendJob)
            }


def watched(step, seen):
    """A step that writes its effects down."""

    def stepped(event, now):
        effects = step(event, now)
        seen.extend(effects)
        return effects

    return stepped


def test_a_process_that_restarts_goes_on_with_what_is_left():
    """Its record is what it begins with."""
    table = JobTable(rows(2), share_points=30)
    table.run(job("kpca", settings=kpca()))
    before = table.roles["pump-1"].budget.left(table.now())
    table.stop("pump-1")
    table.start("pump-1")

    assert 30 > before == table.roles["pump-1"].budget.left(table.now())


def test_a_client_whose_budget_is_spent_takes_part_without_points():
    """Its rows count in all else, and none of them is among the points."""
    table = JobTable(rows(3), share_points=500)
    table.roles["pump-1"].budget.spend(500, table.now())
    outcome = table.run(job("kpca", settings=kpca()))

    assert outcome.answer is not None, outcome.failure
    assert {"pump-0", "pump-1", "pump-2"} == set(outcome.stayed)
    points = {tuple(row) for row in outcome.answer["points"]}
    assert not points & {tuple(row) for row in rows(3)["pump-1"].astype(np.float32)}
