"""RowVerdict: what a ledger decides about a report; `refusal_of`: which reports change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from submerge.aggregator.earlier_sums import fit_earlier
from submerge.aggregator.pool import Row
from submerge.aggregator.report_limits import fits
from submerge.protocol.messages import Reason, Report
from submerge.protocol.summaries import Summaries

if TYPE_CHECKING:
    from submerge.aggregator.ledger import Ledger


class RowVerdict(NamedTuple):
    """The answer to a report, the seq that is held now, and whether a row has changed."""

    reason: Reason
    newest: int
    news: bool = False


def refusal_of(
    ledger: Ledger, report: Report, row: Row | None, summaries: Summaries
) -> RowVerdict | None:
    """Return the answer to a report that changes nothing; None if it may change rows.

    row : of the report's incarnation; None if there is none
    """
    stamp = report.stamp
    held = 0 if row is None else row.report.stamp.seq
    over = ledger.member(stamp.node).closed_seq(stamp.incarnation)
    if over is not None:
        # Late: it is folded in. But two processes of one store number their reports alike.
        known = stamp.seq <= over and not report.fence
        return RowVerdict(Reason.ACK if known else Reason.STALE, over)
    schema = ledger.schema_of(report.fingerprint)
    # The last report of an incarnation is kept at its client, while the group may get another one.
    if schema is None or (schema is not ledger.schema and not report.final):
        return RowVerdict(Reason.SCHEMA, held)
    if ledger.member(stamp.node).fences.get(stamp.incarnation, b"") != report.fence:
        return RowVerdict(Reason.FENCED, held)
    earlier_fit = fit_earlier(report, ledger.schema_of, summaries)
    if not (earlier_fit and fits(report, schema, summaries)):
        return RowVerdict(Reason.INVALID, held)
    if row is None:
        return None
    if stamp.seq < held and not report.final:
        return RowVerdict(Reason.ACK, held)
    if stamp.seq == held and not row.came_as(report, summaries):
        return RowVerdict(Reason.EQUIVOCATION, held)
    shrunk = report.counts.learnt < row.report.counts.learnt
    if stamp.seq > held and row.from_client and shrunk:
        return RowVerdict(Reason.SHRUNK, held)
    return None
