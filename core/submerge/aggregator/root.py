"""What only a root does: settle what a schema leaves open and the rank, and make models of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.aggregator.alarms.below import alarm_status, widening
from submerge.aggregator.plan import GroupPlan, carried_over, known_scaling, with_known
from submerge.aggregator.rollup import census, limits, scores, staleness
from submerge.aggregator.rows.influence import is_named
from submerge.aggregator.rows.ledger import Ledger
from submerge.aggregator.rows.pool import knows_energies
from submerge.aggregator.rows.releases import Noise, Release
from submerge.errors import UsageError
from submerge.features import Kernel, Landmarks, Matern, OpenLandmarks, Polynomial
from submerge.pca.choice import LEAST_FOLDS, Summarised, best_rank
from submerge.pca.factor import Factors
from submerge.pca.scatter_sum import Center
from submerge.protocol.machine import Now
from submerge.protocol.messages import BELIEVED, Model, ScoreSketches, Told, most_told
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Subspaces, Summaries, Summary, below
from submerge.robust import influence
from submerge.schema import Schema
from submerge.stats.block_length import group_block_s
from submerge.stats.moments import LEAST_NODES, Moments, movers, spread

# A root makes each version higher than every version in use below, because no child takes a lower
# one: the clock of an earlier root may have run years ahead, and its store may be lost. A report
# that is forged must not push the version towards the last number that there is.

AHEAD_MS = 100 * 365 * 86_400_000
"""How far ahead of our clock one node is believed: further than any wrong clock that is known of.
A counter of seconds in 32 bits ends in 2106."""

SEVERAL = 3  # nodes that are believed together: one key does not speak for so many


def newest_version(ledger: Ledger, now: Now, *, own: int) -> int:
    """Return the highest model version in use below that is believed; 0 without any."""
    claims: dict[str, int] = {}
    for row in ledger.current():
        node, version = row.report.stamp.node, row.report.version
        if version <= BELIEVED:
            claims[node] = max(version, claims.get(node, 0))
    highest = sorted(claims.values(), reverse=True)
    shared = highest[SEVERAL - 1] if len(highest) >= SEVERAL else 0
    most = max(own, now.wall_ms + AHEAD_MS, shared)
    return max((version for version in highest if version <= most), default=0)


def begins_to_score(ledger: Ledger) -> bool:
    """Return whether nodes have learnt rows and scored none: their first model is not to wait."""
    # Nodes that have scored rows have a model. If a new root makes theirs, it waits for more rows.
    scored = any(row.report.scores is not None for row in ledger.current())
    return not scored and ledger.counts().learnt > 0


def known_noise(
    ledger: Ledger,
    seen: Summary | None,
    recent: ScoreSketches | None,
    before: Model | None,
    *,
    even: bool,
) -> Summary | None:
    """Return a merge of all rows; with energies of channels if the group has or had factors."""
    # One row without energies would take them from all. After a restart, scored rows and the model
    # `before` say whether there were factors.
    had = before is not None and bool(before.factors)
    had = had or (recent is not None and recent.distance is not None)
    return None if seen is None else ledger.with_energies(seen, even=even, had=had)


def without_energies(ledger: Ledger) -> frozenset[str]:
    """Return the nodes of earlier versions with live rows that have no energies of channels."""
    held = [(row.report.stamp.node, row.report.summary) for row in ledger.current()]
    return frozenset(
        node for node, summary in held if summary is not None and not knows_energies(summary)
    )


def new_model(
    ledger: Ledger,
    canonical: bytes,
    settings: AggregatorSettings,
    now: Now,
    plan: GroupPlan,
    waits: bool = False,
    *,
    last: int,
    rank: int,
    before: Model | None = None,
) -> Model:
    """Return the rows of a group as a model; `waits`: too few for a summary, its schema goes."""
    # First: it takes the time, on which outliers depend, and so does all that follows.
    summaries, seen = plan.summaries, ledger.seen(now)
    seen = None if waits else seen
    # Above every version in use: neither a clock that once ran years ahead nor a store that was
    # lost may keep the fleet on an old model.
    in_use = newest_version(ledger, now, own=last)
    known, recent = census(ledger, now), scores(ledger)
    maxima = None if recent is None else recent.maxima
    summary = None if seen is None else summaries.directions(seen)
    noise = known_noise(ledger, seen, recent, before, even=False)
    factors = () if noise is None else summaries.factors(noise)
    if noise is not seen and summary is not None:
        # Directions are of all rows, and the noise is not.
        factors = tuple(map(Factors.beside, factors, summary.parts))
    return Model(
        ledger.group,
        max(last, now.wall_ms - 1, in_use) + 1,
        canonical,
        ledger.fingerprint,
        summary,
        limits(recent),
        ledger.counts() + ledger.histories.counts(ledger.fingerprint),
        known.nodes,
        staleness(known),
        created=now.wall,
        expires=now.wall + 10 * max(settings.model_every_s, settings.report_every_s),
        maxima=maxima,
        widened=widening(alarm_status(ledger, now, desired=0)),
        factors=factors,
        rank=published_rank(plan, ledger.schema, rank or held_rank(plan, ledger)),
        block_s=0.0 if maxima is None else group_block_s(maxima.lengths, maxima.block_s),
    )


def told_below(ledger: Ledger) -> Told | None:
    """Return what models have told, as aggregators below say, and clients that are believed."""
    # As versions are: one key does not speak for so many, where there are so many.
    by_client = [row.report.told for row in ledger.current() if row.from_client]
    claims = [sorted(each, reverse=True) for each in zip(*filter(None, by_client), strict=True)]
    shared = Told(*(each[min(SEVERAL, len(each)) - 1] for each in claims)) if claims else None
    others = (row.report.told for row in ledger.current() if not row.from_client)
    return most_told(shared, *others)


def with_noise(model: Model, release: Release | None, summaries: Summaries, noise: Noise) -> Model:
    """Return a model that says nothing of rows but what is in a release (docs/privacy.md)."""
    kept = release.summary if release and release.fingerprint == model.fingerprint else None
    return replace(
        model,
        summary=None if kept is None else summaries.directions(kept),
        factors=() if kept is None else summaries.factors(kept),
        limits=None,
        maxima=None,
        widened=1.0,
        block_s=0.0,
        epsilon=0.0 if release is None else noise.epsilon(release.spent_in_all),
        told=None if release is None else release.told,
    )


# What a root settles once: center, scale and gamma, which a schema may leave open, and the rank.

ENOUGH = 20_000
"""Readings that children have learnt before the rank is chosen. Of the generated room, 5,000 gave
ranks from 1 to 2 where all rows give 14, and 18,000 gave 13."""

SOONER = 4
"""Where other channels are known already, new ones are measured for so much less: meanwhile no row
is scored."""


HELD = 10
"""A scale that one of few nodes moves more than tenfold waits for so many times as many readings of
the others: a person is told meanwhile, for it is settled for good."""


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
    elif not plan.settles or moments is None or moments.count < enough:
        pass  # it is settled, or it is too early
    elif not held_by(plan, ledger, enough):
        schema = settled_schema(schema, moments, learns_scaling=plan.learns_scaling)
        schema = with_known(schema, known)
    return Settled(schema, rank or rank_by_rows(plan, ledger))


def held_by(plan: GroupPlan, ledger: Ledger, enough: int) -> list[str]:
    """Return the nodes that keep a schema open: of fewer than five, each moves a scale tenfold."""
    nodes = ledger.counted.moments_by_node()
    count = sum(node.count for node in nodes.values())
    found = movers(nodes) if len(nodes) < LEAST_NODES else []
    # How many readings it claims itself is not asked.
    young = [name for name in found if count - nodes[name].count < HELD * enough]
    return [name for name in young if not is_named(name, plan.trusted)]


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


# Landmarks that a root has its fleet choose: when it asks for them, and the schema that follows.
#
# While a group leaves them open (`features.OpenLandmarks`) its nodes measure. With enough readings
# the root's driver opens a job of kind `landmarks`; its answer settles scaling, gamma and landmarks
# at once, and is asked for again if it is lost. Only an operator has landmarks chosen again.


class LandmarksWanted(NamedTuple):
    """A choice that a group waits for: of rows that nodes hold under a schema, by a job."""

    schema: Schema
    settings: dict[str, int | float | str | bool | None]


def wanted(plan: GroupPlan, ledger: Ledger | None, least: int) -> LandmarksWanted | None:
    """Return the choice that a root's group waits for; None for none, or too few readings."""
    if ledger is None or not isinstance(ledger.schema.features, OpenLandmarks):
        return None
    if not plan.settles:
        return None  # an aggregator below the root has its schema from there
    moments = ledger.moments()
    if moments is None or moments.count < max(1, least) or held_by(plan, ledger, least):
        return None
    return choice_for(plan, ledger.schema)


def choice_for(plan: GroupPlan, schema: Schema) -> LandmarksWanted:
    """Return the choice of landmarks under a schema; UsageError if the fleet makes none."""
    asked = None if plan.schema is None else plan.schema.features
    if not isinstance(asked, OpenLandmarks) or not isinstance(
        schema.features, OpenLandmarks | Landmarks
    ):
        raise UsageError('the group\'s landmarks are not left to the fleet: landmarks = "fleet"')
    raw = plan.learns_scaling and schema.scaling is None
    settings = _kernel_settings(asked.kernel) | {"landmarks": asked.landmarks, "scale": raw}
    if schema.features.kernel.gamma is not None:
        settings["gamma"] = schema.features.kernel.gamma
    return LandmarksWanted(schema, settings)


def schema_with(plan: GroupPlan, ledger: Ledger, points: Array) -> Schema:
    """Return the schema that follows from landmarks (m, channels); UsageError if they are none."""
    schema, moments = ledger.schema, ledger.moments()
    features = schema.features
    choice_for(plan, schema)  # whether it leaves them to the fleet
    if isinstance(features, Landmarks):
        asked = OpenLandmarks(features.kernel, max(len(features.points), len(points)))
        return replace(schema, features=asked.chosen(points))
    if not isinstance(features, OpenLandmarks) or moments is None:
        raise UsageError("the group waits for no landmarks")
    found = settled_schema(schema, moments, learns_scaling=plan.learns_scaling)
    settled = found.features
    if not isinstance(settled, OpenLandmarks):
        raise UsageError("the group waits for no landmarks")
    if schema.scaling is None:
        points = found.scaled(points)
    return replace(found, features=settled.chosen(points))


def _kernel_settings(kernel: Kernel) -> dict[str, int | float | str | bool | None]:
    found: dict[str, int | float | str | bool | None] = {"kernel": type(kernel).__name__.lower()}
    if isinstance(kernel, Polynomial):
        found |= {"degree": kernel.degree, "coef0": kernel.coef0}
    elif isinstance(kernel, Matern):
        found |= {"nu": kernel.nu}
    return found
