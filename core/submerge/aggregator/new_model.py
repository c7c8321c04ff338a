"""A root's rows as a model: everything that goes down with the merge."""

from __future__ import annotations

from submerge.aggregator.ledger import Ledger
from submerge.aggregator.rollup import census, limits, scores, staleness
from submerge.aggregator.versions import newest_version
from submerge.protocol.machine import Now
from submerge.protocol.messages import Model
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Summaries


def new_model(
    ledger: Ledger,
    canonical: bytes,
    settings: AggregatorSettings,
    now: Now,
    *,
    summaries: Summaries,
    last: int,
) -> Model:
    """Return the rows of a group as a model.

    canonical : text of the group's schema
    last : version of the last model
    """
    # First: it takes the time, on which outliers depend, and so does all that follows.
    seen = ledger.seen(now)
    # Above every version in use: neither a clock that once ran years ahead nor a store that was
    # lost may keep the fleet on an old model.
    in_use = newest_version(ledger, now, own=last)
    known, recent = census(ledger, now), scores(ledger)
    return Model(
        ledger.group,
        max(last, now.wall_ms - 1, in_use) + 1,
        canonical,
        ledger.fingerprint,
        None if seen is None else summaries.directions(seen),
        limits(recent),
        ledger.counts(),
        known.nodes,
        staleness(known),
        created=now.wall,
        expires=now.wall + 10 * max(settings.model_every_s, settings.report_every_s),
        maxima=None if recent is None else recent.maxima,
    )
