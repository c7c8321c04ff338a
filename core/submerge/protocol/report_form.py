"""How a summary is formed for a parent: whole where the parent takes that, else as directions.

A parent says in its answer to a join whether it takes whole scatters. One of an earlier version
does not, and gets the directions that its group keeps. Records hold the summary as it was learnt:
a report is formed when it is made, and a final report when it is sent.
"""

from __future__ import annotations

from dataclasses import replace

from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.earlier_sums import learnt_in
from submerge.protocol.messages import Report
from submerge.protocol.summaries import Summaries, Summary


def is_whole(report: Report | None) -> bool:
    """Return whether a report holds a whole scatter."""
    return report is not None and any(
        isinstance(summary, WholeScatter) for _, summary in learnt_in(report)
    )


def formed(report: Report, summaries: Summaries, *, whole: bool) -> Report:
    """Return a report as its parent takes it: the same report if nothing has to change.

    whole : whether the parent takes whole scatters
    """
    summary, sums = report.summary, report.earlier
    if sums is not None:
        sums = sums._replace(summary=_as_sent(sums.summary, summaries, whole=whole))
    as_sent = None if summary is None else _as_sent(summary, summaries, whole=whole)
    unchanged = as_sent is summary and sums is None
    return report if unchanged else replace(report, summary=as_sent, earlier=sums)


def _as_sent(summary: Summary, summaries: Summaries, *, whole: bool) -> Summary:
    if not isinstance(summary, WholeScatter):
        return summary
    # Rounded once: when it is repeated, it has to be the same bytes.
    return summary.rounded() if whole else summaries.directions(summary)
