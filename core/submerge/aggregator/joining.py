"""answer_join(): how a group answers a child that asks to join."""

from __future__ import annotations

from submerge.aggregator.group import Group
from submerge.errors import PeerError
from submerge.protocol.messages import Incarnation, Join, Joined, Reason
from submerge.schema import Schema, differences


def answer_join(group: Group, join: Join, me: Incarnation, *, top: bool) -> Joined:
    """Answer a child that asks to join.

    me : the incarnation of the store
    top : whether it is a root's
    """
    stamp, ledger, reason, floor = join.stamp, group.ledger, Reason.ACK, 0
    lines: tuple[str, ...] = ()
    newest = 0
    if ledger is None:
        reason = Reason.UNAVAILABLE
    else:
        member = ledger.member(stamp.node)
        row = ledger.rows.get((stamp.node, stamp.incarnation))
        newest, floor = 0 if row is None else row.report.stamp.seq, member.floor
        # A difference would name our channels to a banned node.
        banned = stamp.node in group.banned
        lines = () if banned else _objections(join.schema, group.canonical, ledger.schema)
        if banned:
            reason = Reason.BANNED
        elif ledger.member(stamp.node).closed_seq(stamp.incarnation) is not None:
            reason = Reason.STALE
        elif lines:
            reason = Reason.SCHEMA
        elif join.fence and not ledger.admit(
            stamp.node, stamp.incarnation, join.fence, join.past_fences
        ):
            reason = Reason.LINEAGE
    if reason is Reason.ACK and join.early and not join.fence:
        group.early.note(stamp.node, stamp.incarnation, join.early)
    canonical = group.canonical if reason is Reason.ACK else b""
    pinned = None if reason is Reason.UNAVAILABLE else me
    stamp = stamp._replace(seq=newest)
    said = pinned, top, floor, canonical, lines
    return Joined(stamp, reason, join.fence, *said, whole_scatter=True)


def _objections(theirs: bytes, canonical: bytes, ours: Schema) -> tuple[str, ...]:
    if theirs in (b"", canonical):
        return ()
    try:
        return differences(ours, Schema.parse(theirs))
    except PeerError as error:
        return (str(error),)
