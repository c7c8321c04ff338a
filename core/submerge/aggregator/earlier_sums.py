"""Sums under an earlier schema, in reports to the parent and in rows of children.

Below the root it is not known that a schema is open, and rows of earlier ones wait (`Pool`). What a
report had of them until then would be gone from the parent's row, and with the store that has them
if that is lost. So a report has the sums of all rows that wait, as of the newest earlier schema
with a scale (`protocol.earlier_sums`). A parent takes them for what they are: a part of its child's
row, under that schema.

Sums of a schema that a parent does not know are not kept: it could not check them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from submerge.aggregator.pool import Row, Sealed
from submerge.aggregator.report_limits import weighs_as_counted, within_readings
from submerge.aggregator.row_time import seen_from
from submerge.aggregator.totals import CountedRows
from submerge.protocol.earlier_sums import EarlierSums
from submerge.protocol.machine import Now
from submerge.protocol.messages import Report
from submerge.protocol.summaries import Summaries
from submerge.schema import Schema

if TYPE_CHECKING:
    from submerge.aggregator.ledger import Ledger
    from submerge.aggregator.plan import GroupPlan

SchemaOf = Callable[[str], Schema | None]
"""Returns the schema of a fingerprint whose rows count; None if they do not."""


def earlier_sums(ledger: Ledger, summaries: Summaries, now: Now) -> EarlierSums | None:
    """Return the sums of all rows that wait for the present schema; None if none do."""
    pool = ledger.waiting()
    summary = None if pool is None else pool.summary(seen_from(now, ledger.rows.values()))
    if pool is None or summary is None:
        return None
    summary = pool.with_energies(summary, even=True)
    out = ledger.left_out | pool.outliers().keys()
    # None of them is the present one: what was only measured does not count.
    schemas = {pool.fingerprint, *pool.earlier}
    counts = CountedRows(ledger.rows, ledger.sealed, "", schemas, out).counts()
    bounded = within_readings(summaries, summary, counts.learnt)
    return None if bounded is None else EarlierSums(pool.fingerprint, bounded, counts)


def within_room(plan: GroupPlan, report: Report, ledger: Ledger) -> Report:
    """Return a report without earlier sums, where it would be larger than any other may be.

    The parent has room for the largest report under the present schema. A larger one would be
    refused, and with it the moments that the root waits for.
    """
    if report.earlier is None or plan.has_room is None or plan.has_room(report, ledger.schema):
        return report
    return replace(report, earlier=None)


def fit_earlier(report: Report, schema_of: SchemaOf, summaries: Summaries) -> bool:
    """Return whether earlier sums in a report can be merged, and weigh no more than they count."""
    sums = report.earlier
    schema = None if sums is None else schema_of(sums.fingerprint)
    if sums is None or schema is None:
        return True  # there is nothing to merge
    weighs = weighs_as_counted(sums.summary, sums.counts.learnt, schema)
    return weighs and summaries.fits(schema, sums.summary)


def with_known_sums(report: Report, schema_of: SchemaOf) -> Report:
    """Return a report without sums of a schema whose rows do not count; itself if it has none."""
    sums = report.earlier
    if sums is None or schema_of(sums.fingerprint) is not None:
        return report
    return replace(report, earlier=None)


def is_old(report: Report, schema_of: SchemaOf) -> bool:
    """Return whether a report is of an earlier schema, and nothing in it counts."""
    sums = report.earlier
    prints = (report.fingerprint,) if sums is None else (report.fingerprint, sums.fingerprint)
    return all(schema_of(each) is None for each in prints)


def sealed_of(row: Row) -> Iterator[tuple[str, Sealed]]:
    """Yield what a row leaves when it is sealed, each with the fingerprint of its schema."""
    report, sums, counts = row.report, row.report.earlier, row.report.counts
    if sums is not None:
        counts = counts.without(sums.counts)
        yield sums.fingerprint, Sealed(sums.summary, None, sums.counts, row.as_of)
    yield report.fingerprint, Sealed(report.summary, report.moments, counts, row.as_of)
