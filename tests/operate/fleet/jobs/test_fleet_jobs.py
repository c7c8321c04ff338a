"""Following a job: until it is over, also while its root is away for a while."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import msgspec
import pytest

from submerge.errors import UsageError
from submerge_aggregator.jobs.views import JobDetails, JobView, LeftView
from submerge_files.console.admin_client import value_in
from submerge_files.console.ways import NoAnswer
from submerge_operate.fleet.jobs.fleet_jobs import AWAY_S, LOOK_CAP_S, FleetJobs
from submerge_operate.fleet.jobs.tables import job_lines

T = TypeVar("T")

OPEN = JobView(
    *("job-1", "room", "kmeans", {"clusters": 3}, True, 1, "running", "open"),
    *(0, 0, 0, 0, 0, 100.0, 0.0),
)
ROUND = replace(OPEN, phase="lloyd", round=1, attempt=1, members=3)
DONE = replace(ROUND, state="done", phase="", ended_s=107.0)


class Root:
    """Answers with one view after the other; None is no answer. Time passes by sleeping."""

    def __init__(self, *views: JobView | None) -> None:
        self.views, self.now, self.slept = list(views), 0.0, list[float]()

    def read(self, form: type[T], *_: str, **__: str) -> T:
        return value_in(self.get(), form)

    def get(self) -> bytes:
        view = self.views.pop(0) if len(self.views) > 1 else self.views[0]
        if view is None:
            raise NoAnswer("no answer")
        return msgspec.json.encode(JobDetails(view))

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def jobs(root: Root) -> FleetJobs:
    return FleetJobs(root, sleep=root.sleep, steady=lambda: root.now)  # type: ignore[arg-type]


def test_each_round_is_shown_once():
    root, shown = Root(OPEN, ROUND, ROUND, DONE), list[JobView]()
    ended = jobs(root).follow(OPEN, shown.append)

    assert DONE == ended
    assert [OPEN, ROUND] == shown


def test_a_long_round_is_looked_at_less_often():
    root = Root(*[OPEN] * 20, DONE)
    jobs(root).follow(OPEN, lambda _: None)

    assert LOOK_CAP_S == max(root.slept)
    assert sorted(root.slept) == root.slept


def test_a_root_that_starts_again_is_waited_for():
    """It says then that the job failed."""
    failed = replace(DONE, state="failed", failure="the root restarted")
    root = Root(ROUND, None, None, failed)

    assert failed == jobs(root).follow(OPEN, lambda _: None)


def test_a_root_that_stays_away_is_a_failure():
    """After a minute, and not much later."""
    root = Root(ROUND, None)

    with pytest.raises(NoAnswer):
        jobs(root).follow(OPEN, lambda _: None)
    assert AWAY_S < root.now < AWAY_S + 3 * LOOK_CAP_S


class Listing(Root):
    """Has jobs of some names."""

    def __init__(self, *names: str) -> None:
        super().__init__(OPEN)
        self.names = names

    def get(self) -> bytes:
        return msgspec.json.encode([replace(OPEN, id=name) for name in self.names])


def test_a_beginning_names_a_job_if_it_is_the_only_one():
    """A whole name goes before a longer one that begins so."""
    found = jobs(Listing("job-1", "job-12", "job-30"))

    assert "job-1" == found.find("job-1").id
    assert "job-30" == found.find("job-3").id
    with pytest.raises(UsageError, match="several"):
        found.find("job")
    with pytest.raises(UsageError, match="none of that name"):
        found.find("job-4")


@pytest.mark.parametrize(("stayed", "left", "said"), [(2, 3, True), (3, 2, False), (0, 3, False)])
def test_a_line_says_that_fewer_stayed_than_left(stayed, left, said):
    """The answer is of a few, who may have made the others leave."""
    gone = {f"l{i}": LeftView("what it contributed was refused", 0) for i in range(left)}
    details = JobDetails(DONE, tuple(f"s{i}" for i in range(stayed)), gone)
    lines = dict(job_lines(details, now=0.0))

    assert said == ("fewer nodes stayed than left" in lines.get("note", ""))
