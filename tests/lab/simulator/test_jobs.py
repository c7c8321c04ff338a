"""Jobs under failures: what the oracle of J1 to J6 says of a few seeds of each kind."""

from __future__ import annotations

import pytest

from submerge_lab.simulator.jobs import JOB_PRESETS, JobPlan, run_jobs
from support.seeds import seeds

FOUND = (26, 48, 71, 163, 196)
"""Seeds that broke an invariant once: a job forgotten while an ask arrives, an aggregator without
participants, an opening that comes late, and too few that stayed in the last round."""


@pytest.mark.slow
@pytest.mark.parametrize("preset", JOB_PRESETS)
def test_no_invariant_breaks(preset):
    """Some seeds of each preset; `submerge lab simulate-jobs --seeds 1000` is the long form."""
    found = [run_jobs(JobPlan(faults=preset), seed) for seed in seeds(6)]

    assert [] == [(each.seed, each.violations) for each in found if each.violations]
    assert 3 * len(found) < sum(each.tally["opened"] for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["kills", "jobs-1"])
@pytest.mark.parametrize("seed", FOUND)
def test_what_was_broken_once_holds(seed, preset):
    """The first seeds with a mistake of the machine, or of its oracle."""
    assert [] == run_jobs(JobPlan(faults=preset), seed).violations


@pytest.mark.slow
def test_a_seed_runs_the_same_way_twice():
    """The same events in the same order."""
    one, other = (run_jobs(JobPlan(), 3, transcript=10_000) for _ in range(2))

    assert one.transcript == other.transcript
    assert one.transcript


@pytest.mark.slow
def test_a_stream_beside_runs_as_it_would_without_jobs():
    """J6: the same messages at the same times, and the stream's own invariants hold."""
    found = run_jobs(JobPlan(beside=True, hours=1.0), 2)

    assert [] == found.violations
    assert found.tally["opened"]


@pytest.mark.slow
def test_without_failures_every_job_is_answered_for_everyone():
    """Three levels, forty clients."""
    found = run_jobs(JobPlan(nodes=40, fan_in=4, depth=3, faults="none"), 0)

    assert [] == found.violations
    assert {"opened": 5, "answered": 5, "members": 200, "attempts": 5} == {
        name: n for name, n in found.tally.items() if n
    }
