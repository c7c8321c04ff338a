"""An aggregator's records as protobuf, and back.

A module of its own: it imports the aggregator's code, which a client does not load.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from submerge import PeerError, Schema
from submerge.aggregator.node import StoreIdentity
from submerge.aggregator.operators.quarantine import Cause, QuarantineEntry, Slip
from submerge.aggregator.rows.influence import GroupTime
from submerge.aggregator.rows.ledger import Membership
from submerge.aggregator.rows.pool import Row, Sealed
from submerge.aggregator.upward import Lineage
from submerge.history.knowledge import Learnt
from submerge.protocol.desired_state import MOST_DESIRED, DesiredState
from submerge.protocol.history import History
from submerge_proto.files import learnt
from submerge_proto.kept.client import RecordForm, pin, pin_of, report, report_of
from submerge_proto.v1 import kept_pb2 as pb
from submerge_proto.wire import alarms, forms, parts, summaries


def history(value: History) -> pb.History:
    """Return a history as a message."""
    held = Learnt(
        value.model,
        value.summary,
        sketches=value.sketches,
        chunks=value.chunks,
        origin=value.origin,
    )
    most = value.most_rows if value.most_rows < math.inf else 0.0
    return pb.History(learnt=learnt.packed(held), most_rows=most, pushed_s=value.pushed)


def history_of(message: pb.History) -> History:
    """Return the history in a message."""
    most = parts.real("most_rows", message.most_rows)
    return history_from(
        learnt.unpacked(message.learnt).learnt,
        most_rows=most or math.inf,
        pushed=parts.real("pushed", message.pushed_s),
    )


def history_from(saved: Learnt, *, most_rows: float = math.inf, pushed: float = 0.0) -> History:
    """Return what a model file holds as a history; one that was saved below a root holds none."""
    if saved.summary is None:
        raise PeerError("it holds nothing that merges: it was saved at an aggregator below a root")
    if not most_rows >= 0:
        raise PeerError(f"expected a number of rows, got {most_rows!r}")
    known = saved.model, saved.summary, saved.sketches, saved.chunks, saved.origin
    return History(*known, most_rows=most_rows, pushed=pushed)


def _store(value: StoreIdentity) -> pb.StoreIdentity:
    pinned = None if value.pin is None else pin(value.pin)
    return pb.StoreIdentity(incarnation=parts.incarnation(value.incarnation), pin=pinned)


def _store_of(message: pb.StoreIdentity) -> StoreIdentity:
    return StoreIdentity(parts.incarnation_of(message.incarnation), pin_of(message))


def _line(value: Lineage) -> pb.Lineage:
    past = parts.left(value.past)
    return pb.Lineage(seq=value.seq, fence=value.fence, past=past, admitted=value.admitted)


def _line_of(message: pb.Lineage) -> Lineage:
    past = parts.left_of(message.past)
    return Lineage(message.seq, parts.fence(message.fence), past, parts.fence(message.admitted))


def _row(value: Row) -> pb.Row:
    return pb.Row(report=report(value.report), as_of_s=value.as_of, digest=value.digest)


def _row_of(message: pb.Row) -> Row:
    read = forms.report_of if message.as_received else report_of
    parts.check_version(message.report.header.version)
    return Row(read(message.report), message.digest, parts.real("as_of", message.as_of_s))


def _sealed(value: Sealed) -> pb.Sealed:
    message = pb.Sealed(counts=parts.counts(value.counts), as_of_s=value.as_of)
    if value.summary is not None:
        # Exact: folding it again must give the same bytes as without a restart.
        summaries.put(message, value.summary, exact=True)
        message.fingerprint = bytes.fromhex(summaries.fingerprint_of(value.summary))
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


def _member(value: Membership) -> pb.Membership:
    closed = (
        pb.Membership.Closed(incarnation=parts.incarnation(name), seq=seq)
        for name, seq in value.closed.items()
    )
    fences = (
        pb.Membership.Fence(incarnation=parts.incarnation(name), fence=fence)
        for name, fence in value.fences.items()
    )
    return pb.Membership(closed=closed, floor_ms=value.floor, fences=fences)


def _member_of(message: pb.Membership) -> Membership:
    closed = {parts.incarnation_of(each.incarnation): each.seq for each in message.closed}
    fences = {
        parts.incarnation_of(each.incarnation): parts.fence(each.fence) for each in message.fences
    }
    return Membership(closed, message.floor_ms, fences)


def _nodes(value: Iterable[str]) -> pb.Nodes:
    return pb.Nodes(names=sorted(value))


def _nodes_of(message: pb.Nodes) -> frozenset[str]:
    return frozenset(message.names)


def _quarantined(value: Mapping[str, QuarantineEntry]) -> pb.Quarantined:
    nodes = (
        pb.Quarantined.Node(name=name, cause=_CAUSES[entry.cause], since_s=entry.since)
        for name, entry in value.items()
    )
    return pb.Quarantined(nodes=nodes)


def _quarantined_of(message: pb.Quarantined) -> dict[str, QuarantineEntry]:
    return {name: QuarantineEntry("operator", 0.0) for name in message.names} | {
        each.name: QuarantineEntry(_cause_of(each.cause), parts.real("since", each.since_s))
        for each in message.nodes
    }


def _cause_of(number: int) -> Cause:
    if number not in _CAUSE_OF:
        raise PeerError(f"expected a known cause, got number {number}")
    return _CAUSE_OF[number]


def _slips(value: Mapping[str, Slip]) -> pb.QuarantineSlips:
    nodes = (
        pb.QuarantineSlips.Node(name=name, at_s=slip.at, digest=slip.digest)
        for name, slip in value.items()
    )
    return pb.QuarantineSlips(nodes=nodes)


def _slips_of(message: pb.QuarantineSlips) -> dict[str, Slip]:
    nodes = message.nodes
    return {each.name: Slip(parts.real("time", each.at_s), each.digest) for each in nodes}


def _desired_states(value: Mapping[str, DesiredState]) -> pb.DesiredStates:
    return pb.DesiredStates(desired_states=alarms.desired_states(value.values()))


def _desired_states_of(message: pb.DesiredStates) -> dict[str, DesiredState]:
    return {
        desired.node: desired
        for desired in alarms.desired_states_of(message.desired_states, MOST_DESIRED)
    }


def _group_time(value: GroupTime) -> pb.GroupTime:
    return pb.GroupTime(elapsed_s=value.elapsed, wall_s=value.wall)


def _group_time_of(message: pb.GroupTime) -> GroupTime:
    return GroupTime(parts.real("time", message.elapsed_s), parts.real("time", message.wall_s))


def _schema_of(message: pb.Text) -> bytes:
    if message.value:  # empty while it is not known
        Schema.parse(message.value)
    return message.value


_CAUSES: dict[Cause, pb.Cause] = {
    "operator": pb.CAUSE_OPERATOR,
    "shrunk": pb.CAUSE_SHRUNK,
    "equivocated twice": pb.CAUSE_EQUIVOCATED_TWICE,
    "unreadable": pb.CAUSE_UNREADABLE,
}
_CAUSE_OF: dict[int, Cause] = {number: cause for cause, number in _CAUSES.items()}

_SCHEMA = RecordForm(pb.Text, lambda value: pb.Text(value=value), _schema_of)

_TIME = RecordForm(
    pb.Real, lambda value: pb.Real(value=value), lambda m: parts.real("time", m.value)
)

_NUMBER = RecordForm(pb.Number, lambda value: pb.Number(value=value), lambda m: m.value)

FORMS = {
    "store": RecordForm(pb.StoreIdentity, _store, _store_of),
    "line": RecordForm(pb.Lineage, _line, _line_of),
    "row": RecordForm(pb.Row, _row, _row_of),
    "sealed": RecordForm(pb.Sealed, _sealed, _sealed_of),
    "history": RecordForm(pb.History, history, history_of),
    "member": RecordForm(pb.Membership, _member, _member_of),
    "banned": RecordForm(pb.Nodes, _nodes, _nodes_of),
    "quarantined": RecordForm(pb.Quarantined, _quarantined, _quarantined_of),
    "suspected": RecordForm(pb.QuarantineSlips, _slips, _slips_of),
    "wishes": RecordForm(pb.DesiredStates, _desired_states, _desired_states_of),
    "heard": _NUMBER,
    "schema": _SCHEMA,
    "asked": _SCHEMA,
    "earlier": _SCHEMA,
    "version": _NUMBER,
    "rank": _NUMBER,
    "reference": _TIME,
    "first": _TIME,
    "job": RecordForm(pb.Text, lambda value: pb.Text(value=value), lambda m: m.value),
    "elapsed": RecordForm(pb.GroupTime, _group_time, _group_time_of),
}
"""By the first word of a record's key."""
