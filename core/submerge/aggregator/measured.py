"""Rows that only measured, and whose readings another incarnation of their node counts since.

A client's readings go over to the settled schema under a name that follows from the name that
measured (`protocol.successor`). So the report says by itself whose readings it has, and the parent
that takes it marks the row that measured in the same transaction. Rows of an earlier schema count
for nothing in any case: the mark says what has become of their readings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from submerge.aggregator.pool import Row
from submerge.protocol.messages import Counts, Incarnation, Report
from submerge.protocol.report_bytes import digest
from submerge.protocol.successor import successor
from submerge.protocol.summaries import Summaries

Key = tuple[str, Incarnation]


def rows_moved(
    report: Report,
    rows: Mapping[Key, Row],
    live: Iterable[Incarnation],
    summaries: Summaries,
    family: str,
) -> Iterator[tuple[Key, Row]]:
    """Yield the rows of the reporting node whose readings are in `report`, as moved.

    live : the node's incarnations that have a row
    family : of the report's schema
    """
    name = report.stamp.incarnation
    for each in live:
        row = rows[key := (report.stamp.node, each)]
        counts = row.report.counts
        if row.report.summary is None and successor(each, family) == name:
            moved = Counts(moved=counts.moved + counts.generated)
            # Without moments: they must not be of more readings than are counted.
            marked = replace(row.report, counts=moved, moments=None)
            # The report that it came as may come again.
            seen = row.digest or digest(row.report, summaries)
            yield key, replace(row, report=marked, digest=seen)
