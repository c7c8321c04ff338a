"""run_jobs(): simulates jobs of one seed, from the first to the last check."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from submerge_lab.simulator.faults import Faults
from submerge_lab.simulator.feeds import Feed, Ids
from submerge_lab.simulator.injected_failures import HOUR, InjectedFailures
from submerge_lab.simulator.jobs.fleet import JobFleet, JobWire, SilentAggregator, SilentClient
from submerge_lab.simulator.jobs.oracle import JobOracle
from submerge_lab.simulator.jobs.plan import JobPlan, draw_job
from submerge_lab.simulator.network import HELD_UP_S
from submerge_lab.simulator.plan import Plan
from submerge_lab.simulator.run import run
from submerge_lab.simulator.transcript import Transcript

LONGEST_JOB_S = 3000.0
"""After this a job is forgotten by every node."""


LONG_S = 300.0
LOSSY = Faults(loss=0.2, duplicate=0.2, delay_s=0.5)
"""Each piece arrives sooner or later: with so much time each job has to be answered for all."""


@dataclass(frozen=True, slots=True, eq=False)
class JobSeedOutcome:
    """Result of one seed.

    violations : Invariant and description; J1 to J6, and those of a stream beside.
    tally : How many jobs were opened, answered and failed, and who left them.
    """

    seed: int
    faults: Faults
    violations: list[tuple[str, str]]
    tally: Counter[str]
    failures: Counter[str]
    messages: int
    transcript: list[str] | None


def run_jobs(
    plan: JobPlan, seed: int, *, transcript: int = 0, wire: JobWire | None = None
) -> JobSeedOutcome:
    """Run one seed."""
    if plan.beside:
        return _beside(plan, seed, wire)
    return _alone(plan, seed, transcript, wire)


def _alone(plan: JobPlan, seed: int, transcript: int, wire: JobWire | None) -> JobSeedOutcome:
    """Run jobs in a fleet that does not stream."""
    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    faults = plan.draw_faults(rng)
    silent = {"client": SilentClient, "aggregator": SilentAggregator}
    fleet = JobFleet(plan.fleet(faults, rng), faults, rng, Ids(), seed, **silent)
    fleet.sensing, fleet.job_wire = False, wire
    fleet.transcript = Transcript(transcript) if transcript else None
    oracle = observe(fleet, plan, seed)
    failures = InjectedFailures(fleet)
    for host in fleet.hosts:
        fleet.at(60.0 * rng.random(), fleet.start, host)
    fleet.run_until(plan.hours * HOUR)
    failures.heal()
    # What was held up arrives, what is under way ends; then there are no failures.
    fleet.run_until(fleet.time + HELD_UP_S + LONGEST_JOB_S)
    for name, faults in (("calm", fleet.faults), ("lossy", LOSSY)):
        job = draw_job(name, fleet.job_rng, plan.nodes)
        if name == "lossy":
            fleet.network.faults = faults
            job = replace(job, open_s=LONG_S, round_s=LONG_S, job_s=LONGEST_JOB_S - 2 * LONG_S)
        oracle.calm.add(job.id)
        fleet.open_job(job)
        fleet.run_until(fleet.time + LONGEST_JOB_S)
    return _outcome(seed, fleet, oracle, oracle.conclude(over=True))


def _beside(plan: JobPlan, seed: int, wire: JobWire | None) -> JobSeedOutcome:
    """Run jobs beside a stream, and the stream without them: it must not change (J6)."""
    made: list[tuple[JobFleet, JobOracle]] = []

    def make(
        streams: Plan, faults: Faults, rng: np.random.Generator, feed: Feed, **nodes: Any
    ) -> JobFleet:
        fleet = JobFleet(streams, faults, rng, feed, seed, **nodes)
        fleet.job_wire = wire
        made.append((fleet, observe(fleet, plan, seed)))
        return fleet

    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    streams = plan.fleet(plan.draw_faults(rng), rng)
    with_jobs = run(streams, seed, fleet_type=make)
    without = run(streams, seed)
    (fleet, oracle) = made[0]
    violations = oracle.conclude(over=False) + with_jobs.violations
    if (with_jobs.trace, with_jobs.counted) != (without.trace, without.counted):
        violations.append(("J6", "the stream runs otherwise with jobs beside it"))
    return _outcome(seed, fleet, oracle, violations)


def observe(fleet: JobFleet, plan: JobPlan, seed: int) -> JobOracle:
    """Let an oracle follow a fleet, and have its root open jobs at any time."""
    oracle = JobOracle(fleet, seed)
    fleet.job_observer = oracle
    for number in range(plan.jobs):
        job = draw_job(f"job-{number}", fleet.job_rng, plan.nodes)
        fleet.at(plan.hours * HOUR * fleet.job_rng.random(), fleet.open_job, job)
    return oracle


def _outcome(
    seed: int, fleet: JobFleet, oracle: JobOracle, violations: list[tuple[str, str]]
) -> JobSeedOutcome:
    why = Counter(_short(outcome.failure) for outcome, _ in oracle.outcomes.values())
    del why[""]
    lines = None if fleet.transcript is None else list(fleet.transcript.lines)
    return JobSeedOutcome(
        *(seed, fleet.suffered, violations, oracle.tally(), why, fleet.messages, lines)
    )


def _short(failure: str) -> str:
    """Return a reason without its names, and with N for its numbers."""
    return re.sub(r"\d+", "N", failure.partition(", at last")[0])
