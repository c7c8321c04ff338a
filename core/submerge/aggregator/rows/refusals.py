"""RowVerdict: what a ledger decides about a report; and what a report may claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from submerge.aggregator.rows.presence import AHEAD_S
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.messages import Reason, Report
from submerge.protocol.summaries import Summaries, Summary
from submerge.schema import Schema

SchemaOf = Callable[[str], Schema | None]
"""Returns the schema of a fingerprint whose rows count; None if they do not."""

MOST_COUNTED = 2**53  # most readings in a report: floats count exactly so far
ROUNDING = 1e-6  # by how much a weight may exceed its readings: it is a sum of many rounded numbers


def fits(report: Report, schema: Schema, summaries: Summaries) -> bool:
    """Return whether a report of that schema can be merged, and claims no more than it counts."""
    summary, moments, learnt = report.summary, report.moments, report.counts.learnt
    if moments is not None and (len(moments.mean) != schema.width or moments.count > learnt):
        return False
    if summary is None:
        return True
    # Noise is added to sums of rows alone, and whole numbers need no room for rounding.
    other = isinstance(summary, Subspace | WholeScatter) or summary.weight > learnt
    if schema.clip is not None and other:
        return False
    return weighs_as_counted(summary, learnt, schema) and summaries.fits(schema, summary)


def fit_earlier(report: Report, schema_of: SchemaOf, summaries: Summaries) -> bool:
    """Return whether earlier sums in a report can be merged, and weigh no more than they count."""
    sums = report.earlier
    schema = None if sums is None else schema_of(sums.fingerprint)
    if sums is None or schema is None:
        return True  # there is nothing to merge
    weighs = weighs_as_counted(sums.summary, sums.counts.learnt, schema)
    return weighs and summaries.fits(schema, sums.summary)


def weighs_as_counted(summary: Summary, learnt: int, schema: Schema) -> bool:
    """Return whether a summary weighs no more than the readings that are said to be in it."""
    return summary.weight <= most_weight(learnt, schema.half_life)


def most_weight(learnt: int, half_life: float | None) -> float:
    """Return the most that a report of so many learnt readings may weigh."""
    # Merging clips a factor of fading at 2^200, too.
    halvings = min(AHEAD_S / half_life, 200.0) if half_life else 0.0
    return float(min(learnt, MOST_COUNTED) * 2.0**halvings * (1 + ROUNDING))


def within_readings(summaries: Summaries, summary: Summary | None, learnt: int) -> Summary | None:
    """Return a summary that weighs at most `learnt` readings, faded by one factor if need be."""
    most = float(min(learnt, MOST_COUNTED))
    if summary is None or summary.weight <= most * (1 + ROUNDING / 2):
        return summary
    return summaries.faded(summary, most / summary.weight) if most else None


class RowVerdict(NamedTuple):
    """The answer to a report, the seq that is held now, and whether a row has changed."""

    reason: Reason
    newest: int
    news: bool = False
