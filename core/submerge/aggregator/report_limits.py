"""What a report may claim, from a client or an aggregator: no more than its readings allow.

1. A report's summary weighs at most what its learnt readings weigh. Fading only takes weight away.
   Rows of the future are the exception: they are read as of now, and gain weight. A believed clock
   runs ahead by `AHEAD_S` at most, so that the factor is at most 2^(AHEAD_S / half-life).
2. Its moments are of at most as many readings as it has learnt.
3. What an aggregator sends itself weighs at most what its readings weigh when they are fresh
   (`within_readings`). Otherwise several levels, each with a clock ahead of the level above, would
   multiply the factor of rule 1.

Counts are cut to `MOST_COUNTED` on their way, and so the weight must not exceed that either.
"""

from __future__ import annotations

from submerge.aggregator.row_time import AHEAD_S
from submerge.protocol.messages import Report
from submerge.protocol.summaries import Summaries, Summary
from submerge.schema import Schema

MOST_COUNTED = 2**53
"""Most readings in a report: floats count exactly so far."""

ROUNDING = 1e-6
"""By how much a weight may exceed its readings: it is a sum of many rounded numbers."""


def fits(report: Report, schema: Schema, summaries: Summaries) -> bool:
    """Return whether a report of that schema can be merged, and claims no more than it counts."""
    summary, moments, learnt = report.summary, report.moments, report.counts.learnt
    if moments is not None and (len(moments.mean) != schema.width or moments.count > learnt):
        return False
    if summary is None:
        return True
    return weighs_as_counted(summary, learnt, schema) and summaries.fits(schema, summary)


def weighs_as_counted(summary: Summary, learnt: int, schema: Schema) -> bool:
    """Return whether a summary weighs no more than the readings that are said to be in it."""
    return summary.weight <= most_weight(learnt, schema.half_life)


def most_weight(learnt: int, half_life: float | None) -> float:
    """Return the most that a report of so many learnt readings may weigh.

    half_life : seconds, or None
    """
    # Merging clips a factor of fading at 2^200, too.
    halvings = min(AHEAD_S / half_life, 200.0) if half_life else 0.0
    return float(min(learnt, MOST_COUNTED) * 2.0**halvings * (1 + ROUNDING))


def within_readings(summaries: Summaries, summary: Summary | None, learnt: int) -> Summary | None:
    """Return a summary that weighs at most `learnt` readings, faded by one factor if need be."""
    most = float(min(learnt, MOST_COUNTED))
    if summary is None or summary.weight <= most * (1 + ROUNDING / 2):
        return summary
    return summaries.faded(summary, most / summary.weight) if most else None
