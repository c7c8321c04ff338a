"""Rows with gaps: estimates for missing readings, and how far limits shrink for such rows."""

from submerge.pca.missing import fill, noise_variance, shrunk

__all__ = ["fill", "noise_variance", "shrunk"]
