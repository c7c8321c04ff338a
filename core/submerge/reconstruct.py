"""Each channel as the others see it: reconstructions, and which channels are to blame."""

from submerge.pca.reconstruct import Reconstruction

__all__ = ["Reconstruction"]
