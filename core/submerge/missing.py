"""Rows with gaps: estimates for missing readings, and how far limits shrink for such rows."""

from submerge.pca.expectation import Guesses
from submerge.pca.factor import noise_variance
from submerge.pca.missing import fill, shrunk

__all__ = ["Guesses", "fill", "noise_variance", "shrunk"]
