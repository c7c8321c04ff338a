"""Sketches of scores, block maxima and limits as protobuf, and back, checked."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from submerge import PeerError
from submerge.protocol.messages import ScoreSketches
from submerge.stats.block_length import LONGEST
from submerge.stats.block_maxima import BlockMaxima
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
from submerge.stats.statistic import KINDS
from submerge_proto.v1 import summary_pb2
from submerge_proto.wire.fields import PLAIN, Part, capped, form, number, or_empty, real, several
from submerge_proto.wire.parts import MOST_CLIENTS, MOST_READINGS


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


def _block_s(value: float) -> float:
    if value and not (1 <= value <= 2.0**LONGEST and math.frexp(value)[0] == 0.5):
        raise PeerError(f"a block has a power of two of seconds, got {value}", kind="range")
    return value


BLOCK_S = Part(PLAIN.made, _block_s)  # the length of a block: 2^i seconds, or 0 for an hour

_SKETCH = Part(lambda sketch: packed(_thinned(sketch)), _sketch_of)

_HIGHEST = Part(
    lambda sketch: _SKETCH.made(sketch) if sketch.bins else b"",
    lambda sent: _sketch_of(sent, FINE) if sent else empty(FINE),
)

MAXIMA = form(
    summary_pb2.BlockMaxima,
    BlockMaxima,
    longest=capped("blocks"),
    block_s=BLOCK_S,
    lengths=several(capped("nodes", MOST_CLIENTS), "lengths", LONGEST + 1),
    **dict.fromkeys(KINDS, _HIGHEST),
)

SCORES = form(
    summary_pb2.ScoreSketches,
    ScoreSketches,
    spe=_SKETCH,
    t2=_SKETCH,
    linear=or_empty(_SKETCH),
    maxima=MAXIMA.maybe,
    distance=or_empty(_SKETCH),
)


def _limits(**fields: Any) -> Limits:
    limits = Limits(**fields)
    if not 1 <= len(limits.shares) == len(limits.spe) == len(limits.t2) <= 64:
        raise PeerError("limits: expected as many scores as shares, 1 to 64", kind="shape")
    if not {len(limits.linear), len(limits.distance)} <= {0, len(limits.shares)}:
        raise PeerError(
            "limits: expected as many of the readings and of distances as shares, or none",
            kind="shape",
        )
    for share in limits.shares:
        if not 0 < real("a share", share) <= 1:
            raise PeerError(f"a share must be above 0 and at most 1, got {share}", kind="range")
    for value in (*limits.spe, *limits.t2, *limits.linear, *limits.distance):
        if not real("a limit", value) >= 0:
            raise PeerError(f"a limit must not be negative, got {value}", kind="range")
    return limits


_NUMBERS = several(PLAIN)

LIMITS = form(
    summary_pb2.Limits,
    _limits,
    shares=_NUMBERS,
    spe=_NUMBERS,
    t2=_NUMBERS,
    n=capped("scores"),
    linear=_NUMBERS,
    distance=_NUMBERS,
)
