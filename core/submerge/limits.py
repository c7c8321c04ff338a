"""Quantiles of scores as sketches that merge exactly: what limits are measured with."""

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
