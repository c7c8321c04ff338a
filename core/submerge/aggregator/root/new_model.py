"""A root's rows as a model: everything that goes down with the merge."""

from __future__ import annotations

from submerge.aggregator.alarms.below import alarm_status, widening
from submerge.aggregator.plan import GroupPlan
from submerge.aggregator.rollup import census, limits, scores, staleness
from submerge.aggregator.root.settling import held_rank, published_rank
from submerge.aggregator.rows.ledger import Ledger
from submerge.aggregator.rows.pool import knows_energies
from submerge.pca.factor import Factors
from submerge.protocol.machine import Now
from submerge.protocol.messages import BELIEVED, Model, ScoreSketches
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Summary
from submerge.stats.block_length import group_block_s

# A root makes each version higher than every version in use below, because no child takes a lower
# one: the clock of an earlier root may have run years ahead, and its store may be lost. A report
# that is forged must not push the version towards the last number that there is.


AHEAD_MS = 100 * 365 * 86_400_000
"""How far ahead of our clock one node is believed: further than any wrong clock that is known of.
A counter of seconds in 32 bits ends in 2106."""

SEVERAL = 3
"""Nodes that are believed together: one key does not speak for so many."""


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
    """Return whether nodes have learnt rows and scored none: their first model is not to wait.

    Nodes that have scored rows have a model. If a new root makes theirs, it waits for more rows.
    """
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
    """Return a merge of all rows; with energies of channels if the group has had factors.

    One row without energies would take them from all. After a restart, scored rows and the model
    `before` say whether there were factors; `even` is as in `Pool.with_energies`.
    """
    had = before is not None and bool(before.factors)
    had = had or (recent is not None and recent.distance is not None)
    return ledger.with_energies(seen, even=even) if seen is not None and had else seen


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
