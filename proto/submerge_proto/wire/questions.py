"""Questions, replies and the answers to drills as protobuf, and back, checked."""

from __future__ import annotations

from submerge import PeerError
from submerge.drill.drill import unpacked
from submerge.protocol.messages import (
    DEEPEST,
    MOST_BODY,
    MOST_STEP_S,
    DrillReport,
    DrillTaken,
    Question,
    QuestionReply,
    ReplyTaken,
    Stamp,
)
from submerge.protocol.names import LAST_SECOND
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import parts

MOST_CHANNELS = 65_536
"""Channels of one answer."""

LARGEST_RATE = 1e6
"""False alarms a second."""


def report(value: DrillReport) -> pb.DrillRequest:
    """Return an answer to a drill as a message."""
    return pb.DrillRequest(
        header=parts.header(value.stamp),
        node=value.node,
        fingerprint=bytes.fromhex(value.fingerprint),
        as_of_s=value.at,
        number=min(value.number, parts.MOST),
        rows=value.rows,
        spans=value.spans,
        within=value.within,
        at_most_per_s=value.at_most_per_s,
        channels=value.channels,
    )


def report_of(message: pb.DrillRequest) -> DrillReport:
    """Return the answer to a drill that a message holds."""
    if not 1 <= len(message.channels) // 16 <= MOST_CHANNELS:
        raise PeerError(
            f"expected a drill of 1 to {MOST_CHANNELS} channels, got {len(message.channels)} bytes",
            kind="oversize" if message.channels else "shape",
        )
    unpacked(message.channels)
    fingerprint = parts.fingerprint(message.fingerprint)
    at, rate = parts.real("as_of_s", message.as_of_s), message.at_most_per_s
    if not abs(at) <= LAST_SECOND or not 0 <= parts.real("a rate", rate) <= LARGEST_RATE:
        raise PeerError("a drill of an impossible time or rate", kind="range")
    return DrillReport(
        parts.stamp(message.header),
        parts.name(message.node),
        fingerprint,
        at,
        parts.number("a drill", message.number),
        parts.number("rows", message.rows),
        parts.number("spans", message.spans),
        parts.number("rows", message.within),
        rate,
        bytes(message.channels),
    )


def taken_drill(value: DrillTaken) -> pb.DrillResponse:
    """Return that an answer has arrived, as a message."""
    return pb.DrillResponse(header=parts.header(value.stamp), reason=parts.reason(value.reason))


def taken_drill_of(message: pb.DrillResponse) -> DrillTaken:
    """Return whether an answer was taken."""
    return DrillTaken(parts.stamp(message.header), parts.reason_of(message.reason))


MOST_NUMBER = 2**63
"""Questions have random numbers below it."""


def question(value: Question) -> pb.Question:
    """Return a question as a message; its header has the parent's incarnation."""
    return pb.Question(
        header=parts.header(Stamp(value.node, value.group, value.pinned, 0)),
        number=value.number,
        path=value.path,
        topic=value.topic,
        about=value.about,
        after=value.after,
        since_s=value.since_s,
        step_s=value.step_s,
    )


def question_of(message: pb.Question) -> Question:
    """Return the question that a message holds."""
    stamp = parts.stamp(message.header)
    if len(message.path) > DEEPEST:
        raise PeerError(
            f"a way has at most {DEEPEST} names, got {len(message.path)}", kind="oversize"
        )
    return Question(
        stamp.node,
        stamp.group,
        stamp.incarnation,
        parts.number("a question", message.number, MOST_NUMBER),
        tuple(map(parts.name, message.path)),
        parts.name(message.topic),
        parts.name(message.about) if message.about else "",
        parts.name(message.after) if message.after else "",
        parts.number("a time", message.since_s),
        parts.number("a step", message.step_s, MOST_STEP_S),
    )


def reply(value: QuestionReply) -> pb.ReplyRequest:
    """Return a reply as a message."""
    return pb.ReplyRequest(
        header=parts.header(value.stamp),
        number=value.number,
        body=value.body,
        problem=parts.text(value.problem, parts.LETTERS),
    )


def reply_of(message: pb.ReplyRequest) -> QuestionReply:
    """Return the reply that a message holds."""
    if not message.number or bool(message.body) == bool(message.problem):
        raise PeerError("a reply has a number, and either a body or a problem")
    if len(message.body) > MOST_BODY:
        raise PeerError(
            f"a reply has at most {MOST_BODY} bytes, got {len(message.body)}", kind="oversize"
        )
    return QuestionReply(
        parts.stamp(message.header),
        parts.number("a question", message.number, MOST_NUMBER),
        bytes(message.body),
        parts.text(message.problem, parts.LETTERS),
    )


def taken(value: ReplyTaken) -> pb.ReplyResponse:
    """Return that a reply has arrived, as a message."""
    return pb.ReplyResponse(header=parts.header(value.stamp), reason=parts.reason(value.reason))


def taken_of(message: pb.ReplyResponse) -> ReplyTaken:
    """Return whether a reply was taken."""
    return ReplyTaken(parts.stamp(message.header), parts.reason_of(message.reason))
