"""run_large(): simulates one seed of a large fleet, and checks it at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from submerge.schema import Schema
from submerge_lab.simulator.injected_failures import HOUR, InjectedFailures
from submerge_lab.simulator.large.fleet import LargeFleet
from submerge_lab.simulator.large.leaf import LeafNode
from submerge_lab.simulator.large.leaf_audit import LeafAudit
from submerge_lab.simulator.large.rows import NumberedRows
from submerge_lab.simulator.large.sample import SampledLeaf
from submerge_lab.simulator.large.spans import SpanSummaries
from submerge_lab.simulator.large.support import refuse_unsupported
from submerge_lab.simulator.observer import Observers
from submerge_lab.simulator.oracles.audit import audit
from submerge_lab.simulator.oracles.history_oracle import HistoryOracle
from submerge_lab.simulator.plan import Plan
from submerge_lab.simulator.run import Sample, SeedOutcome, begun, coverage, flush, other_violations
from submerge_lab.simulator.transcript import Transcript

SAMPLED = 10
"""Clients that run a second time, by default."""


def run_large(
    plan: Plan,
    seed: int,
    *,
    sampled: int = SAMPLED,
    client: type[LeafNode] = LeafNode,
    transcript: int = 0,
    progress: Callable[[float], None] | None = None,
) -> SeedOutcome:
    """Run one seed.

    Parameters
    ----------
    sampled : int
        Clients that run a second time, with all their matrices; spread over the fleet.
    client : type
        The clients; tests put mutants in their place.
    transcript, progress
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
    fleet.transcript = Transcript(transcript) if transcript else None
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
    violations += _found_beside(violations, fleet, version, others)
    return SeedOutcome(
        *(seed, faults, violations, feed.generated, leaves.counted, coverage(fleet)),
        {},
        max(0.0, settled_at - healed),
        per_node_day,
        fleet.largest,
        (0.0, 0.0, 0.0) if model is None else model.staleness,
        _angle(fleet, feed, failures),
        fleet.trace.hexdigest(),
        {},
        None if fleet.transcript is None else list(fleet.transcript.lines),
        _compared(list(fleet.sampled.values())),
    )


def _angle(fleet: LargeFleet, feed: NumberedRows, failures: InjectedFailures) -> float | None:
    """Return the angle between the root's model and all readings pooled; None without a model."""
    model = fleet.root_model
    if model is None or model.summary is None:
        return None
    feed.count()
    return feed.angle(model.summary, Schema.parse(model.schema), failures.operator.rows_held())


def _compared(samples: list[SampledLeaf]) -> Sample:
    return Sample(
        len(samples),
        sum(each.messages for each in samples),
        sum(each.reports for each in samples),
        max((each.worst for each in samples), default=0.0),
    )


def _found_beside(
    known: list[tuple[str, str]],
    fleet: LargeFleet,
    version: int,
    others: Sequence[HistoryOracle],
) -> list[tuple[str, str]]:
    """Return violations that others than the audit by client find, the first of each kind."""
    names = {name for name, _ in known}
    found = [each for each in audit(fleet, version) if each[0] not in names]
    found += other_violations(fleet, list(others))
    differences = (each.conclude() for each in fleet.sampled.values())
    return found + [("sample", each) for each in differences if each][:1]
