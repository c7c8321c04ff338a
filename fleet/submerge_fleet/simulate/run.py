"""Running seeds of a simulated fleet, in one process or several, and what they come to.

A seed's outcome is a function of plan and seed alone: it does not matter which process
runs it, nor which others run beside it.
"""

from __future__ import annotations

import hashlib
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from multiprocessing import get_context
from statistics import fmean, median
from typing import Any, NamedTuple

from submerge import UsageError
from submerge.features import plain
from submerge.simulate import Faults, Plan, SeedOutcome, run
from submerge_fleet.console.progress import advancing

LINES = 500_000
"""Of a transcript, at most: some 80 MB."""


class Violation(NamedTuple):
    """One rule that one seed broke, the first time that it did."""

    seed: int
    invariant: str
    what: str


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """What seeds came to.

    Attributes
    ----------
    plan : Plan
    outcomes : list of Outcome
        One for each seed, in order.
    seconds : float
        Real ones, for all of them.
    """

    plan: Plan
    outcomes: list[SeedOutcome]
    seconds: float

    @property
    def watched(self) -> bool:
        """Whether an oracle knew where each reading was: with sample ids only."""
        return not self.plan.dim

    @property
    def violations(self) -> list[Violation]:
        """All of them, seed by seed."""
        return [Violation(one.seed, *what) for one in self.outcomes for what in one.violations]

    @property
    def bound(self) -> float | None:
        """Share of seeds that break a rule, at most, with 95 % confidence: the rule of three."""
        clean = self.watched and not self.violations
        return min(1.0, 3 / len(self.outcomes)) if clean else None

    @property
    def generated(self) -> int:
        """Readings of all sensors."""
        return sum(one.generated for one in self.outcomes)

    @property
    def counted(self) -> int:
        """Readings in the roots' last models."""
        return sum(one.counted for one in self.outcomes)

    @property
    def coverage(self) -> float | None:
        """Share of readings that is counted; None if there was none to count."""
        return self.counted / self.generated if self.generated else None

    @property
    def missing(self) -> dict[str, int]:
        """Readings that are not counted, by cause, the most frequent first."""
        causes: Counter[str] = Counter()
        for one in self.outcomes:
            causes.update(one.missing)
        return dict(causes.most_common())

    @property
    def unattributed(self) -> int | None:
        """Readings that are missing for no known cause, or counted too often.

        None where nobody knows causes.
        """
        if not self.watched:
            return None
        # Seed by seed: one that counts too much must not hide another that counts too little.
        gaps = (one.generated - one.counted - sum(one.missing.values()) for one in self.outcomes)
        return sum(abs(gap) for gap in gaps)

    @property
    def settled(self) -> tuple[float, float] | None:
        """Median and longest time from healing to the root's last change, in seconds."""
        if not self.watched:
            return None
        times = [one.settled_s for one in self.outcomes if one.settled_s is not None]
        return median(times), max(times)

    @property
    def bytes_per_node_day(self) -> float:
        """Reports of a client, in the mean."""
        return fmean(one.bytes_per_node_day for one in self.outcomes)

    @property
    def largest_report(self) -> int:
        """Bytes."""
        return max(one.largest_report for one in self.outcomes)

    @property
    def staleness(self) -> tuple[float, float, float]:
        """Seconds: medians over seeds of p50 and of p99, and the largest."""
        p50, p99, most = zip(*(one.staleness for one in self.outcomes), strict=True)
        return median(p50), median(p99), max(most)

    @property
    def angles(self) -> list[float]:
        """Degrees between model and pooled truth, of each seed that has a model of real rows."""
        return [one.angle for one in self.outcomes if one.angle is not None]

    @property
    def trace(self) -> str:
        """Hash of everything that was delivered: of one seed its own, of many all of theirs."""
        traces = [one.trace for one in self.outcomes]
        if len(traces) == 1:
            return traces[0]
        return hashlib.blake2b("".join(traces).encode(), digest_size=16).hexdigest()

    @property
    def rates(self) -> dict[str, float]:
        """Mean rates of the faults that seeds ran with."""
        names = [field.name for field in fields(Faults)]
        return {name: fmean(getattr(one.faults, name) for one in self.outcomes) for name in names}

    def figures(self) -> dict[str, Any]:
        """Return what a program may want to know."""
        settled = self.settled or (None, None)
        return {
            "violations": [violation._asdict() for violation in self.violations],
            "seeds": len(self.outcomes),
            "first_seed": self.outcomes[0].seed,
            "bound": self.bound,
            "coverage": self.coverage,
            "generated": self.generated,
            "counted": self.counted,
            "missing": self.missing,
            "unattributed": self.unattributed,
            "settled_s": {
                "median": settled[0],
                "max": settled[1],
                "bound": self.plan.settles_in_s,
            },
            "bytes_per_node_day": self.bytes_per_node_day,
            "largest_report": self.largest_report,
            "staleness": dict(zip(("p50", "p99", "max"), self.staleness, strict=True)),
            "angle": max(self.angles, default=None),
            "trace": self.trace,
            "plan": _plan(self.plan),
            "rates": self.rates,
            "seconds": round(self.seconds, 3),
        }


def _plan(plan: Plan) -> dict[str, Any]:
    """Return a plan for JSON; features by their spec, which says all of them."""
    features = None if plan.features is None else plain(plan.features.spec())
    return asdict(plan) | {"given": dict(plan.given), "features": features}


def collect(plan: Plan, seeds: range, *, jobs: int = 1, quiet: bool = True) -> Findings:
    """Run seeds, and show how far it is where a person watches."""
    began = time.perf_counter()
    with _shown(plan, seeds, quiet=quiet) as (clock, seed_done):
        outcomes = []
        for outcome in _outcomes(plan, seeds, jobs=jobs, progress=clock):
            outcomes.append(outcome)
            seed_done()
    return Findings(plan, outcomes, time.perf_counter() - began)


def transcript(plan: Plan, seed: int) -> list[str]:
    """Run a seed once more; return what happened, line by line."""
    return list(run(plan, seed, transcript=LINES).transcript or ())


def one(plan: Plan, seed: int, progress: Callable[[float], None] | None = None) -> SeedOutcome:
    """Run a seed; what it raises names it."""
    try:
        return run(plan, seed, progress=progress)
    except Exception as error:
        error.add_note(f"(in seed {seed} of a simulated fleet)")
        raise


def _outcomes(
    plan: Plan, seeds: range, *, jobs: int, progress: Callable[[float], None] | None
) -> Iterator[SeedOutcome]:
    jobs = min(jobs, len(seeds))
    if jobs == 1:
        yield from (one(plan, seed, progress) for seed in seeds)
        return
    try:
        with ProcessPoolExecutor(jobs, get_context("spawn"), _leave_it_to_the_parent) as pool:
            try:
                yield from pool.map(partial(one, plan), seeds)
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    except BrokenProcessPool as error:
        raise UsageError(
            f"one of {jobs} processes was killed, perhaps for want of memory: ask for fewer --jobs"
        ) from error


def _leave_it_to_the_parent() -> None:
    """A worker leaves it to its parent to say that it was interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _shown(
    plan: Plan, seeds: range, *, quiet: bool
) -> Iterator[tuple[Callable[[float], None] | None, Callable[[], None]]]:
    """What to call with the virtual time, and what to call after each seed."""
    if quiet:
        yield None, lambda: None
    elif len(seeds) > 1:
        with advancing("simulate", len(seeds)) as advance:
            yield None, lambda: advance(1)
    else:
        minutes = int((plan.hours * 3600 + plan.settles_in_s) / 60)
        with advancing("simulate", max(1, minutes)) as advance:
            yield _clock(advance), lambda: None


def _clock(advance: Callable[[int], None]) -> Callable[[float], None]:
    """Turn virtual seconds since the beginning into minutes since the last call."""
    shown = 0

    def tick(virtual: float) -> None:
        nonlocal shown
        minute = int(virtual / 60)
        if minute > shown:
            advance(minute - shown)
            shown = minute

    return tick
