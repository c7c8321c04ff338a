"""The `submerge lab simulate-jobs` command: jobs in rounds, seed by seed, and what broke."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from functools import partial
from multiprocessing import get_context
from typing import Any

import click

from submerge import PeerError, UsageError
from submerge.jobs.machine import JobMessage
from submerge_files.console.options import QUIET, default_option, flag_option, json_option
from submerge_files.console.progress import advancing
from submerge_lab.simulator.jobs import JOB_PRESETS, JobPlan, JobSeedOutcome, run_jobs
from submerge_proto.wire import jobs

LINES, SHOWN, NAMED = 200_000, 40, 20
"""Lines of a transcript that are kept, and printed; violations that are listed."""

JOB_INVARIANTS = {
    "J1": "a job ends, right or clearly failed, within its time",
    "J2": "an answer is that of the same job in one process, over those who stayed",
    "J3": "no contribution counts twice",
    "J4": "memory and messages have limits, and nothing is left of a job that is over",
    "J5": "who has left is named, and who stayed is there",
    "J6": "what streams meanwhile runs as without jobs",
}


@click.command(
    epilog="""\b
Example: submerge lab simulate-jobs --seeds 1000 --processes 2
         submerge lab simulate-jobs --beside --seeds 20"""
)
@default_option("--nodes", 8, "Clients.", type=click.IntRange(1, 1000))
@default_option("--fan-in", 2, "Children of an aggregator.", type=click.IntRange(2))
@default_option(
    "--depth",
    0,
    "Levels of aggregators, the root included; 0: one to three, drawn for each seed.",
    type=click.IntRange(0, 6),
)
@default_option("--hours", 2.0, "Virtual time with faults.", type=click.FloatRange(0.1, 100.0))
@default_option(
    "--opened",
    3,
    "Jobs that begin meanwhile; two more begin later.",
    type=click.IntRange(1, 100),
)
@default_option(
    "--faults", "jobs-1", "Which rates each seed draws.", type=click.Choice(list(JOB_PRESETS))
)
@flag_option("--beside", "Let the fleet stream meanwhile, and check I1 to I13 and J6 as well.")
@default_option("--seed", 0, "The first seed.", type=click.IntRange(0))
@default_option("--seeds", 1, "Number of seeds.", type=click.IntRange(1))
@default_option("--processes", 1, "Processes that share the seeds.", type=click.IntRange(1, 256))
@json_option()
@QUIET
def command(
    seed: int, seeds: int, processes: int, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Run jobs in a fleet in virtual time with failures, and check the invariants J1 to J6.

    Nodes die, restart, move and are cut off while k-means and other jobs go through their rounds.
    An oracle holds each answer against the same job in one process, to the bit. Status 1 if a seed
    breaks an invariant, with the events that led to it.
    """
    plan = JobPlan(
        *(options["nodes"], options["fan_in"], options["depth"], options["hours"]),
        *(options["opened"], options["beside"], options["faults"]),
    )
    began = time.perf_counter()
    outcomes = []
    with nullcontext(lambda _: None) if quiet else advancing("simulate-jobs", seeds) as advance:
        for outcome in _outcomes(plan, range(seed, seed + seeds), processes):
            outcomes.append(outcome)
            advance(1)
    broken = [each for each in outcomes if each.violations]
    lines = _transcript(plan, broken[0].seed) if broken else []
    seconds = time.perf_counter() - began
    if as_json:
        click.echo(json.dumps(_figures(outcomes, seconds) | {"transcript": lines}))
    else:
        _print(outcomes, broken, lines, seconds)
    sys.stdout.flush()
    if broken:
        sys.exit(1)


def _outcomes(plan: JobPlan, seeds: range, processes: int) -> Iterator[JobSeedOutcome]:
    processes = min(processes, len(seeds))
    if processes == 1:
        yield from (run_jobs(plan, seed, wire=as_received) for seed in seeds)
        return
    try:
        with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
            yield from pool.map(partial(run_jobs, plan, wire=as_received), seeds, chunksize=4)
    except BrokenProcessPool as error:
        raise UsageError(
            f"one of {processes} processes was killed, perhaps for lack of memory: use fewer"
        ) from error


def as_received(message: JobMessage) -> JobMessage | None:
    """Return a message as its receiver decodes it; None if its bytes are refused."""
    try:
        return jobs.decode(jobs.encode(message))
    except (PeerError, ValueError):  # protobuf itself refuses numbers that no field holds
        return None


def _transcript(plan: JobPlan, seed: int) -> list[str]:
    """Run a seed once more; return the last events before its first violation."""
    return (run_jobs(plan, seed, transcript=LINES, wire=as_received).transcript or [])[-SHOWN:]


def _figures(outcomes: list[JobSeedOutcome], seconds: float) -> dict[str, Any]:
    tally, failures = _sums(outcomes)
    broken = [(each.seed, *what) for each in outcomes for what in each.violations]
    return {
        "seeds": len(outcomes),
        "broken": len({seed for seed, *_ in broken}),
        "violations": [{"seed": s, "invariant": i, "what": what} for s, i, what in broken],
        "jobs": dict(tally),
        "failures": dict(failures),
        "messages": sum(each.messages for each in outcomes),
        "seconds": round(seconds, 3),
    }


def _sums(outcomes: list[JobSeedOutcome]) -> tuple[Counter[str], Counter[str]]:
    tally: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for each in outcomes:
        tally.update(each.tally)
        failures.update(each.failures)
    return tally, failures


def _print(
    outcomes: list[JobSeedOutcome], broken: list[JobSeedOutcome], lines: list[str], seconds: float
) -> None:
    tally, failures = _sums(outcomes)
    messages = sum(each.messages for each in outcomes)
    click.echo(f"{len(broken)} broken of {len(outcomes):,} seeds")
    click.echo(
        f"jobs       {tally['opened']:,} opened: {tally['answered']:,} answered,"
        f" {tally['answered without some']:,} of them without nodes that left;"
        f" {tally['failed']:,} failed"
    )
    for why, n in failures.most_common():
        click.echo(f"           {n:,} failed: {why}")
    click.echo(
        f"nodes      {tally['members']:,} took part, {tally['left']:,} left;"
        f" {tally['attempts']:,} attempts"
    )
    click.echo(f"messages   {messages:,}")
    click.echo(f"time       {seconds:.1f} s")
    named = [(each.seed, *what) for each in broken for what in each.violations]
    for seed, invariant, what in named[:NAMED]:
        click.echo(f"seed {seed}: {invariant} ({JOB_INVARIANTS.get(invariant, 'stream')}): {what}")
    for line in lines:
        click.echo(line)
