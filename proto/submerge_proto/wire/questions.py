"""Questions, replies and the answers to drills as protobuf, and back, checked."""

from __future__ import annotations

from typing import Any

from submerge import PeerError
from submerge.drill.drill import unpacked
from submerge.protocol import messages
from submerge.protocol.names import LAST_SECOND
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import parts
from submerge_proto.wire.fields import PLAIN, Part, capped, finite, form, several, whole

MOST_CHANNELS = 65_536
"""Channels of one answer."""

LARGEST_RATE = 1e6
"""False alarms a second."""


def _channels(sent: bytes) -> bytes:
    if not 1 <= len(sent) // 16 <= MOST_CHANNELS:
        raise PeerError(
            f"expected a drill of 1 to {MOST_CHANNELS} channels, got {len(sent)} bytes",
            kind="oversize" if sent else "shape",
        )
    unpacked(sent)
    return bytes(sent)


def _drilled(**fields: Any) -> messages.DrillReport:
    found = messages.DrillReport(**fields)
    if not abs(found.at) <= LAST_SECOND or not 0 <= found.at_most_per_s <= LARGEST_RATE:
        raise PeerError("a drill of an impossible time or rate", kind="range")
    return found


DRILL = form(
    pb.DrillRequest,
    _drilled,
    channels=Part(PLAIN.made, _channels),
    stamp=parts.HEADER,
    node=parts.NAME,
    fingerprint=parts.FINGERPRINT,
    at=finite("as_of_s").at("as_of_s"),
    number=capped("a drill"),
    rows=whole("rows"),
    spans=whole("spans"),
    within=whole("rows"),
    at_most_per_s=finite("a rate"),
)

DRILLED = form(pb.DrillResponse, messages.DrillTaken, stamp=parts.HEADER, reason=parts.REASON)

QUESTION_NUMBER = whole("a question", 2**63)
"""Questions have random numbers below it."""

_NAME_OR_NONE = Part(PLAIN.made, lambda sent: parts.name(sent) if sent else "")


def _question(stamp: messages.Stamp, **asked: Any) -> messages.Question:
    return messages.Question(stamp.node, stamp.group, stamp.incarnation, **asked)


QUESTION = form(
    pb.Question,
    _question,
    stamp=parts.HEADER,  # it has the parent's incarnation
    number=QUESTION_NUMBER,
    path=several(parts.NAME, "names of a way", messages.DEEPEST),
    topic=parts.NAME,
    about=_NAME_OR_NONE,
    after=_NAME_OR_NONE,
    since_s=whole("a time"),
    step_s=whole("a step", messages.MOST_STEP_S),
)


def _reply(**said: Any) -> messages.QuestionReply:
    reply = messages.QuestionReply(**said)
    if not reply.number or bool(reply.body) == bool(reply.problem):
        raise PeerError("a reply has a number, and either a body or a problem")
    if len(reply.body) > messages.MOST_BODY:
        raise PeerError(
            f"a reply has at most {messages.MOST_BODY} bytes, got {len(reply.body)}",
            kind="oversize",
        )
    return reply


REPLY = form(
    pb.ReplyRequest,
    _reply,
    stamp=parts.HEADER,
    number=QUESTION_NUMBER,
    body=Part(PLAIN.made, bytes),
    problem=parts.TEXT,
)

REPLIED = form(pb.ReplyResponse, messages.ReplyTaken, stamp=parts.HEADER, reason=parts.REASON)
