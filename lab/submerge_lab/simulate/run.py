"""Runs seeds of a simulated fleet, in one process or several, and collects their results. A seed's
outcome depends on plan and seed alone, not on the process that runs it.
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

from submerge import PeerError, UsageError
from submerge.features import plain
from submerge.protocol.messages import Message
from submerge_files.console.progress import advancing
from submerge_lab.simulator import Faults, Plan, SeedOutcome, run
from submerge_proto.wire import codec

LINES = 500_000
"""Lines of a transcript, at most: some 60 MiB."""


class Violation(NamedTuple):
    """A rule that a seed broke, for the first time."""

    seed: int
    invariant: str
    what: str


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """Results of a plan: the outcome of each seed, in order, and the real seconds of all."""

    plan: Plan
    outcomes: list[SeedOutcome]
    seconds: float

    @property
    def watched(self) -> bool:
        """Return whether an oracle followed each reading: with sample ids only."""
        return not self.plan.dim

    @property
    def violations(self) -> list[Violation]:
        """All violations, seed by seed."""
        return [Violation(one.seed, *what) for one in self.outcomes for what in one.violations]

    @property
    def bound(self) -> float | None:
        """Upper bound of the share of seeds that break a rule, at 95 % (rule of three)."""
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
        """Share of readings that is counted; None without readings."""
        return self.counted / self.generated if self.generated else None

    @property
    def missing(self) -> dict[str, int]:
        """Readings that are not counted, by cause, the most frequent first."""
        causes: Counter[str] = Counter()
        for one in self.outcomes:
            causes.update(one.missing)
        return dict(causes.most_common())

    @property
    def coverage_said(self) -> float | None:
        """Mean of the coverage that roots say; None without readings."""
        said = [one.coverage_said for one in self.outcomes if one.coverage_said is not None]
        return fmean(said) if said else None

    @property
    def forged(self) -> dict[str, int]:
        """Messages of malicious nodes, by what became of them; "sent" are all."""
        fates: Counter[str] = Counter()
        for one in self.outcomes:
            fates.update(one.forged)
        return dict(fates.most_common())

    @property
    def unattributed(self) -> int | None:
        """Readings missing without a known cause, or counted too often; None without an oracle."""
        if not self.watched:
            return None
        # Seed by seed: one that counts too many must not hide one that counts too few.
        gaps = (one.generated - one.counted - sum(one.missing.values()) for one in self.outcomes)
        return sum(abs(gap) for gap in gaps)

    @property
    def settled(self) -> tuple[float, float] | None:
        """Median and longest time from the end of faults to the root's last change, in seconds."""
        times = [one.settled_s for one in self.outcomes if one.settled_s is not None]
        return (median(times), max(times)) if times else None

    @property
    def bytes_per_node_day(self) -> float:
        """Mean bytes of a client's reports in a day."""
        return fmean(one.bytes_per_node_day for one in self.outcomes)

    @property
    def largest_report(self) -> int:
        """Bytes of the largest report."""
        return max(one.largest_report for one in self.outcomes)

    @property
    def staleness(self) -> tuple[float, float, float]:
        """Medians over seeds of p50 and of p99, and the largest, in seconds."""
        p50, p99, most = zip(*(one.staleness for one in self.outcomes), strict=True)
        return median(p50), median(p99), max(most)

    @property
    def angles(self) -> list[float]:
        """Degrees between model and exact PCA, of each seed with a model of real rows."""
        return [one.angle for one in self.outcomes if one.angle is not None]

    @property
    def trace(self) -> str:
        """Hash of all delivered messages: of one seed its own, of several a hash of theirs."""
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
        """Return all figures for JSON."""
        settled = self.settled or (None, None)
        return {
            "violations": [violation._asdict() for violation in self.violations],
            "seeds": len(self.outcomes),
            "first_seed": self.outcomes[0].seed,
            "bound": self.bound,
            "coverage": self.coverage,
            "coverage_said": self.coverage_said,
            "generated": self.generated,
            "counted": self.counted,
            "missing": self.missing,
            "forged": self.forged,
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
    features = None if plan.features is None else plain(plan.features.spec())
    return asdict(plan) | {"given": dict(plan.given), "features": features}


def collect(plan: Plan, seeds: range, *, jobs: int = 1, quiet: bool = True) -> Findings:
    """Run seeds, and show progress on a terminal."""
    began = time.perf_counter()
    with _progress(plan, seeds, quiet=quiet) as (clock, seed_done):
        outcomes = []
        for outcome in _outcomes(plan, seeds, jobs=jobs, progress=clock):
            outcomes.append(outcome)
            seed_done()
    return Findings(plan, outcomes, time.perf_counter() - began)


def transcript(plan: Plan, seed: int) -> list[str]:
    """Run a seed once more; return its events, line by line."""
    return list(run(plan, seed, transcript=LINES, wire=as_received).transcript or ())


def as_received(message: Message) -> Message | None:
    """Return a message as its receiver decodes it; None if its bytes are refused."""
    try:
        return codec.decode(codec.kind_of(message), codec.encode(message))
    except (PeerError, ValueError):  # protobuf itself refuses numbers that no field holds
        return None


def run_seed(
    plan: Plan,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> SeedOutcome:
    """Run a seed; errors name it."""
    try:
        return run(plan, seed, wire=as_received, progress=progress)
    except UsageError:
        raise
    except Exception as error:
        error.add_note(f"(in seed {seed} of a simulated fleet)")
        raise


def _outcomes(
    plan: Plan,
    seeds: range,
    *,
    jobs: int,
    progress: Callable[[float], None] | None,
) -> Iterator[SeedOutcome]:
    jobs = min(jobs, len(seeds))
    if jobs == 1:
        yield from (run_seed(plan, seed, progress) for seed in seeds)
        return
    try:
        with ProcessPoolExecutor(jobs, get_context("spawn"), _ignore_interrupts) as pool:
            try:
                yield from pool.map(partial(run_seed, plan), seeds)
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    except BrokenProcessPool as error:
        raise UsageError(
            f"one of {jobs} processes was killed, perhaps for lack of memory: use fewer --jobs"
        ) from error


def _ignore_interrupts() -> None:
    """Let the parent process alone handle Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _progress(
    plan: Plan, seeds: range, *, quiet: bool
) -> Iterator[tuple[Callable[[float], None] | None, Callable[[], None]]]:
    """Yield what to call with the virtual time, and what to call after each seed."""
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
    """Return what advances by minutes of virtual time, given the seconds since the start."""
    shown = 0

    def tick(virtual: float) -> None:
        nonlocal shown
        minute = int(virtual / 60)
        if minute > shown:
            advance(minute - shown)
            shown = minute

    return tick
