"""What leaves a client as it is, is on its disk first."""

from __future__ import annotations

import json
import os
import stat
import time

import numpy as np
import pytest

from submerge.jobs.points import PointBudget
from submerge.protocol.machine import Keep, Now
from submerge_client import clock
from submerge_client.jobs import ClientJobs, HeldSample, SharedPoints

NOW = Now(5.0, time.time())


def test_a_record_outlives_the_process(tmp_path):
    """As its owner's alone."""
    path = tmp_path / "pump.state.shared"
    assert SharedPoints(path).read() is None
    SharedPoints(path).write(b"[[3, 5]]")

    assert b"[[3, 5]]" == SharedPoints(path).read()
    assert 0o600 == stat.S_IMODE(os.stat(path).st_mode)


def test_a_file_that_cannot_be_read_is_a_spent_budget(tmp_path, caplog):
    """A folder in its place, say; it is logged."""
    path = tmp_path / "pump.state.shared"
    path.mkdir()
    budget = PointBudget(7)
    budget.load(SharedPoints(path).read(), NOW)

    assert 0 == budget.left(NOW)
    assert "shared points unreadable" in caplog.text


def jobs_of(shared: SharedPoints | None, share_points: int) -> ClientJobs:
    """A client's part in jobs, of which nothing is sent."""
    rows = HeldSample(16, np.random.default_rng(0))
    return ClientJobs(
        *("c", "room", "hall", rows),
        share_points=share_points,
        shared=shared,
        send=lambda _: None,
        clock=clock.now,
        rng=np.random.default_rng(0),
    )


def test_a_member_begins_with_what_is_left(tmp_path):
    """Of the setting and of the file."""
    shared = SharedPoints(tmp_path / "pump.state.shared")
    spent = PointBudget(10).spend(4, NOW)
    shared.write(spent)

    assert 6 == jobs_of(shared, 10)._begun(NOW).budget.left(NOW)
    assert 0 == jobs_of(shared, 0)._begun(NOW).budget.left(NOW)
    assert 0 == jobs_of(None, 10)._begun(NOW).budget.left(NOW)


def test_a_record_is_written_before_anything_else_is_done(tmp_path):
    """And an error ends the step: what would have been sent is not."""
    shared = SharedPoints(tmp_path / "pump.state.shared")
    part = jobs_of(shared, 10)
    record = PointBudget(10).spend(4, NOW)
    part._perform(Keep({("shared_points",): record}), NOW)

    assert [4] == [points for points, _ in json.loads(shared.read() or b"")]
    with pytest.raises(FileNotFoundError):
        jobs_of(SharedPoints(tmp_path / "gone" / "x"), 10)._perform(
            Keep({("shared_points",): record}), NOW
        )
