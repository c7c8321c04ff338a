"""encode(), decode(): messages as bytes, and back. Foreign bytes are distrusted here, once.

What `decode` returns is safe to believe: names are names, numbers finite and of a size that
sums can bear, bases orthonormal. What it cannot believe is a `PeerError`; if the header
could be read it is a `Refused`, so that the sender can be told why. docs/wire.md has the
bytes, `tests/golden/v1` some that never change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, get_args

from google.protobuf.message import DecodeError

from submerge import PeerError
from submerge.messages import (
    Answer,
    Hello,
    Incarnation,
    Join,
    Joined,
    Message,
    Model,
    Reason,
    Report,
    Stamp,
)
from submerge_proto import columns, parts
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.v1 import header_pb2

Kind = Literal["join", "joined", "report", "answer", "watch"]
"""What some bytes are, by the method or topic that they came by; hello and model are "watch"."""

KINDS: tuple[Kind, ...] = get_args(Kind)

NOBODY = Incarnation(0, 0)


class Refused(PeerError):
    """A message that cannot be taken, from somebody who can be told.

    Attributes
    ----------
    stamp : Stamp
        Whose it is, as far as that could be read.
    reason : Reason
        VERSION or INVALID.
    """

    def __init__(self, why: str, *, stamp: Stamp, reason: Reason) -> None:
        self.stamp, self.reason = stamp, reason
        super().__init__(why)


def kind_of(message: Message) -> Kind:
    """Return by which method or topic a message goes."""
    match message:
        case Join():
            return "join"
        case Joined():
            return "joined"
        case Report():
            return "report"
        case Answer():
            return "answer"
        case Hello() | Model():
            return "watch"


def encode(message: Message, *, coarse: bool = False) -> bytes:
    """Return a message as bytes; `coarse`: columns as int8 where that does little harm."""
    match message:
        case Join():
            return join(message).SerializeToString()
        case Joined():
            return joined(message).SerializeToString()
        case Report():
            return report(message, coarse=coarse).SerializeToString()
        case Answer():
            return answer(message).SerializeToString()
        case Hello():
            return pb.WatchResponse(hello=hello(message)).SerializeToString()
        case Model():
            return pb.WatchResponse(model=model(message)).SerializeToString()


def decode(kind: Kind, data: bytes) -> Message:
    """Return the message that some bytes are.

    Raises
    ------
    PeerError
        If they are none that an honest node of this version sends; `Refused` where the
        sender is known.
    """
    form, reader = _READERS[kind]
    try:
        message = form.FromString(data)
    except DecodeError as error:
        raise PeerError(f"expected a {kind}, got {len(data)} bytes of something else") from error
    if kind == "watch":
        which = message.WhichOneof("event")
        if which is None:
            raise PeerError("expected a hello or a model, got neither")
        message, reader = getattr(message, which), model_of if which == "model" else hello_of
    refusal = _foreign(message.header)
    if refusal is not None:
        raise refusal
    try:
        return reader(message)
    except PeerError as error:
        if kind not in ("join", "report"):
            raise
        stamp = parts.stamp(message.header)  # or it is nobody's, and nobody can be told
        raise Refused(str(error), stamp=stamp, reason=Reason.INVALID) from error


def _foreign(header: header_pb2.Header) -> PeerError | None:
    """Refuse another version, by name if it gives one."""
    if header.version == parts.VERSION:
        return None
    why = f"this node speaks version {parts.VERSION} of the protocol, got version {header.version}"
    if header.versions:
        why += f" from one that speaks {', '.join(map(str, header.versions[:8]))}"
    why += "; update the older one"
    try:
        stamp = parts.stamp(header)
    except PeerError:
        return PeerError(why)
    return Refused(why, stamp=stamp, reason=Reason.VERSION)


# -- one message each ------------------------------------------------------------------


def join(value: Join) -> pb.JoinRequest:
    """Return a join."""
    return pb.JoinRequest(
        header=parts.header(value.stamp),
        fence=value.fence,
        past_fences=parts.left(value.past_fences),
        schema=value.schema,
    )


def join_of(message: pb.JoinRequest) -> Join:
    """Return a join."""
    if len(message.past_fences) > 256:
        raise PeerError(f"expected at most 256 past fences, got {len(message.past_fences)}")
    return Join(
        parts.stamp(message.header),
        parts.fence(message.fence),
        parts.left_of(message.past_fences),
        message.schema,
    )


def joined(value: Joined) -> pb.JoinResponse:
    """Return the answer to a join."""
    return pb.JoinResponse(
        header=parts.header(value.stamp),
        reason=_reason(value.reason),
        fence=value.fence,
        pinned=_maybe(value.pinned),
        top=value.top,
        floor_ms=value.floor,
        schema=value.schema,
        lines=value.lines,
    )


def joined_of(message: pb.JoinResponse) -> Joined:
    """Return the answer to a join."""
    return Joined(
        parts.stamp(message.header),
        _reason_of(message.reason),
        parts.fence(message.fence),
        parts.maybe_incarnation(message, "pinned"),
        message.top,
        parts.number("floor", message.floor_ms),
        message.schema,
        tuple(message.lines),
    )


def report(value: Report, *, coarse: bool = False) -> pb.ReportRequest:
    """Return a report."""
    message = pb.ReportRequest(
        header=parts.header(value.stamp, value.software),
        final=value.final,
        pinned=parts.incarnation(value.pinned),
        fence=value.fence,
        fingerprint=bytes.fromhex(value.fingerprint),
        counts=parts.counts(value.counts),
        as_of_s=value.as_of,
        synced=value.synced,
        model_version=value.version,
        lifetime=min(value.lifetime, parts.MOST),
    )
    if value.summary is not None:
        message.subspace.CopyFrom(columns.packed(value.summary, coarse=coarse))
    if value.moments is not None:
        message.moments.CopyFrom(parts.moments(value.moments))
    if value.census is not None:
        message.census.CopyFrom(parts.census(value.census))
    if value.scores is not None:
        message.scores.CopyFrom(parts.scores(value.scores))
    return message


def report_of(message: pb.ReportRequest) -> Report:
    """Return a report."""
    fingerprint = parts.fingerprint(message.fingerprint)
    known = {field.name for field, _ in message.ListFields()}
    return Report(
        stamp=parts.stamp(message.header),
        final=message.final,
        pinned=parts.incarnation_of(message.pinned),
        fence=parts.fence(message.fence),
        fingerprint=fingerprint,
        summary=columns.unpacked(message.subspace, fingerprint) if "subspace" in known else None,
        moments=parts.moments_of(message.moments) if "moments" in known else None,
        counts=parts.counts_of(message.counts),
        as_of=parts.real("as_of_s", message.as_of_s),
        synced=message.synced,
        version=parts.number("model_version", message.model_version, 2**63 - 1),
        lifetime=parts.number("lifetime", message.lifetime),
        census=parts.census_of(message.census) if "census" in known else None,
        scores=parts.scores_of(message.scores) if "scores" in known else None,
        software=message.header.software[:64],
    )


def answer(value: Answer) -> pb.ReportResponse:
    """Return the answer to a report."""
    return pb.ReportResponse(
        header=parts.header(value.stamp),
        reason=_reason(value.reason),
        fence=value.fence,
        pinned=_maybe(value.pinned),
        top=value.top,
        newest=value.newest,
        root=_maybe(value.root),
        durable=value.durable,
        floor_ms=value.floor,
    )


def answer_of(message: pb.ReportResponse) -> Answer:
    """Return the answer to a report."""
    return Answer(
        parts.stamp(message.header),
        _reason_of(message.reason),
        parts.fence(message.fence),
        parts.maybe_incarnation(message, "pinned"),
        message.top,
        parts.number("newest", message.newest),
        parts.maybe_incarnation(message, "root"),
        parts.number("durable", message.durable),
        parts.number("floor", message.floor_ms),
    )


def hello(value: Hello) -> pb.Hello:
    """Return a parent's hello."""
    header = parts.header(Stamp(value.node, "", value.incarnation, 0))
    return pb.Hello(header=header, top=value.top, boot=value.boot)


def hello_of(message: pb.Hello) -> Hello:
    """Return a parent's hello."""
    header = message.header
    incarnation = parts.incarnation_of(header.incarnation)
    return Hello(parts.name(header.node), incarnation, message.top, message.boot)


def model(value: Model) -> pb.Model:
    """Return a model."""
    p50, p99, most = value.staleness
    message = pb.Model(
        header=parts.header(Stamp("", value.group, NOBODY, 0)),
        version=value.version,
        schema=value.schema,
        counts=parts.counts(value.counts),
        nodes=value.nodes,
        staleness_p50_s=p50,
        staleness_p99_s=p99,
        staleness_max_s=most,
        created_s=value.created,
        expires_s=value.expires,
    )
    if value.summary is not None:
        message.subspace.CopyFrom(columns.packed(value.summary))
    if value.limits is not None:
        message.limits.CopyFrom(parts.limits(value.limits))
    return message


def model_of(message: pb.Model) -> Model:
    """Return a model."""
    fingerprint = parts.fingerprint_of_text(message.schema)
    summary = limits = None
    if message.HasField("subspace"):
        summary = columns.unpacked(message.subspace, fingerprint)
    if message.HasField("limits"):
        limits = parts.limits_of(message.limits)
    return Model(
        parts.name(message.header.group),
        parts.number("version", message.version, 2**63 - 1),
        message.schema,
        fingerprint,
        summary,
        limits,
        parts.counts_of(message.counts),
        parts.number("nodes", message.nodes),
        (
            parts.real("staleness", message.staleness_p50_s),
            parts.real("staleness", message.staleness_p99_s),
            parts.real("staleness", message.staleness_max_s),
        ),
        created=parts.real("created_s", message.created_s),
        expires=parts.real("expires_s", message.expires_s),
    )


def as_it_arrives(value: Model) -> Model:
    """Return a model as those below see it: they score with float32 columns."""
    summary = value.summary
    return value if summary is None else replace(value, summary=columns.arrived(summary))


def _maybe(value: Incarnation | None) -> header_pb2.Incarnation | None:
    return None if value is None else parts.incarnation(value)


def _reason(reason: Reason) -> Any:
    return pb.Reason.Value(f"REASON_{reason.name}")


def _reason_of(number: int) -> Reason:
    try:
        return Reason[pb.Reason.Name(number).removeprefix("REASON_")]
    except (ValueError, KeyError) as error:
        raise PeerError(f"expected a reason that is known, got number {number}") from error


_READERS: dict[Kind, tuple[Any, Callable[[Any], Message]]] = {
    "join": (pb.JoinRequest, join_of),
    "joined": (pb.JoinResponse, joined_of),
    "report": (pb.ReportRequest, report_of),
    "answer": (pb.ReportResponse, answer_of),
    "watch": (pb.WatchResponse, model_of),
}
