"""Sums under an earlier schema in a report, and the checks of them: those of its own summary.

A client has no such sums, and a report with a summary has all that counts in it. Sums in either
would count readings twice, so such a report is refused.
"""

from __future__ import annotations

from submerge import PeerError
from submerge.protocol.messages import EarlierSums, Report
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import parts, summaries


def put(
    message: pb.ReportRequest, sums: EarlierSums | None, *, coarse: bool = False, kept: bool = False
) -> None:
    """Put sums into a report, as `summaries.put`; those that have faded to nothing are left out."""
    if sums is None:
        return
    holder = pb.ReportRequest()
    summaries.put(holder, sums.summary, coarse=coarse, kept=kept)
    if holder.HasField("subspace"):
        message.earlier.fingerprint = bytes.fromhex(sums.fingerprint)
        message.earlier.subspace.CopyFrom(holder.subspace)
        message.earlier.counts.CopyFrom(parts.counts(sums.counts))


def of(message: pb.ReportRequest, *, kept: bool = False) -> EarlierSums | None:
    """Return the sums that a report holds; None if it has none.

    Raises PeerError if no honest node could have written them.
    """
    if not message.HasField("earlier"):
        return None
    earlier = message.earlier
    fingerprint = parts.fingerprint(earlier.fingerprint)
    holder = pb.ReportRequest()
    if earlier.HasField("subspace"):
        holder.subspace.CopyFrom(earlier.subspace)
    summary = summaries.of(holder, fingerprint, kept=kept)
    if summary is None:
        raise PeerError("expected sums of an earlier schema, got no subspace", kind="shape")
    return EarlierSums(fingerprint, summary, parts.counts_of(earlier.counts))


def check(report: Report) -> None:
    """Refuse sums in a report that cannot have them, or of more readings than it counts."""
    sums = report.earlier
    if sums is None:
        return
    if not report.fence:
        raise PeerError("a client has no sums of an earlier schema, got some", kind="shape")
    if report.summary is not None:
        raise PeerError("expected a summary, or sums of an earlier schema, got both", kind="shape")
    if sums.fingerprint == report.fingerprint:
        raise PeerError("expected sums of an earlier schema, got the report's own", kind="shape")
    part, whole = sums.counts, report.counts
    pairs = (
        *((part.learnt, whole.learnt), (part.withheld, whole.withheld)),
        *((part.lost, whole.lost), (part.moved, whole.moved)),
    )
    if any(few > many for few, many in pairs):
        raise PeerError(
            f"expected earlier sums of at most {whole.learnt} readings, got {part.learnt}",
            kind="range",
        )
