"""How a summary is formed for a parent: whole where the parent takes that, else as directions.

A parent says in its answer to a join whether it takes whole scatters. One of an earlier version
does not, and gets the directions that its group keeps. Records hold the summary as it was learnt:
a report is formed when it is made, and a final report when it is sent.
"""

from __future__ import annotations

from dataclasses import replace

from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.messages import Report
from submerge.protocol.summaries import Summaries


def is_whole(report: Report | None) -> bool:
    """Return whether a report holds a whole scatter."""
    return report is not None and isinstance(report.summary, WholeScatter)


def formed(report: Report, summaries: Summaries, *, whole: bool) -> Report:
    """Return a report as its parent takes it: the same report if nothing has to change.

    whole : whether the parent takes whole scatters
    """
    summary = report.summary
    if not isinstance(summary, WholeScatter):
        return report
    # Rounded once: when it is repeated, it has to be the same bytes.
    as_sent = summary.rounded() if whole else summaries.directions(summary)
    return report if as_sent is summary else replace(report, summary=as_sent)
