"""Reconstructions of each channel from the others, and which channels are to blame."""

from submerge.pca.reconstruct import Reconstruction

__all__ = ["Reconstruction"]
