"""run_large(): simulates one seed of a large fleet, and checks it at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from submerge.schema import Schema
from submerge.simulate.audit import audit
from submerge.simulate.history_oracle import HistoryOracle
from submerge.simulate.injected_failures import HOUR
from submerge.simulate.large.fleet import LargeFleet
from submerge.simulate.large.leaf import LeafNode
from submerge.simulate.large.leaf_audit import LeafAudit
from submerge.simulate.large.rows import NumberedRows
from submerge.simulate.large.spans import SpanSummaries
from submerge.simulate.large.support import refuse_unsupported
from submerge.simulate.observer import Observers
from submerge.simulate.plan import Plan
from submerge.simulate.run import SeedOutcome, begun, coverage, flush, other_violations

SAMPLED = 10
"""Clients that run a second time, by default."""


@dataclass(frozen=True, slots=True, eq=False)
class LargeOutcome:
    """Result of one seed of a large fleet.

    Attributes
    ----------
    seed_outcome : SeedOutcome
    sampled : int
        Clients that ran a second time, with all their matrices.
    messages, reports : int
        Messages that were compared, and reports among them.
    worst : float
        The largest relative difference of the scatters of two reports.
    """

    seed_outcome: SeedOutcome
    sampled: int
    messages: int
    reports: int
    worst: float


def run_large(
    plan: Plan,
    seed: int,
    *,
    sampled: int = SAMPLED,
    client: type[LeafNode] = LeafNode,
    progress: Callable[[float], None] | None = None,
) -> LargeOutcome:
    """Run one seed.

    Parameters
    ----------
    sampled : int
        Clients that run a second time, with all their matrices; spread over the fleet.
    client : type
        The clients; tests put mutants in their place.
    progress : callable, optional
        As in `run`.

    Raises
    ------
    UsageError
        If the plan has what a large fleet does not stand in for.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    faults = plan.draw_faults(rng)
    refuse_unsupported(plan, faults)
    feed = NumberedRows(plan.dim, plan.rank, plan.oversample, rng)
    summaries = SpanSummaries(feed, plan.rank, plan.oversample)
    fleet = LargeFleet(plan, faults, rng, feed, summaries, client=client, sampled=sampled)
    leaves = LeafAudit(fleet)
    others = [HistoryOracle(fleet, feed)] if faults.histories else []
    fleet.observer = Observers(leaves, *others)
    failures = begun(fleet, rng)
    healed = plan.hours * HOUR
    fleet.run_until(healed, rest=progress)
    model, per_node_day = fleet.root_model, fleet.bytes_up / plan.nodes / (plan.hours / 24)
    fleet.quieten()
    failures.heal()
    fleet.run_until(healed + plan.settles_in_s, rest=progress)
    counted, settled_at = leaves.counted, leaves.counted_at
    version = flush(fleet, progress)
    fleet.quieten()
    violations = leaves.conclude(settled=leaves.counted == counted)
    violations += _beside(violations, audit(fleet, version))
    violations += other_violations(fleet, list(others))
    samples = list(fleet.sampled.values())
    violations += [("sample", said) for each in samples if (said := each.conclude())][:1]
    feed.count()
    angle = None
    if model is not None and fleet.root_model is not None and fleet.root_model.summary is not None:
        held = failures.operator.rows_held()
        angle = feed.angle(fleet.root_model.summary, Schema.parse(model.schema), held)
    outcome = SeedOutcome(
        *(seed, faults, violations, feed.generated, leaves.counted, coverage(fleet)),
        {},
        max(0.0, settled_at - healed),
        per_node_day,
        fleet.largest,
        (0.0, 0.0, 0.0) if model is None else model.staleness,
        angle,
        fleet.trace.hexdigest(),
        {},
        None,
    )
    return LargeOutcome(
        outcome,
        len(samples),
        sum(each.messages for each in samples),
        sum(each.reports for each in samples),
        max((each.worst for each in samples), default=0.0),
    )


def _beside(
    known: list[tuple[str, str]], found: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return what was found of invariants of which nothing is known yet."""
    names = {name for name, _ in known}
    return [each for each in found if each[0] not in names]
