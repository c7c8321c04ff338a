"""Quantile sketches of scores, which merge exactly: alarm limits are measured with them."""

from submerge.stats.quantile_sketch import (
    QuantileSketch,
    SketchTally,
    empty,
    merged,
    packed,
    quantile,
    unpacked,
)

__all__ = ["QuantileSketch", "SketchTally", "empty", "merged", "packed", "quantile", "unpacked"]
