"""Sketches of scores, block maxima and limits as protobuf, and back, checked."""

from __future__ import annotations

import math
from dataclasses import replace

from submerge import PeerError
from submerge.protocol.messages import ScoreSketches
from submerge.stats.block_length import LONGEST
from submerge.stats.block_maxima import KINDS, BlockMaxima
from submerge.stats.quantile_sketch import (
    COARSE,
    FINE,
    Grain,
    QuantileSketch,
    empty,
    packed,
    unpacked,
)
from submerge.stats.score_limits import Limits
from submerge_proto.v1 import summary_pb2
from submerge_proto.wire.parts import MOST, MOST_CLIENTS, MOST_READINGS, number, real


def scores(value: ScoreSketches) -> summary_pb2.ScoreSketches:
    """Return sketches of scores as a message."""
    linear = b"" if value.linear is None else packed(_thinned(value.linear))
    spe, t2 = packed(_thinned(value.spe)), packed(_thinned(value.t2))
    distance = b"" if value.distance is None else packed(_thinned(value.distance))
    hours = None if value.maxima is None else maxima(value.maxima)
    return summary_pb2.ScoreSketches(spe=spe, t2=t2, linear=linear, maxima=hours, distance=distance)


def scores_of(message: summary_pb2.ScoreSketches) -> ScoreSketches:
    """Return the sketches of scores that a message holds."""
    linear = _sketch_of(message.linear) if message.linear else None
    hours = maxima_of(message.maxima) if message.HasField("maxima") else None
    distance = _sketch_of(message.distance) if message.distance else None
    return ScoreSketches(_sketch_of(message.spe), _sketch_of(message.t2), linear, hours, distance)


def maxima(value: BlockMaxima) -> summary_pb2.BlockMaxima:
    """Return block maxima as a message."""
    message = summary_pb2.BlockMaxima(longest=min(value.longest, MOST))
    for kind in KINDS:
        sketch = value.of(kind)
        if sketch.bins:
            setattr(message, kind, packed(_thinned(sketch)))
    message.block_s = value.block_s
    message.lengths.extend(min(nodes, MOST_CLIENTS) for nodes in value.lengths)
    return message


def maxima_of(message: summary_pb2.BlockMaxima) -> BlockMaxima:
    """Return the block maxima that a message holds."""
    fields = {kind: getattr(message, kind) for kind in KINDS}
    sketches = {
        kind: _sketch_of(data, FINE) if data else empty(FINE) for kind, data in fields.items()
    }
    if len(message.lengths) > LONGEST + 1:
        raise PeerError(
            f"expected at most {LONGEST + 1} lengths, got {len(message.lengths)}", kind="oversize"
        )
    lengths = tuple(number("nodes", nodes, MOST_CLIENTS) for nodes in message.lengths)
    longest = number("blocks", message.longest)
    return BlockMaxima(
        longest=longest, block_s=block_s_of(message.block_s), lengths=lengths, **sketches
    )


def block_s_of(value: float) -> float:
    """Return the length of a block that a message holds: 2^i seconds, or 0 for an hour."""
    if value and not (1 <= value <= 2.0**LONGEST and math.frexp(value)[0] == 0.5):
        raise PeerError(f"a block has a power of two of seconds, got {value}", kind="range")
    return value


def limits(value: Limits) -> summary_pb2.Limits:
    """Return measured limits as a message."""
    n = min(value.n, MOST)
    return summary_pb2.Limits(
        shares=value.shares,
        spe=value.spe,
        t2=value.t2,
        n=n,
        linear=value.linear,
        distance=value.distance,
    )


def limits_of(message: summary_pb2.Limits) -> Limits:
    """Return the measured limits that a message holds."""
    if not 1 <= len(message.shares) == len(message.spe) == len(message.t2) <= 64:
        raise PeerError("limits: expected as many scores as shares, 1 to 64", kind="shape")
    if not {len(message.linear), len(message.distance)} <= {0, len(message.shares)}:
        raise PeerError(
            "limits: expected as many of the readings and of distances as shares, or none",
            kind="shape",
        )
    shares, spe, t2 = tuple(message.shares), tuple(message.spe), tuple(message.t2)
    linear, distance = tuple(message.linear), tuple(message.distance)
    for share in shares:
        if not 0 < real("a share", share) <= 1:
            raise PeerError(f"a share must be above 0 and at most 1, got {share}", kind="range")
    for value in (*spe, *t2, *linear, *distance):
        if not real("a limit", value) >= 0:
            raise PeerError(f"a limit must not be negative, got {value}", kind="range")
    return Limits(shares, spe, t2, number("scores", message.n), linear, distance)


def _sketch_of(data: bytes, grain: Grain = COARSE) -> QuantileSketch:
    """Return a sketch, if its number of scores is believable."""
    sketch = unpacked(data, grain)
    number("scores", sketch.n, MOST_READINGS)
    return sketch


def _thinned(sketch: QuantileSketch) -> QuantileSketch:
    """Return a sketch with its counts halved until the number of scores is believable."""
    while sketch.n > MOST_READINGS:
        # Never below two, so that it still shows how many bins were needed.
        bins = ((index, n if n <= 2 else max(2, n // 2)) for index, n in sketch.bins)
        sketch = replace(sketch, bins=tuple(bins))
    return sketch
