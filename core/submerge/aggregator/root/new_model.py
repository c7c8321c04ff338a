"""A root's rows as a model: everything that goes down with the merge."""

from __future__ import annotations

from submerge.aggregator.alarms.below import alarm_status
from submerge.aggregator.alarms.widening import widening
from submerge.aggregator.ledger import Ledger
from submerge.aggregator.plan import GroupPlan
from submerge.aggregator.rollup import census, limits, scores, staleness
from submerge.aggregator.root.settling import held_rank, published_rank
from submerge.aggregator.versions import newest_version
from submerge.protocol.machine import Now
from submerge.protocol.messages import Model
from submerge.protocol.settings import AggregatorSettings
from submerge.stats.block_length import group_block_s


def begins_to_score(ledger: Ledger) -> bool:
    """Return whether nodes have learnt rows and scored none: their first model is not to wait.

    Nodes that have scored rows have a model. If a new root makes theirs, it waits for more rows.
    """
    scored = any(row.report.scores is not None for row in ledger.current())
    return not scored and ledger.counts().learnt > 0


def without_energies(ledger: Ledger, model: Model | None) -> frozenset[str]:
    """Return the nodes with live rows that have no energies of channels: there are no factors then.

    An earlier version does not send them. Sealed rows get them (`Sealed.with_energies`). Where the
    newest model has factors, no row lacks them, and none is looked at.
    """
    if model is not None and model.factors:
        return frozenset()
    held = [(row.report.stamp.node, row.report.summary) for row in ledger.current()]
    return frozenset(
        node
        for node, summary in held
        if summary is not None and any(part.channel_energies is None for part in summary.pieces)
    )


def new_model(
    ledger: Ledger,
    canonical: bytes,
    settings: AggregatorSettings,
    now: Now,
    plan: GroupPlan,
    *,
    last: int,
    rank: int,
    waits: bool = False,
) -> Model:
    """Return the rows of a group as a model.

    canonical : text of the group's schema
    last : version of the last model
    rank : that was chosen for the group; 0 while there is none
    waits : whether there are too few rows for a first summary; the schema goes down all the same
    """
    # First: it takes the time, on which outliers depend, and so does all that follows.
    summaries, seen = plan.summaries, ledger.seen(now)
    seen = None if waits else seen
    # Above every version in use: neither a clock that once ran years ahead nor a store that was
    # lost may keep the fleet on an old model.
    in_use = newest_version(ledger, now, own=last)
    known, recent = census(ledger, now), scores(ledger)
    maxima = None if recent is None else recent.maxima
    summary = None if seen is None else summaries.directions(seen)
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
        factors=() if seen is None else summaries.factors(seen),
        rank=published_rank(plan, ledger.schema, rank or held_rank(plan, ledger)),
        block_s=0.0 if maxima is None else group_block_s(maxima.lengths, maxima.block_s),
    )
