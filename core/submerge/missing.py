"""Rows with gaps: what a missing reading most likely was, and how far limits shrink for it."""

from submerge.pca.missing import fill, noise_variance, shrunk

__all__ = ["fill", "noise_variance", "shrunk"]
