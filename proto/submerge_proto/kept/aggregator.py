"""What aggregators keep, as protobuf and back.

Apart from what clients keep: who loads this loads an aggregator's machinery.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from submerge import PeerError, Schema
from submerge.aggregator.ledger import Member
from submerge.aggregator.node import Store
from submerge.aggregator.pool import Row, Sealed
from submerge.aggregator.quarantine import Apart, Cause, Slip
from submerge.aggregator.upward import Line
from submerge.protocol.desired_state import MOST_WISHES, Wish
from submerge.protocol.kernel_summary import Twofold
from submerge.protocol.messages import HIGHEST
from submerge_proto.kept.client import Form, pin, pin_of, report, report_of
from submerge_proto.v1 import kept_pb2 as pb
from submerge_proto.wire import alarms, parts, summaries


def _store(value: Store) -> pb.Store:
    pinned = None if value.pin is None else pin(value.pin)
    return pb.Store(incarnation=parts.incarnation(value.incarnation), pin=pinned)


def _store_of(message: pb.Store) -> Store:
    return Store(parts.incarnation_of(message.incarnation), pin_of(message))


def _line(value: Line) -> pb.Line:
    past = parts.left(value.past)
    return pb.Line(seq=value.seq, fence=value.fence, past=past, admitted=value.admitted)


def _line_of(message: pb.Line) -> Line:
    seq, past = parts.number("seq", message.seq), parts.left_of(message.past)
    return Line(seq, parts.fence(message.fence), past, parts.fence(message.admitted))


def _row(value: Row) -> pb.Row:
    return pb.Row(report=report(value.report), as_of_s=value.as_of, digest=value.digest)


def _row_of(message: pb.Row) -> Row:
    return Row(report_of(message.report), message.digest, parts.real("as_of", message.as_of_s))


def _sealed(value: Sealed) -> pb.Sealed:
    message = pb.Sealed(counts=parts.counts(value.counts), as_of_s=value.as_of)
    if value.summary is not None:
        # As it is: folded once more, it must give the same bytes as if there had been no restart.
        summaries.put(message, value.summary, exact=True)
        of = value.summary.features if isinstance(value.summary, Twofold) else value.summary
        message.fingerprint = bytes.fromhex(of.schema)
    if value.moments is not None:
        message.moments.CopyFrom(parts.moments(value.moments))
    return message


def _sealed_of(message: pb.Sealed) -> Sealed:
    summary = moments = None
    if message.HasField("subspace") or message.HasField("linear"):
        fingerprint = parts.fingerprint(message.fingerprint)
        summary = summaries.of(message, fingerprint, kept=True)
    if message.HasField("moments"):
        moments = parts.moments_of(message.moments)
    as_of = parts.real("as_of", message.as_of_s)
    return Sealed(summary, moments, parts.counts_of(message.counts), as_of)


def _member(value: Member) -> pb.Member:
    closed = (
        pb.Member.Closed(incarnation=parts.incarnation(name), seq=seq)
        for name, seq in value.closed.items()
    )
    fences = (
        pb.Member.Fence(incarnation=parts.incarnation(name), fence=fence)
        for name, fence in value.fences.items()
    )
    return pb.Member(closed=closed, floor_ms=value.floor, fences=fences)


def _member_of(message: pb.Member) -> Member:
    closed = {
        parts.incarnation_of(each.incarnation): parts.number("seq", each.seq)
        for each in message.closed
    }
    fences = {
        parts.incarnation_of(each.incarnation): parts.fence(each.fence) for each in message.fences
    }
    return Member(closed, parts.number("floor", message.floor_ms), fences)


def _nodes(value: Iterable[str]) -> pb.Nodes:
    return pb.Nodes(names=sorted(value))


def _nodes_of(message: pb.Nodes) -> frozenset[str]:
    return frozenset(map(parts.name, message.names))


def _quarantined(value: Mapping[str, Apart]) -> pb.Quarantined:
    nodes = (
        pb.Quarantined.Node(name=name, cause=_CAUSES[apart.cause], since_s=apart.since)
        for name, apart in value.items()
    )
    return pb.Quarantined(nodes=nodes)


def _quarantined_of(message: pb.Quarantined) -> dict[str, Apart]:
    told = {parts.name(name): Apart("operator", 0.0) for name in message.names}
    for each in message.nodes:
        since = parts.real("since", each.since_s)
        told[parts.name(each.name)] = Apart(_cause_of(each.cause), since)
    return told


def _cause_of(number: int) -> Cause:
    for cause, name in _CAUSES.items():
        if pb.Cause.Value(name) == number:
            return cause
    raise PeerError(f"expected a cause that is known, got {number}")


def _suspected(value: Mapping[str, Slip]) -> pb.Suspected:
    nodes = (
        pb.Suspected.Node(name=name, at_s=slip.at, digest=slip.said) for name, slip in value.items()
    )
    return pb.Suspected(nodes=nodes)


def _suspected_of(message: pb.Suspected) -> dict[str, Slip]:
    return {
        parts.name(each.name): Slip(parts.real("time", each.at_s), each.digest)
        for each in message.nodes
    }


def _wishes(value: Mapping[str, Wish]) -> pb.Wishes:
    return pb.Wishes(wishes=alarms.wishes(value.values()))


def _wishes_of(message: pb.Wishes) -> dict[str, Wish]:
    return {wish.node: wish for wish in alarms.wishes_of(message.wishes, MOST_WISHES)}


def _schema_of(message: pb.Text) -> bytes:
    if message.value:  # empty while it is not known
        Schema.parse(message.value)
    return message.value


def _version_of(message: pb.Number) -> int:
    return parts.number("version", message.value, HIGHEST)


_CAUSES: dict[Cause, str] = {
    cause: f"CAUSE_{cause.upper().replace(' ', '_')}" for cause in get_args(Cause)
}

_SCHEMA = Form(pb.Text, lambda value: pb.Text(value=value), _schema_of)

FORMS = {
    "store": Form(pb.Store, _store, _store_of),
    "line": Form(pb.Line, _line, _line_of),
    "row": Form(pb.Row, _row, _row_of),
    "sealed": Form(pb.Sealed, _sealed, _sealed_of),
    "member": Form(pb.Member, _member, _member_of),
    "banned": Form(pb.Nodes, _nodes, _nodes_of),
    "quarantined": Form(pb.Quarantined, _quarantined, _quarantined_of),
    "suspected": Form(pb.Suspected, _suspected, _suspected_of),
    "wishes": Form(pb.Wishes, _wishes, _wishes_of),
    "heard": Form(
        pb.Number, lambda value: pb.Number(value=value), lambda m: parts.number("heard", m.value)
    ),
    "schema": _SCHEMA,
    "asked": _SCHEMA,
    "version": Form(pb.Number, lambda value: pb.Number(value=value), _version_of),
    "reference": Form(
        pb.Real, lambda value: pb.Real(value=value), lambda m: parts.real("time", m.value)
    ),
}
"""By the first word of a record's key."""
