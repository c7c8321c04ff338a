"""What a root settles once: center, scale and gamma, which a schema may leave open, and the rank.

The rank is configured, or chosen by held-out likelihood (`pca.choice`), each child's summary
against the model of all others; until there are enough rows, the configured rank holds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from submerge.aggregator.plan import GroupPlan, carried_over, known_scaling, with_known
from submerge.aggregator.rows.ledger import Ledger
from submerge.features import OpenLandmarks
from submerge.pca.choice import LEAST_FOLDS, Summarised, best_rank
from submerge.pca.scatter_sum import Center
from submerge.protocol.summaries import Subspaces, below
from submerge.robust import influence
from submerge.schema import Schema
from submerge.stats.moments import Moments, spread

ENOUGH = 20_000
"""Readings that children have learnt before the rank is chosen. Of the generated room, 5,000 gave
ranks from 1 to 2 where all rows give 14, and 18,000 gave 13."""

SOONER = 4
"""Where other channels are known already, new ones are measured for so much less: meanwhile no row
is scored."""


class Settled(NamedTuple):
    """What rows have settled: the schema, and the rank that was chosen, 0 while there is none."""

    schema: Schema
    rank: int


def settle(plan: GroupPlan, ledger: Ledger, rank: int, least: int) -> Settled:
    """Settle what is still open, as far as there are `least` readings for it."""
    schema, moments = ledger.schema, ledger.moments()
    known = known_scaling(schema, ledger.former.schemas, plan.given) if plan.learns_scaling else {}
    carried = carried_over(schema, known) if known and schema.scaling is None else None
    enough = max(1, least // SOONER) if known else least
    if carried is not None:
        schema = carried  # also a channel that was away is measured as it was
    elif isinstance(schema.features, OpenLandmarks):
        pass  # with the landmarks, all at once: `fleet_landmarks`
    elif plan.settles and moments is not None and moments.count >= enough:
        schema = settled_schema(schema, moments, learns_scaling=plan.learns_scaling)
        schema = with_known(schema, known)
    return Settled(schema, rank or rank_by_rows(plan, ledger))


def published_rank(plan: GroupPlan, schema: Schema, chosen: int) -> int:
    """Return how many directions nodes score with; 0 where there are none."""
    if not isinstance(plan.summaries, Subspaces):
        return 0
    return below(chosen or plan.summaries.rule.start, schema.dim)


def held_rank(plan: GroupPlan, ledger: Ledger) -> int:
    """Return the rank that histories were fitted with, until rows choose one; 0 without any."""
    if not plan.chooses_rank or not isinstance(plan.summaries, Subspaces):
        return 0
    return min(ledger.histories.rank(ledger.fingerprint), plan.summaries.rank_max)


def rank_by_rows(plan: GroupPlan, ledger: Ledger) -> int:
    """Return the rank that follows from the rows of 4 children or more; 0 if it is too early."""
    if not plan.chooses_rank or ledger.counts().learnt < ENOUGH:
        return 0
    # In one order: a choice must not depend on when rows arrived.
    rows = sorted(ledger.current(), key=lambda row: row.report.stamp[:3])
    learnt = Counter[str]()
    for row in rows:
        learnt[row.report.stamp.node] += row.report.counts.learnt
    # A choice is for good: no child may bring it about early by what it claims alone.
    if sum(min(each, ENOUGH // LEAST_FOLDS) for each in learnt.values()) < ENOUGH:
        return 0
    summaries = [row.report.summary for row in rows if row.report.summary is not None]
    return _best(plan, ledger.schema, [summary.pieces[0] for summary in summaries])


def _best(plan: GroupPlan, schema: Schema, folds: list[Summarised]) -> int:
    summaries = plan.summaries
    folds = [fold for fold in folds if fold.weight > 0]
    if not isinstance(summaries, Subspaces) or not folds:
        return 0
    center: Center = "own" if schema.center == "own" else "fleet"
    known = influence.spread(folds, np.ones(len(folds)), means=center != "own")
    allowed = influence.allowed_energy(known.energy)
    most = influence.SPREAD * float(np.median(known.rows))
    # What one child claims must not decide which directions the others are held against.
    folds = [
        fold.faded(min(1.0, most / fold.weight))
        for fold, is_like in zip(folds, known.energy <= allowed, strict=True)
        if is_like
    ]
    spare = summaries.oversample
    return best_rank(folds, most=summaries.rank_max, center=center, spare=spare) or 0


def settled_schema(schema: Schema, moments: Moments, *, learns_scaling: bool) -> Schema:
    """Return a schema with center, scale and gamma, as far as it leaves them open."""
    scaling, features, size = schema.scaling, schema.features, spread(moments)
    if learns_scaling and scaling is None:
        # Channels that vary have then all come to a spread of one.
        scaling, size = moments.scaling, float(max(1, moments.varying))
    if not features.settled:
        features = features.settled_at(features.auto(size))
    return replace(schema, scaling=scaling, features=features)
