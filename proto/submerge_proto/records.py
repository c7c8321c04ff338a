"""pack(), unpack(): the records that nodes keep, as bytes, and back.

By the first word of a record's key. What comes from a disk is distrusted like what comes
from a network: a damaged card is a `PeerError`, not a reading counted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from google.protobuf.message import DecodeError

from submerge import PeerError
from submerge.aggregator_node import Store
from submerge.finals import Past
from submerge.ledger import Member
from submerge.life import Checkpoint
from submerge.messages import Model, Pin
from submerge.pool import Row, Sealed
from submerge.steps import Key
from submerge.upward import Line
from submerge_proto import codec, columns, parts
from submerge_proto.v1 import aggregator_service_pb2 as wire
from submerge_proto.v1 import kept_pb2 as pb


def pack(key: Key, record: Any) -> bytes:
    """Return a record as bytes."""
    return bytes(_FORMS[key[0]][1](record).SerializeToString())


def unpack(key: Key, data: bytes) -> Any:
    """Return the record that some bytes are.

    Raises
    ------
    PeerError
        If they are none.
    """
    if not key or key[0] not in _FORMS:
        raise PeerError(f"expected a record that is known, got {'/'.join(key)!r}")
    form, _, reader = _FORMS[key[0]]
    try:
        return reader(form.FromString(data))
    except (DecodeError, UnicodeDecodeError) as error:
        raise PeerError(f"the record {'/'.join(key)} is damaged") from error


def unpack_all(kept: Mapping[Key, bytes]) -> dict[Key, Any]:
    """Return all records of a store."""
    return {key: unpack(key, data) for key, data in kept.items()}


def _pin(value: Pin) -> pb.Pin:
    return pb.Pin(
        parent=value.parent, incarnation=parts.incarnation(value.incarnation), top=value.top
    )


def _pin_of(message: Any) -> Pin | None:
    if not message.HasField("pin"):
        return None
    pin = message.pin
    return Pin(parts.name(pin.parent), parts.incarnation_of(pin.incarnation), pin.top)


def _checkpoint(value: Checkpoint) -> pb.Checkpoint:
    pin = None if value.pin is None else _pin(value.pin)
    return pb.Checkpoint(report=codec.report(value.report), pin=pin, delivered=value.delivered)


def _checkpoint_of(message: pb.Checkpoint) -> Checkpoint:
    return Checkpoint(codec.report_of(message.report), _pin_of(message), message.delivered)


def _past(value: Past) -> pb.Past:
    absorbed = None if value.absorbed is None else parts.incarnation(value.absorbed)
    finals = map(_checkpoint, value.finals)
    return pb.Past(finals=finals, absorbed=absorbed, lost=value.lost, lifetime=value.lifetime)


def _past_of(message: pb.Past) -> Past:
    finals = tuple(map(_checkpoint_of, message.finals))
    absorbed = parts.maybe_incarnation(message, "absorbed")
    return Past(finals, absorbed, message.lost, message.lifetime)


def _store(value: Store) -> pb.Store:
    pin = None if value.pin is None else _pin(value.pin)
    return pb.Store(incarnation=parts.incarnation(value.incarnation), pin=pin)


def _store_of(message: pb.Store) -> Store:
    return Store(parts.incarnation_of(message.incarnation), _pin_of(message))


def _line(value: Line) -> pb.Line:
    past = parts.left(value.past)
    return pb.Line(seq=value.seq, fence=value.fence, past=past, admitted=value.admitted)


def _line_of(message: pb.Line) -> Line:
    past = parts.left_of(message.past)
    return Line(message.seq, parts.fence(message.fence), past, parts.fence(message.admitted))


def _row(value: Row) -> pb.Row:
    return pb.Row(report=codec.report(value.report), as_of_s=value.as_of, digest=value.digest)


def _row_of(message: pb.Row) -> Row:
    return Row(codec.report_of(message.report), message.digest, message.as_of_s)


def _sealed(value: Sealed) -> pb.Sealed:
    message = pb.Sealed(counts=parts.counts(value.counts), as_of_s=value.as_of)
    if value.summary is not None:
        # As it is: folded once more, it must give the same bytes as if there had been no restart.
        message.subspace.CopyFrom(columns.packed(value.summary, exact=True))
        message.fingerprint = bytes.fromhex(value.summary.schema)
    if value.moments is not None:
        message.moments.CopyFrom(parts.moments(value.moments))
    return message


def _sealed_of(message: pb.Sealed) -> Sealed:
    summary = moments = None
    if message.HasField("subspace"):
        fingerprint = parts.fingerprint(message.fingerprint)
        summary = columns.unpacked(message.subspace, fingerprint, kept=True)
    if message.HasField("moments"):
        moments = parts.moments_of(message.moments)
    return Sealed(summary, moments, parts.counts_of(message.counts), message.as_of_s)


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
    return Member(
        {parts.incarnation_of(each.incarnation): each.seq for each in message.closed},
        message.floor_ms,
        {parts.incarnation_of(each.incarnation): each.fence for each in message.fences},
    )


def _model_of(message: wire.Model) -> Model:
    return codec.model_of(message)


def _nodes(value: Iterable[str]) -> pb.Nodes:
    return pb.Nodes(names=sorted(value))


def _nodes_of(message: pb.Nodes) -> frozenset[str]:
    return frozenset(message.names)


_NODES = (pb.Nodes, _nodes, _nodes_of)

_FORMS: dict[str, tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "checkpoint": (pb.Checkpoint, _checkpoint, _checkpoint_of),
    "past": (pb.Past, _past, _past_of),
    "model": (wire.Model, codec.model, _model_of),
    "store": (pb.Store, _store, _store_of),
    "line": (pb.Line, _line, _line_of),
    "row": (pb.Row, _row, _row_of),
    "sealed": (pb.Sealed, _sealed, _sealed_of),
    "member": (pb.Member, _member, _member_of),
    "banned": _NODES,
    "quarantined": _NODES,
    "schema": (pb.Text, lambda value: pb.Text(value=value), lambda message: message.value),
    "version": (pb.Number, lambda value: pb.Number(value=value), lambda message: message.value),
    "reference": (pb.Real, lambda value: pb.Real(value=value), lambda message: message.value),
}
