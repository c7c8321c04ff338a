"""Trails of scores as protobuf, and back, checked: only a client sends one.

A wrong trail costs its report, as any other wrong field does. A level is any byte, so that a later
version may say more with it.
"""

from __future__ import annotations

from submerge import PeerError
from submerge.protocol.score_trail import LAST_MINUTE, MINUTES, ScoreTrail
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire.parts import number


def trail(value: ScoreTrail) -> pb.ScoreTrail:
    """Return a trail as a message."""
    return pb.ScoreTrail(last_minute=value.last, levels=value.levels)


def trail_of(message: pb.ReportRequest) -> ScoreTrail:
    """Return the trail that a report has.

    Raises PeerError if an aggregator sends one, if its length is wrong, or if a minute is before
    1970 or after the year 9999.
    """
    if message.fence:
        raise PeerError("expected a trail of scores from a client only, got an aggregator's")
    minute = number("last_minute", message.trail.last_minute, LAST_MINUTE)
    levels = message.trail.levels
    if not 1 <= len(levels) <= MINUTES:
        raise PeerError(
            f"a trail of scores has 1 to {MINUTES} levels, got {len(levels)}", kind="shape"
        )
    if len(levels) > minute + 1:
        raise PeerError(
            f"a trail of scores begins in 1970 or later, got {len(levels)} levels until minute"
            f" {minute} since then",
            kind="range",
        )
    return ScoreTrail(minute, levels)
