"""Answers to drills on the wire."""

from __future__ import annotations

from submerge import PeerError
from submerge.drill.drill import unpacked
from submerge.protocol.messages import DrillReport, DrillTaken
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


def taken(value: DrillTaken) -> pb.DrillResponse:
    """Return that an answer has arrived, as a message."""
    return pb.DrillResponse(header=parts.header(value.stamp), reason=parts.reason(value.reason))


def taken_of(message: pb.DrillResponse) -> DrillTaken:
    """Return whether an answer was taken."""
    return DrillTaken(parts.stamp(message.header), parts.reason_of(message.reason))
