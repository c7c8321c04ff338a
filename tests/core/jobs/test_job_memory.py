"""What a job takes of a client's memory is known before it begins; beyond it, it is declined."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from submerge.jobs.envelopes import JobAsk, JobShare
from submerge.jobs.kinds import kind_of
from support.job_table import JobTable, job

MIB = 2.0**20
WIDTH = 20

JOBS: list[tuple[str, dict[str, Any], int]] = [
    ("moments", {}, 20_000),
    ("kmeans", {"clusters": 256, "steps": 1}, 2_000),
    ("moments", {"masked": True}, 20_000),
    ("kmeans", {"clusters": 256, "steps": 1, "masked": True}, 2_000),
    ("cluster", {"clusters": 8, "features": 512, "gamma": 0.1, "steps": 1}, 2_000),
    ("cluster", {"clusters": 60, "features": 2048, "gamma": 0.1, "steps": 1}, 500),
    ("nystrom", {"components": 8, "points": 512}, 500),
    ("kpca", {"components": 8, "points": 128, "sample": "leverage"}, 500),
    ("kpca", {"components": 8, "points": 512, "merge": "sketch"}, 500),
    ("landmarks", {"landmarks": 512}, 500),
]


def fleet(rows: int, names: str = "ab") -> JobTable:
    parts = {name: np.random.default_rng(ord(name)).normal(size=(rows, WIDTH)) for name in names}
    return JobTable(parts, share_points=rows)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "settings", "rows"), JOBS, ids=lambda each: str(each)[:40])
def test_no_round_takes_more_than_was_said_nor_much_less(kind, settings, rows):
    """Of what NumPy holds at a time, with what is sent."""
    table, most = fleet(rows, "abcde" if "masked" in settings else "ab"), 0
    share_of = table.roles["a"]._share

    def traced(*asked: Any) -> JobShare:
        nonlocal most
        tracemalloc.start()
        share: JobShare = share_of(*asked)
        body = share.pack()
        most = max(most, tracemalloc.get_traced_memory()[1], 3 * len(body))
        tracemalloc.stop()
        return share

    table.roles["a"]._share = traced
    asked = job(kind, settings=settings, width=WIDTH, payload_bytes=64 << 20, rounds=500)
    outcome = table.run(asked)

    assert outcome.answer is not None, outcome.failure
    assert most <= kind_of(asked).bytes_for(rows) <= 8 * most + 16 * MIB


def test_a_client_declines_what_its_memory_does_not_hold():
    """One of 498 MiB was taken where a unit allowed 192, and ended the client."""
    table = fleet(400)
    table.roles["a"]._room = lambda: 122 * MIB
    outcome = table.run(job("nystrom", settings={"components": 8, "points": 4096}, width=WIDTH))

    why = outcome.declined["a"]
    assert "it would need 1,049 MiB of memory, and 122 MiB are free for jobs" == why
    assert {"b"} == set(outcome.opened)


def test_what_jobs_that_run_need_is_taken_off():
    """Four at once: each fits, and not all together."""
    table, needs = fleet(400), kind_of(job(width=WIDTH)).bytes_for(400)
    member = table.roles["a"]
    member._room = lambda: 1.5 * needs
    opened = [member._open(_part(member, name), job(id=name, width=WIDTH)) for name in "xy"]

    assert "" == opened[0]
    assert "are free for jobs" in opened[1]
    assert [needs, 0] == [each.needs for each in member._parts.values()]


def _part(member: Any, name: str) -> Any:
    from submerge.jobs.member import _Part

    member._parts[name] = _Part(None)
    return member._parts[name]


def test_an_ask_for_a_job_that_is_declined_costs_nothing():
    """No kind, and no points, are held for it."""
    table = fleet(400)
    member = table.roles["a"]
    member._room = lambda: 0.0
    ask = JobAsk(job(width=WIDTH), 0, 60.0, None, "open", {})
    part = _part(member, "x")

    assert member._share(part, ask, table.now(), []).place is None
    assert part.points is None
