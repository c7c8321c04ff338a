"""EarlierSums: what an aggregator holds under an earlier schema, beside moments of the present one.

While the scale of new channels is measured, a report has moments and no summary. Sums under an
earlier schema cannot take its place: they would be read as rows of the present one. So they go
beside it, under their own fingerprint, and a parent holds them as long as nothing else has these
readings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from submerge.protocol.summaries import Summary

if TYPE_CHECKING:
    from submerge.protocol.messages import Counts, Report


class EarlierSums(NamedTuple):
    """Sums of rows under an earlier schema.

    fingerprint : of that schema
    counts : of these readings; they are among the counts of the report, too
    """

    fingerprint: str
    summary: Summary
    counts: Counts


def learnt_in(report: Report) -> Iterator[tuple[str, Summary]]:
    """Yield the summaries that a report holds, each with the fingerprint of its schema."""
    if report.summary is not None:
        yield report.fingerprint, report.summary
    if report.earlier is not None:
        yield report.earlier.fingerprint, report.earlier.summary
