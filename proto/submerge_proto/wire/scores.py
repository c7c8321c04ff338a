"""How odd readings were, checked: sketches of scores, peaks, and the limits that follow."""

from __future__ import annotations

from dataclasses import replace

from submerge import PeerError
from submerge.protocol.messages import Scores
from submerge.stats.block_maxima import KINDS, Peaks
from submerge.stats.quantile_sketch import COARSE, FINE, Grain, Sketch, empty, packed, unpacked
from submerge.stats.score_limits import Limits
from submerge_proto.v1 import summary_pb2
from submerge_proto.wire.parts import MOST, MOST_READINGS, number, real


def scores(value: Scores) -> summary_pb2.Scores:
    """Return sketches of scores."""
    linear = b"" if value.linear is None else packed(_thinned(value.linear))
    spe, t2 = packed(_thinned(value.spe)), packed(_thinned(value.t2))
    told = None if value.peaks is None else peaks(value.peaks)
    return summary_pb2.Scores(spe=spe, t2=t2, linear=linear, peaks=told)


def scores_of(message: summary_pb2.Scores) -> Scores:
    """Return sketches of scores."""
    linear = _sketch_of(message.linear) if message.linear else None
    told = peaks_of(message.peaks) if message.HasField("peaks") else None
    return Scores(_sketch_of(message.spe), _sketch_of(message.t2), linear, told)


def peaks(value: Peaks) -> summary_pb2.Peaks:
    """Return what the scores of each hour came to."""
    message = summary_pb2.Peaks(longest=min(value.longest, MOST))
    for kind in KINDS:
        sketch = value.of(kind)
        if sketch.bins:
            setattr(message, kind, packed(_thinned(sketch)))
    return message


def peaks_of(message: summary_pb2.Peaks) -> Peaks:
    """Return what the scores of each hour came to."""
    told = {kind: getattr(message, kind) for kind in KINDS}
    sketches = {
        kind: _sketch_of(data, FINE) if data else empty(FINE) for kind, data in told.items()
    }
    return Peaks(longest=number("hours", message.longest), **sketches)


def limits(value: Limits) -> summary_pb2.Limits:
    """Return measured limits."""
    n = min(value.n, MOST)
    return summary_pb2.Limits(
        shares=value.shares, spe=value.spe, t2=value.t2, n=n, linear=value.linear
    )


def limits_of(message: summary_pb2.Limits) -> Limits:
    """Return measured limits."""
    if not 1 <= len(message.shares) == len(message.spe) == len(message.t2) <= 64:
        raise PeerError("limits: expected as many scores as shares, 1 to 64", kind="shape")
    if len(message.linear) not in (0, len(message.shares)):
        raise PeerError("limits: expected as many of the readings as shares, or none", kind="shape")
    shares, spe, t2 = tuple(message.shares), tuple(message.spe), tuple(message.t2)
    linear = tuple(message.linear)
    for share in shares:
        if not 0 < real("a share", share) <= 1:
            raise PeerError(f"a share must be above 0 and at most 1, got {share}", kind="range")
    for value in (*spe, *t2, *linear):
        if not real("a limit", value) >= 0:
            raise PeerError(f"a limit must not be negative, got {value}", kind="range")
    return Limits(shares, spe, t2, number("scores", message.n), linear)


def _sketch_of(data: bytes, grain: Grain = COARSE) -> Sketch:
    """Return a sketch of as many scores as can be believed."""
    sketch = unpacked(data, grain)
    number("scores", sketch.n, MOST_READINGS)
    return sketch


def _thinned(sketch: Sketch) -> Sketch:
    """Return a sketch of fewer scores in the same bins, where there are more than are believed."""
    while sketch.n > MOST_READINGS:
        # Never below two: that so many bins were needed must still be seen.
        bins = ((index, n if n <= 2 else max(2, n // 2)) for index, n in sketch.bins)
        sketch = replace(sketch, bins=tuple(bins))
    return sketch
